//! Renders the lifecycle of a message as text: a drawing with times, every way in which a message can leave the queue,
//! the contract of the worker, the headers of a dead-lettered message, and the origin of each setting.

use super::contract_table::{publish_target, terms};
use super::lifecycle_counts::{Live, counts_of_one, live_counts};
use super::shell::quote;
use super::style::{self, BOLD, DIM, GREEN, Painted, RED, YELLOW, clean, columns, wrap};
use crate::contract::lifecycle::{
    DeadLetteredProperties, Exit, Explanation, Lifecycle, SettingOrigin, SpecLine, State, TierDescription,
};
use crate::contract::{Replay, Wait};
use crate::model::QueueName;
use anstyle::Style;
use std::fmt::Write;

/// The column at which times start in the drawing.
const TIMES: usize = 17;

/// The parameters for rendering an explanation.
pub struct View<'a> {
    /// The output width in columns.
    pub width: usize,
    /// The specs and flags that follow the queue name in suggested commands.
    pub flags: &'a str,
    /// The connection flags of suggested commands.
    pub connection: &'a str,
    /// The description of the RabbitMQ version.
    pub version: &'a str,
    /// The activity of each vhost, to show the current counts; `None` without a broker.
    pub live: Live<'a>,
}

/// Renders the explanation of a queue or a tier.
pub fn explanation(explanation: &Explanation, view: &View<'_>) -> String {
    let mut text = String::new();
    match explanation {
        Explanation::Queue(lifecycle) => explain_queue(&mut text, lifecycle, view),
        Explanation::Tier(tier) => explain_tier(&mut text, tier, view),
    }
    text
}

fn heading(text: &mut String, parts: &[String], width: usize) {
    let parts: Vec<String> = parts.iter().map(|part| clean(part)).collect();
    for line in style::heading(&parts, width) {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    }
}

fn title(text: &mut String, title: &str, width: usize) {
    let lines = style::heading(&[title.to_owned()], width);
    let _ = writeln!(text, "\n{}", Painted(BOLD, lines.join("\n")));
}

/// Writes a sentence on one or more lines. Puts `first` before the first line, and aligns the other lines.
fn sentence(text: &mut String, first: &str, sentence: &str, width: usize) {
    let indent = " ".repeat(columns(first));
    let words: Vec<String> = clean(sentence).split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
    for (index, line) in wrap(&words, " ", width.saturating_sub(columns(first))).iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if index == 0 { first } else { &indent });
    }
}

fn join_names(queues: &[QueueName]) -> String {
    queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ")
}

fn position(line: &SpecLine) -> String {
    format!("{}:{}", line.file, line.line)
}

fn explain_queue(text: &mut String, lifecycle: &Lifecycle, view: &View<'_>) {
    let width = view.width;
    let kind = match (lifecycle.queue_type, lifecycle.is_dead_letter_queue) {
        (crate::model::QueueType::Stream, _) => "stream".to_owned(),
        (queue_type, true) => format!("{queue_type} dead-letter queue"),
        (queue_type, false) => format!("{queue_type} queue"),
    };
    let parts = [
        lifecycle.queue.to_string(),
        kind,
        format!("vhost {}", lifecycle.vhost),
        view.version.to_owned(),
        position(&lifecycle.at),
    ];
    heading(text, &parts, width);
    if !lifecycle.dead_letter_sources.is_empty() {
        sentence(
            text,
            "",
            &format!("The dead-lettered messages from {} arrive here.", join_names(&lifecycle.dead_letter_sources)),
            width,
        );
    } else if lifecycle.is_dead_letter_queue {
        sentence(text, "", "No queue in the spec dead-letters messages to this queue.", width);
    }
    let always_fails = lifecycle.contract.as_ref().is_some_and(|_| !lifecycle.is_dead_letter_queue);
    title(
        text,
        if always_fails { "A message that always fails (times exclude processing)" } else { "A message" },
        width,
    );
    draw(text, lifecycle, view);
    title(text, "How messages leave the queue", width);
    exits(text, &lifecycle.exits, width);
    if let Some(contract) = lifecycle.contract.as_ref().filter(|_| !lifecycle.is_dead_letter_queue) {
        title(text, "The worker", width);
        terms(text, contract, width);
    }
    if let Some(dead_lettered_message) = &lifecycle.dead_lettered_message {
        title(text, "A dead-lettered message after its last retry", width);
        dead_lettered_properties(text, dead_lettered_message, width);
    }
    if let Some(replay) = &lifecycle.replay {
        title(text, "Replay", width);
        for queue in lifecycle.dead_letter_queues() {
            replay_command(text, lifecycle, queue, Some(&lifecycle.queue), view);
        }
        replay_steps(text, replay, width);
    } else if let [first, ..] = &lifecycle.dead_letter_sources[..] {
        title(text, "Replay", width);
        replay_command(text, lifecycle, &lifecycle.queue, None, view);
        let hint =
            "returns each message to the queue that dead-lettered it. To see the lifecycle of a returned message:";
        sentence(text, "  ", hint, width);
        explain_command(text, first, view);
    }
    title(text, "Settings", width);
    settings(text, &lifecycle.settings, width);
}

fn draw(text: &mut String, lifecycle: &Lifecycle, view: &View<'_>) {
    let (steps, width) = (&lifecycle.steps, view.width);
    let now = |queue: &QueueName| live_counts(view.live, &lifecycle.vhost, queue);
    let own = live_counts(view.live, &lifecycle.vhost, &lifecycle.queue);
    for (index, step) in steps.iter().enumerate() {
        let time = step.after.as_ref().map_or_else(|| "after the messages in the queue".to_owned(), at);
        match &step.state {
            State::Published { ways_in } => {
                for (index, source) in ways_in.iter().enumerate() {
                    let (sign, word) = if index == 0 { ("○", "published") } else { ("│", "") };
                    let first = format!("  {sign} {word:<w$}", w = TIMES - 4);
                    sentence(text, &first, &format!("to {source}"), width);
                }
            }
            State::Attempt { number } => {
                // Only the first attempt shows counts, because the broker does not report the attempt number of each
                // message.
                let counts = if *number == 1 { own.as_str() } else { "" };
                state(text, (BOLD, "●"), &format!("attempt {number}"), &format!("{time}{counts}"), width);
            }
            State::Attempts { from, to } => {
                state(
                    text,
                    (DIM, "⋮"),
                    &format!("attempts {from} to {to}"),
                    &format!("starting {time}, with the same transitions"),
                    width,
                );
            }
            State::Waiting { queue, wait } => {
                let location =
                    queue.as_ref().map_or_else(|| "in the queue itself".to_owned(), |it| format!("in {it}{}", now(it)));
                state(text, (DIM, "◌"), &format!("waits {}", wait.text), &location, width);
            }
            State::Kept { until } => state(text, (BOLD, "■"), "stays", &format!("{until}{own}"), width),
            State::DeadLetter { place, queues } => {
                let time = step.after.as_ref().map_or_else(String::new, |after| format!(", {}", at(after)));
                let counts = match &queues[..] {
                    [queue] => now(queue),
                    queues => queues.iter().map(|queue| counts_of_one(queue, &now(queue))).collect(),
                };
                state(text, (RED, "■"), "dead-letter", &format!("{place}{time}{counts}"), width);
            }
            State::Dropped => state(text, (RED, "✗"), "dropped", &time, width),
        }
        if index + 1 < steps.len() {
            let rail = "  │   ";
            match step.then.as_str() {
                "" => text.push_str("  │\n"),
                then => edge(text, rail, then, width),
            }
        }
    }
}

fn state(text: &mut String, (style, sign): (Style, &str), word: &str, rest: &str, width: usize) {
    let mut line = String::new();
    let gap = " ".repeat((TIMES - 4).saturating_sub(columns(word)).max(1));
    sentence(&mut line, &format!("  {sign} {word}{gap}"), rest, width);
    text.push_str(&line.replacen(sign, &Painted(style, sign).to_string(), 1));
}

/// Writes a transition next to the vertical line of the drawing.
fn edge(text: &mut String, rail: &str, then: &str, width: usize) {
    let words: Vec<String> = clean(then).split(' ').map(str::to_owned).collect();
    for line in wrap(&words, " ", width.saturating_sub(columns(rail))) {
        let _ = writeln!(text, "{rail}{}", Painted(DIM, line));
    }
}

fn at(wait: &Wait) -> String {
    if wait.milliseconds == 0 { "at 0s".to_owned() } else { format!("at +{}", wait.text) }
}

fn exits(text: &mut String, exits: &[Exit], width: usize) {
    for exit in exits {
        let first = format!("  {:<w$}", exit.way, w = TIMES - 2);
        let mut lines = String::new();
        sentence(&mut lines, &first, &format!("{} ─▶ {}", exit.by, exit.to), width);
        let style = if exit.way == "acked" { GREEN } else { BOLD };
        text.push_str(&lines.replacen(exit.way, &Painted(style, exit.way).to_string(), 1));
    }
}

fn dead_lettered_properties(text: &mut String, dead_lettered_message: &DeadLetteredProperties, width: usize) {
    let key = dead_lettered_message
        .routing_key
        .as_ref()
        .map_or_else(|| "its original routing key".to_owned(), |key| format!("key {key}"));
    let exchange = super::contract_table::exchange(&dead_lettered_message.exchange);
    sentence(text, "  has            ", &format!("{exchange}, {key}"), width);
    for (index, death) in dead_lettered_message.x_death.iter().enumerate() {
        let label = if index == 0 { "x-death" } else { "" };
        let entry = format!("queue={} reason={} count={}", death.queue, death.reason, death.count);
        sentence(text, &format!("  {label:<w$}", w = TIMES - 2), &entry, width);
    }
    if dead_lettered_message.may_have_more {
        sentence(
            text,
            "                 ",
            "and the entries of the published copies, on RabbitMQ 3.13 and earlier",
            width,
        );
    }
}

/// Writes the command that replays the messages in a dead-letter queue.
fn replay_command(
    text: &mut String,
    lifecycle: &Lifecycle,
    queue: &QueueName,
    source: Option<&QueueName>,
    view: &View<'_>,
) {
    let source = source.map_or_else(String::new, |source| format!(" --source {}", quote(source.as_str())));
    let (queue, vhost) = (quote(queue.as_str()), quote(lifecycle.vhost.as_str()));
    let _ = writeln!(text, "  topo dlq replay {queue}{source} --vhost {vhost}{}", view.connection);
}

fn replay_steps(text: &mut String, replay: &Replay, width: usize) {
    let how = format!(
        "without topo: publish a copy of the body and properties to {}, without x-death and the other headers of the \
         failed deliveries; then basic.ack the original message",
        publish_target(&replay.publish)
    );
    sentence(text, "  ", &how, width);
    for warning in &replay.warnings {
        let mut lines = String::new();
        sentence(&mut lines, "  warnings       ", warning, width);
        text.push_str(&lines.replacen("warnings", &Painted(YELLOW, "warnings").to_string(), 1));
    }
}

/// Writes a table of the settings. If the table is wider than `width`, puts each origin on a separate line below its
/// setting.
fn settings(text: &mut String, settings: &[SettingOrigin], width: usize) {
    let rows: Vec<[String; 4]> = settings
        .iter()
        .map(|it| {
            let at = it.at.as_ref().map_or_else(String::new, position);
            let no_effect = it.no_effect.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            [it.key.clone(), it.value.clone() + &no_effect, it.set_by.clone(), at].map(|cell| clean(&cell))
        })
        .collect();
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(widest);
    let is_narrow = widths.iter().sum::<usize>() + 2 * widths.len() > width;
    for [key, value, set_by, at] in &rows {
        let pad = |cell: &str, width: usize| " ".repeat(width.saturating_sub(columns(cell)));
        let key = format!("  {key}{}  ", pad(key, widths[0]));
        if is_narrow {
            sentence(text, &key, value, width);
            let below = " ".repeat(columns(&key) + 2);
            let parts = [set_by.clone(), at.clone()].into_iter().filter(|part| !part.is_empty());
            sentence(text, &below, &parts.collect::<Vec<_>>().join(", "), width);
        } else {
            let line = format!("{key}{value}{}  {set_by}{}  {at}", pad(value, widths[1]), pad(set_by, widths[2]));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
}

fn explain_tier(text: &mut String, tier: &TierDescription, view: &View<'_>) {
    let width = view.width;
    let (tier_of, vhost) = (format!("tier of {}", tier.queue), format!("vhost {}", tier.vhost));
    let parts = [tier.tier.to_string(), tier_of, vhost, view.version.to_owned()];
    heading(text, &parts, width);
    text.push('\n');
    let (queue, wait) = (&tier.queue, &tier.wait.text);
    let waits = format!(
        "A message of {queue} that failed {} waits here for {wait} before retry {}. Then it expires and returns \
         through {} with key {}. A tier must not have any consumers.",
        times(tier.retry),
        tier.retry,
        tier.exchange,
        tier.routing_key
    );
    sentence(text, "  ", &waits, width);
    let counts = live_counts(view.live, &tier.vhost, &tier.tier);
    if let Some(counts) = counts.strip_prefix(" · ") {
        sentence(text, "  ", &format!("Now: {counts}."), width);
    }
    if !tier.is_generated {
        let retired = format!(
            "The current spec does not generate this tier: {queue} has different retries, or none. An existing tier \
             with this name is retired: it receives no new messages, and drains automatically."
        );
        sentence(text, "  ", &retired, width);
    }
    let at = tier.at.as_ref().map_or_else(String::new, |at| format!(" ({})", position(at)));
    sentence(text, "  ", &format!("The retries of {queue}{at}:"), width);
    explain_command(text, queue, view);
}

/// Writes the command that explains a queue from the same specs.
fn explain_command(text: &mut String, queue: &QueueName, view: &View<'_>) {
    let _ = writeln!(text, "  topo explain {}{}", quote(queue.as_str()), view.flags);
}

fn times(number: u32) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    }
}
