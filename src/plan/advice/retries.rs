//! Keeps the current retries. Their arguments on a queue are generated, so the spec has to declare the retries and not
//! the arguments.

use super::keep::{DEAD_LETTER, Said, by_policy, dead_letter_yaml};
use super::{Subject, exchange_named, places, yaml};
use crate::model::units::duration;
use crate::model::{ArgumentValue, Destination, ExchangeName, Object, ObjectId, Queue, QueueName, Strategy, naming};
use crate::plan::document::FieldVerdict;
use crate::plan::retries;

/// The queue for whose retries an exchange is desired, which therefore cannot be what it is.
pub(super) fn needed_by<'a>(subject: &Subject<'a>) -> Option<&'a QueueName> {
    let Object::Exchange(name, _) = subject.before else { return None };
    let id = ObjectId::Exchange(name.clone());
    let mut families = subject.context.desired.scope.families.iter();
    families.find(|family| family.members.contains(&id)).map(|family| &family.queue)
}

/// Whether a field of a queue belongs to its retries, those that are live or those that are desired.
pub(super) fn owns(subject: &Subject<'_>, field: &str) -> bool {
    let Object::Queue(name, _) = subject.before else { return false };
    let is_one = |strategies: &[Strategy]| {
        let (old, new) = (retries::strategy_of(subject.context, name), desired(subject, name));
        // A limit may be there without any retries.
        (new.is_some() || old == Some(Strategy::Ladder)) && strategies.iter().any(|it| [old, new].contains(&Some(*it)))
    };
    match field {
        "x-dead-letter-exchange" | "x-dead-letter-routing-key" => is_one(&[Strategy::Ladder]),
        "x-delivery-limit" => is_one(&[Strategy::Redeliver, Strategy::Delayed]),
        "x-delayed-retry-type" | "x-delayed-retry-min" | "x-delayed-retry-max" => is_one(&[Strategy::Delayed]),
        _ => false,
    }
}

fn desired(subject: &Subject<'_>, queue: &QueueName) -> Option<Strategy> {
    let families = &subject.context.desired.scope.families;
    families.iter().find(|family| family.queue == *queue).map(|family| family.strategy)
}

/// What the spec has to say so that the queue retries as it does now, and its dead letters go where they go now.
pub(super) fn live(subject: &Subject<'_>, said: &mut Said, name: &QueueName, queue: &Queue, own: &[&FieldVerdict]) {
    let context = subject.context;
    let old = retries::strategy_of(context, name);
    let integer = |argument: &str| queue.arguments.get(argument).and_then(ArgumentValue::as_integer);
    let limit = integer("x-delivery-limit");
    let delays = match old {
        Some(Strategy::Ladder | Strategy::Republish) => retries::live_delays(context, name),
        Some(Strategy::Delayed) => limit.zip(integer("x-delayed-retry-min")).map(|(limit, first)| {
            let longest = integer("x-delayed-retry-max").unwrap_or(i64::MAX);
            (1..=limit).map(|attempt| first.saturating_mul(attempt).min(longest)).collect()
        }),
        Some(Strategy::Redeliver) | None => Some(Vec::new()),
    };
    let written: Option<Vec<String>> = delays.and_then(|delays| delays.into_iter().map(duration).collect());
    let count = match old {
        Some(Strategy::Redeliver | Strategy::Delayed) => limit,
        Some(Strategy::Ladder | Strategy::Republish) | None => {
            written.as_ref().and_then(|delays| i64::try_from(delays.len()).ok())
        }
    };
    match (old, written, count) {
        (None, _, _) => {
            said.keys.push(("retry".to_owned(), "none".to_owned()));
            said.keys.push(("maxRetries".to_owned(), "0".to_owned()));
        }
        (Some(old), Some(delays), Some(count)) => {
            let mut entries = vec![("strategy", old.to_string())];
            entries.extend((!delays.is_empty()).then(|| ("delays", format!("[{}]", delays.join(", ")))));
            said.keys.push(("maxRetries".to_owned(), count.to_string()));
            said.keys.push(("retry".to_owned(), yaml::flow(entries.into_iter())));
        }
        (Some(_), _, _) => said.unsayable.extend(own.iter().map(|field| field.field.clone())),
    }
    end(subject, said, name, queue, old);
}

/// The place of its dead letters, where the spec has another.
fn end(subject: &Subject<'_>, said: &mut Said, name: &QueueName, queue: &Queue, old: Option<Strategy>) {
    let (context, topology) = (subject.context, &subject.context.desired.topology);
    let by_argument = |queue: &Queue| {
        let exchange = exchange_named(queue.arguments.get("x-dead-letter-exchange"));
        (exchange, queue.arguments.get("x-dead-letter-routing-key").and_then(ArgumentValue::as_text).map(str::to_owned))
    };
    let exchange = |destination: &Destination| match destination {
        Destination::Exchange(name) => Some(name.clone()),
        Destination::Queue(_) => None,
    };
    let live: (Option<ExchangeName>, Option<String>) = match old {
        Some(Strategy::Ladder) => {
            (retries::live_end(context, name).and_then(|binding| exchange(&binding.destination)), None)
        }
        Some(Strategy::Republish | Strategy::Redeliver | Strategy::Delayed) | None => by_argument(queue),
    };
    let over = naming::over_exchange(name);
    let desired = match (desired(subject, name), topology.queues.get(name)) {
        (Some(Strategy::Ladder), _) => {
            let mut ends = topology.bindings.iter().filter(|binding| binding.source == over);
            (ends.find_map(|binding| exchange(&binding.destination)), None)
        }
        (_, Some(queue)) => by_argument(queue),
        (_, None) => return,
    };
    if live == desired {
        return;
    }
    places::move_dead_letter(subject, said);
    match live {
        (Some(exchange), key) => {
            said.keys.push((DEAD_LETTER.to_owned(), dead_letter_yaml(&exchange, key.as_deref(), false)));
            said.exchanges.push(exchange);
        }
        (None, _) => match by_policy(subject, queue) {
            Some(by_policy) => {
                said.keys.push((DEAD_LETTER.to_owned(), by_policy.yaml()));
                said.exchanges.push(by_policy.to.exchange);
            }
            None => said.keys.push((DEAD_LETTER.to_owned(), "none".to_owned())),
        },
    }
}
