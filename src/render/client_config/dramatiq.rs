//! Renders a broker class for dramatiq, which always declares its queues.
//!
//! dramatiq declares a queue `Q` together with `Q.DQ` and `Q.XQ`. `_build_queue_arguments` returns the arguments of `Q`
//! and `Q.DQ` (dramatiq 2.2).

use super::advice::on_failure;
use super::literal::{Language, arguments, comment, string};
use crate::contract::{ClientQueue, ClientVhost, Declaration};
use crate::model::known_clients::Framework;
use crate::model::{Arguments, QueueName, QueueType};
use crate::render::contract_table;
use crate::render::style::clean;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The time to live of a message in `Q.XQ`, in milliseconds: 7 days.
const DEAD_MESSAGE_TTL: i64 = 604_800_000;

/// Returns the suffixes of the queues that dramatiq declares in addition to a queue.
fn suffixes() -> &'static [&'static str] {
    Framework::Dramatiq.client().map_or(&[], |client| client.sibling_queues)
}

/// Writes the broker class, and warnings about queues that dramatiq cannot declare as specified.
pub(super) fn dramatiq(text: &mut String, vhost: &ClientVhost) {
    comment(
        text,
        "# ",
        "dramatiq cannot use a queue without declaring it. It declares Q, Q.DQ and Q.XQ with its own arguments.",
    );
    let queues: Vec<&ClientQueue> = vhost.queues.iter().filter(|queue| !is_sibling(vhost, queue)).collect();
    let priorities: BTreeSet<Option<i64>> =
        queues.iter().filter_map(|queue| own_priority(vhost, &queue.declaration)).collect();
    // `max_priority` applies to all queues of a broker.
    let (has_one, priority) = (priorities.len() == 1, priorities.first().copied().flatten());
    let (own, other): (Vec<&ClientQueue>, Vec<&ClientQueue>) =
        queues.into_iter().partition(|queue| has_one && own_priority(vhost, &queue.declaration).is_some());
    for queue in own.iter().chain(&other) {
        warnings(text, vhost, queue);
    }
    text.push_str("from dramatiq.brokers.rabbitmq import RabbitmqBroker\n\n");
    if !other.is_empty() {
        class(text, &other);
    }
    let class = if other.is_empty() { "RabbitmqBroker" } else { "SpecBroker" };
    let argument = priority.filter(|_| has_one).map_or_else(String::new, |it| format!("max_priority={it}"));
    let _ = writeln!(text, "broker = {class}({argument})");
}

/// Returns true if dramatiq declares this queue together with another declared queue.
fn is_sibling(vhost: &ClientVhost, queue: &ClientQueue) -> bool {
    let name = queue.declaration.queue.as_str();
    suffixes()
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix))
        .any(|stem| vhost.declared.contains_key(&QueueName::new(stem)))
}

/// Returns the `max_priority` that makes dramatiq's own declaration of the queue match the spec. `Some(None)` means
/// that the declaration matches without `max_priority`. Returns `None` if the declaration cannot match.
fn own_priority(vhost: &ClientVhost, declaration: &Declaration) -> Option<Option<i64>> {
    let mut rest = declared_arguments(vhost, declaration);
    let priority = rest.remove("x-max-priority");
    let own: Arguments = [
        ("x-dead-letter-exchange".to_owned(), "".into()),
        ("x-dead-letter-routing-key".to_owned(), format!("{}.XQ", declaration.queue).into()),
    ]
    .into();
    match priority {
        _ if !is_durable(declaration) || rest != own => None,
        None => Some(None),
        Some(priority) => priority.as_integer().map(Some),
    }
}

/// Returns the arguments of a declaration. Omits `x-queue-type` if the broker would add the same type.
fn declared_arguments(vhost: &ClientVhost, declaration: &Declaration) -> Arguments {
    let mut rest = declaration.arguments.clone();
    let added = vhost.default_queue_type.unwrap_or(QueueType::Classic);
    if rest.get("x-queue-type") == Some(&added.as_str().into()) {
        rest.remove("x-queue-type");
    }
    rest
}

fn is_durable(declaration: &Declaration) -> bool {
    declaration.durable && !declaration.auto_delete
}

/// Writes warnings about the name of the queue and about declarations that the broker refuses. Also lists the queues
/// that dramatiq declares although the spec does not, and describes what the queue's actors must do on failure.
fn warnings(text: &mut String, vhost: &ClientVhost, queue: &ClientQueue) {
    let declaration = &queue.declaration;
    let name = clean(declaration.queue.as_str());
    let summary = |it: &Declaration| contract_table::declaration(it).replace('\u{a0}', " ");
    if !is_valid_dramatiq_name(declaration.queue.as_str()) {
        let permitted = "ASCII alphanumeric characters and ._- in names, and no digit, period or hyphen at the start";
        comment(text, "# ", &format!("Warning: {name}: dramatiq cannot use this queue. It permits only {permitted}."));
    }
    let mut warn = |queue: &str, why: &str| {
        comment(text, "# ", &format!("Warning: {queue}: the broker refuses the declaration (406). {why}"));
    };
    if !is_durable(declaration) {
        warn(&name, "dramatiq declares only durable queues without auto-delete.");
    }
    let declared = |suffix: &str| vhost.declared.get(&QueueName::new(format!("{}{suffix}", declaration.queue)));
    if let Some(other) = declared(".DQ").filter(|it| !is_durable(it) || it.arguments != declaration.arguments) {
        warn(&format!("{name}.DQ"), &format!("The spec must declare it as {name}, but declares: {}.", summary(other)));
    }
    let ttl: Arguments = [("x-message-ttl".to_owned(), DEAD_MESSAGE_TTL.into())].into();
    if let Some(other) = declared(".XQ").filter(|it| !is_durable(it) || declared_arguments(vhost, it) != ttl) {
        let expected = format!("dramatiq declares it with x-message-ttl={DEAD_MESSAGE_TTL}");
        warn(&format!("{name}.XQ"), &format!("{expected}, but the spec declares: {}.", summary(other)));
    }
    let missing: Vec<String> =
        suffixes().iter().filter(|it| declared(it).is_none()).map(|suffix| format!("{name}{suffix}")).collect();
    if !missing.is_empty() {
        let (them, are) = if missing.len() == 1 { ("it", "is") } else { ("them", "are") };
        comment(text, "# ", &format!("{} {are} not in the spec: dramatiq declares {them}.", missing.join(" and ")));
    }
    if let Some(kind) = queue.on_failure {
        comment(text, "# ", &format!("{name}: {}", on_failure(Framework::Dramatiq, kind)));
    }
}

/// Returns true if dramatiq accepts the queue name (dramatiq 2.2).
fn is_valid_dramatiq_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn class(text: &mut String, queues: &[&ClientQueue]) {
    text.push_str("QUEUE_ARGUMENTS = {\n");
    for queue in queues {
        let _ = writeln!(text, "    {}: {{", string(queue.declaration.queue.as_str(), Language::Python));
        arguments(text, &queue.declaration.arguments, Language::Python, 8);
        text.push_str("    },\n");
    }
    text.push_str(
        "}\n\n\nclass SpecBroker(RabbitmqBroker):\n    \
         # A private method of dramatiq: test it with each new version.\n    \
         def _build_queue_arguments(self, queue_name):\n        \
         if queue_name in QUEUE_ARGUMENTS:\n            \
         return QUEUE_ARGUMENTS[queue_name]\n        \
         return super()._build_queue_arguments(queue_name)\n\n\n",
    );
}
