//! Renders the events of a simulation as a timeline.

use crate::cases::time;
use crate::model::QueueName;
use crate::model::count::count;
use crate::model::printable::clean;
use crate::render::style::{DIM, Painted, fold};
use crate::simulation::{Event, EventKind, Outcome};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum number of events that are shown for a failed case.
const MAX_EVENTS: usize = 40;

/// Writes the events of a simulation and the final states of the message copies.
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
        EventKind::Published { exchange, routing_key, more_keys, queues } => {
            let exchange = match exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange {}", clean(name)),
            };
            let word = if more_keys.is_empty() { "routing key" } else { "routing keys" };
            let keys = std::iter::once(routing_key).chain(more_keys).map(|key| format!("\"{}\"", clean(key)));
            format!("published to {exchange} with {word} {} → {}", keys.collect::<Vec<_>>().join(", "), names(queues))
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
            format!("{}: dropped ({reason}, no dead-letter exchange)", clean(queue.as_str()))
        }
        EventKind::DeadLettered { queue, reason, exchange: Some(exchange), queues } => {
            let exchange = match exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange {}", clean(name)),
            };
            format!("{}: dead-lettered ({reason}) to {exchange} → {}", clean(queue.as_str()), names(queues))
        }
        EventKind::Refused { queue } => format!("{}: rejected the message (the queue is full)", clean(queue.as_str())),
    }
}

fn names(queues: &BTreeSet<QueueName>) -> String {
    if queues.is_empty() {
        return "no queue".to_owned();
    }
    queues.iter().map(|queue| clean(queue.as_str())).collect::<Vec<_>>().join(", ")
}
