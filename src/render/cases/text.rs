//! Renders results as text: a line for each case, and the differences and events of a failed case.

use super::{Counts, sentence};
use crate::cases::{CaseOutcome, CaseResult, FileReport, time};
use crate::model::QueueName;
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::render::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, columns, fold};
use crate::simulation::{Event, EventKind, Outcome};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum number of events of a failed case.
const MAX_EVENTS: usize = 40;

/// Renders the results of a test file.
pub fn text(report: &FileReport, width: usize) -> String {
    let mut text = String::new();
    let heading = format!(
        "{} · spec {} · vhost {} · RabbitMQ {}",
        clean(&report.file),
        clean(&report.specs),
        clean(report.vhost.as_str()),
        report.version
    );
    let _ = writeln!(text, "{}", Painted(BOLD, fold(&heading, width)));
    for result in &report.results {
        match &result.outcome {
            CaseOutcome::Passed => {
                line(&mut text, &Painted(GREEN, "pass").to_string(), &clean(&result.name), "", width)
            }
            CaseOutcome::Skipped => {
                line(&mut text, &Painted(YELLOW, "skip").to_string(), &clean(&result.name), "", width)
            }
            CaseOutcome::Failed { mismatches, simulated } => {
                let at = place(&report.file, result);
                line(&mut text, &Painted(RED, "FAIL").to_string(), &clean(&result.name), &at, width);
                for mismatch in mismatches {
                    let at = mismatch.at.and_then(|at| report.spec_position(at)).unwrap_or_default();
                    let folded = fold(&sentence(mismatch), width.saturating_sub(8));
                    let mut lines = folded.lines();
                    line_at(&mut text, lines.next().unwrap_or_default(), &at, width);
                    lines.for_each(|rest| line_at(&mut text, rest, "", width));
                    if let Some(because) = &mismatch.because {
                        line_at(&mut text, &fold(&clean(because), width.saturating_sub(8)), "", width);
                    }
                }
                events(&mut text, simulated, width);
            }
        }
    }
    text
}

/// Renders the numbers of cases: `12 cases: 11 passed, 1 failed`.
pub fn summary(reports: &[FileReport]) -> String {
    let counts = Counts::of(reports);
    let part = |number_of: u64, word: &str| (number_of > 0).then(|| format!("{} {word}", number(number_of)));
    let parts = [part(counts.passed, "passed"), part(counts.failed, "failed"), part(counts.skipped, "skipped")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}: {}\n", count(counts.all(), "case"), parts.join(", "))
}

fn place(file: &str, result: &CaseResult) -> String {
    format!("{}:{}", clean(file), result.at.line)
}

/// Writes a line of a case, with a position at the right margin.
fn line(text: &mut String, word: &str, name: &str, at: &str, width: usize) {
    let used = 7 + columns(name);
    let _ = writeln!(text, "  {word} {name}{}", right(used, at, width));
}

/// Writes a line of a failed case.
fn line_at(text: &mut String, sentence: &str, at: &str, width: usize) {
    let _ = writeln!(text, "       {sentence}{}", right(7 + columns(sentence), at, width));
}

/// Returns a position for the right margin, or in parentheses without room for it.
fn right(used: usize, at: &str, width: usize) -> String {
    if at.is_empty() {
        return String::new();
    }
    match width.checked_sub(used + columns(at)).filter(|room| *room >= 2) {
        Some(room) => format!("{}{}", " ".repeat(room), Painted(DIM, at)),
        None => format!(" {}", Painted(DIM, format!("({at})"))),
    }
}

/// Writes the events of a simulation.
pub(super) fn events(text: &mut String, simulated: &Outcome, width: usize) {
    let several = simulated.events.iter().any(|event| event.message > 1);
    for event in simulated.events.iter().take(MAX_EVENTS) {
        let message = if several { format!("message {}: ", event.message) } else { String::new() };
        let at = format!("{:<8}", time(event.at));
        let what = fold(&format!("{message}{}", event_text(event)), width.saturating_sub(17));
        let _ = writeln!(text, "         {}{}", Painted(DIM, at), what.replace('\n', "\n                 "));
    }
    let more = simulated.events.len().saturating_sub(MAX_EVENTS) as u64 + simulated.omitted_events;
    if more > 0 {
        let _ = writeln!(text, "         … {}", count(more, "more event"));
    }
    let ends: BTreeSet<String> =
        simulated.ends.iter().map(|copy| format!("{} in {}", copy.end.as_str(), clean(copy.queue.as_str()))).collect();
    if !ends.is_empty() {
        let ends = fold(&format!("ends: {}", ends.into_iter().collect::<Vec<_>>().join(", ")), width.saturating_sub(9));
        let _ = writeln!(text, "         {}", ends.replace('\n', "\n         "));
    }
}

fn event_text(event: &Event) -> String {
    match &event.kind {
        EventKind::Published { exchange, routing_key, queues } => {
            let exchange = match exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange {}", clean(name)),
            };
            format!("published to {exchange} with routing key \"{}\" → {}", clean(routing_key), names(queues))
        }
        EventKind::Delivered { queue, attempt, behavior, method } => {
            let queue = clean(queue.as_str());
            let method = method.map(|(method, requeue)| match requeue {
                Some(requeue) => format!(" ({}, requeue={requeue})", method.as_str()),
                None => format!(" ({})", method.as_str()),
            });
            match behavior {
                Some(behavior) => {
                    format!("{queue}: attempt {attempt}, {}{}", behavior.as_str(), method.unwrap_or_default())
                }
                None => format!("{queue}: unexpected delivery {attempt}"),
            }
        }
        EventKind::DeadLettered { queue, reason, exchange: None, .. } => {
            format!("{}: {reason}, dropped (no dead-letter exchange)", clean(queue.as_str()))
        }
        EventKind::DeadLettered { queue, reason, exchange: Some(exchange), queues } => {
            let exchange = match exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange {}", clean(name)),
            };
            format!("{}: {reason}, through {exchange} → {}", clean(queue.as_str()), names(queues))
        }
        EventKind::Refused { queue } => format!("{}: rejected the publish (queue full)", clean(queue.as_str())),
    }
}

fn names(queues: &BTreeSet<QueueName>) -> String {
    if queues.is_empty() {
        return "no queue".to_owned();
    }
    queues.iter().map(|queue| clean(queue.as_str())).collect::<Vec<_>>().join(", ")
}
