//! Renders the annotations of an alert.

use crate::model::printable::clean;
use crate::model::units::duration;
use crate::operate::alerts::{Alert, Condition, Role};
use crate::render::shell::quote;

/// The value of an alert in its annotations.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// The template that Prometheus replaces with the value.
    Template,
    /// A fixed value, formatted as Prometheus formats the value of the template.
    Number(i64),
}

impl Shown {
    fn text(self) -> String {
        match self {
            Self::Template => "{{ printf \"%.0f\" $value }}".to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }

    /// Escapes `{{` in a string, because Prometheus expands templates in annotations and labels. Returns the string
    /// unchanged for a fixed value.
    pub(super) fn literal(self, text: &str) -> String {
        match self {
            Self::Template => text.replace("{{", "{{ \"{{\" }}"),
            Self::Number(_) => text.to_owned(),
        }
    }
}

/// The annotations of an alert: a summary, and a description with the next command.
pub(super) struct Annotations {
    pub(super) summary: String,
    pub(super) description: String,
}

/// Renders the annotations of an alert.
pub(super) fn annotations(alert: &Alert, shown: Shown) -> Annotations {
    let (vhost, queue) = (alert.vhost.as_str(), alert.queue.as_str());
    let subject = shown.literal(&format!("{} in vhost {}", clean(queue), clean(vhost)));
    let value = shown.text();
    let time = duration(alert.persists).unwrap_or_default();
    let severity = alert.severity.as_str();
    let is_dead_letter_queue = alert.role == Role::DeadLetterQueue;
    let messages = if is_dead_letter_queue { "dead-lettered messages" } else { "messages" };
    let (summary, reason) = match alert.condition {
        Condition::Depth(count) => {
            (format!("{subject} contains {value} {messages}"), format!("The {severity} threshold is {count}."))
        }
        Condition::Growth(growth) => (
            format!("{subject} grew by {value} {messages}"),
            format!(
                "The {severity} threshold is {} within {}.",
                growth.messages,
                duration(growth.within).unwrap_or_default()
            ),
        ),
        Condition::Age => (
            format!("{subject} has contained messages for at least {time}"),
            format!("It contains {value} {messages}."),
        ),
        Condition::NoConsumers => (
            format!("{subject} contains messages and has no consumers"),
            format!("The queue has had no consumers for {time}. Check its workers."),
        ),
        Condition::Stuck | Condition::Unmoved => stuck(alert, &subject, &value, shown),
        Condition::NotSeen => (
            format!("Prometheus has no metrics for {subject}"),
            "The queue does not exist, or Prometheus does not scrape its metrics. Its other alerts cannot fire."
                .to_owned(),
        ),
    };
    let description = match command(alert) {
        Some(command) => format!("{reason} {}", shown.literal(&command)),
        None => reason,
    };
    Annotations { summary, description }
}

fn stuck(alert: &Alert, subject: &str, value: &str, shown: Shown) -> (String, String) {
    match (&alert.role, alert.condition) {
        (Role::Tier { of, delay }, condition) => {
            let of = shown.literal(&clean(of.as_str()));
            let delay = duration(*delay).unwrap_or_default();
            let reason = if condition == Condition::Unmoved {
                "The number of messages in the queue does not decrease."
            } else {
                "Its dead-letter target does not confirm the messages."
            };
            let summary = format!("{subject} has held {value} messages for longer than its delay of {delay}");
            (summary, format!("{reason} The messages do not return to {of}."))
        }
        (Role::DeadLetterQueue | Role::Work, _) => (
            format!("{subject} cannot dead-letter {value} messages"),
            "Its dead-letter target does not exist, or does not confirm the messages.".to_owned(),
        ),
    }
}

/// Returns the sentence with the command that shows the messages in a dead-letter queue. Returns `None` for other
/// queues, and for an alert about missing metrics.
fn command(alert: &Alert) -> Option<String> {
    let is_listed = alert.role == Role::DeadLetterQueue && alert.condition != Condition::NotSeen;
    let queue = quote(alert.queue.as_str());
    is_listed.then(|| format!("List the messages: topo dlq list {queue} --vhost {}", quote(alert.vhost.as_str())))
}
