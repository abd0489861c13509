//! The spec entry of one queue: its current arguments, without those that shorter keys express.

use super::recognize::Recognized;
use super::schedule;
use super::value::{self, with_unit};
use super::yaml::{Entry, Tree, entry};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::{ArgumentValue, Arguments, Queue, QueueName, QueueType, Strategy, Topology};
use crate::rabbitmq::routing::DeadLettering;
use crate::spec::Wiring;
use std::collections::BTreeMap;

/// What a spec says of one queue, before defaults are taken out.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// Its type.
    pub(super) queue_type: Option<Tree>,
    /// By argument, what has a key of its own.
    pub(super) keys: BTreeMap<&'static str, Tree>,
    /// `maxRetries` and `retry`.
    pub(super) retry: Vec<Entry>,
    /// `deadLetter`.
    pub(super) dead_letter: Option<Tree>,
    /// `arguments`.
    pub(super) arguments: Option<Entry>,
    /// Which defaults it takes.
    pub(super) kind: Option<QueueType>,
    /// Whether it is a dead-letter queue.
    pub(super) is_dead_letter_queue: bool,
}

/// The arguments that are not said by their own keys.
const WIRES: [&str; 3] = ["x-queue-type", "x-dead-letter-exchange", "x-dead-letter-routing-key"];

/// All that is to be said of a queue.
pub(super) fn said(kept: &Topology, recognized: &Recognized, name: &QueueName, queue: &Queue) -> Said {
    let wires = recognized.dead_lettering(kept, name);
    let as_dead_letter_queue = recognized.dead_letter_queues.get(name);
    let (mut retry, mut arguments) = (Vec::new(), queue.arguments.clone());
    let mut end = match recognized.tiered.get(name) {
        Some(tiered) => {
            retry = schedule::tiers(tiered.strategy, &tiered.delays);
            tiered.end.clone()
        }
        None => {
            if recognized.counted.contains(name) {
                retry = counted(queue, &mut arguments);
            }
            wires.as_ref().map(|(wires, _)| wires.clone())
        }
    };
    if as_dead_letter_queue.is_some_and(|it| it.has_own_limit) {
        arguments.remove("x-delivery-limit");
    }
    let wiring = wires.map_or(Wiring::Arguments, |(_, wiring)| wiring);
    // A word that is no key of a binding, which nobody could delete, is a fine key of dead letters; as an argument it is one.
    let is_reserved = |end: &DeadLettering| matches!(end.routing_key.as_deref(), Some("null" | "undefined"));
    let in_arguments = wiring == Wiring::Arguments && end.as_ref().is_some_and(is_reserved);
    if in_arguments {
        end = None;
    }
    let has_key = |name: &str| match KnownArgument::named(name) {
        Some(_) => name == WIRES[0] || !WIRES.contains(&name) || !in_arguments,
        None => false,
    };
    let own = KNOWN_ARGUMENTS.iter().filter(|known| !WIRES.contains(&known.name));
    let keys = own.filter_map(|known| Some((known.name, with_unit(known.name, arguments.get(known.name)?))));
    Said {
        queue_type: Some(Tree::text(queue.type_name())),
        keys: keys.collect(),
        retry,
        dead_letter: end.map(|end| dead_letter(recognized, &end, wiring)),
        arguments: value::arguments(value::but(&arguments, has_key)),
        kind: queue.queue_type(),
        is_dead_letter_queue: as_dead_letter_queue.is_some(),
    }
}

/// The retries that a quorum queue counts itself; what says them is taken out of the arguments.
fn counted(queue: &Queue, arguments: &mut Arguments) -> Vec<Entry> {
    let number = |name: &str| queue.arguments.get(name).and_then(ArgumentValue::as_integer);
    let Some(retries) = number("x-delivery-limit").and_then(|it| u32::try_from(it).ok()) else { return Vec::new() };
    let delays = ["x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max"];
    if !delays.iter().any(|name| arguments.contains_key(*name)) {
        arguments.remove("x-delivery-limit");
        return schedule::at_once(retries);
    }
    let is_all = queue.arguments.get("x-delayed-retry-type").and_then(ArgumentValue::as_text) == Some("all");
    let (Some(least), Some(most)) = (number(delays[1]), number(delays[2])) else { return Vec::new() };
    if !is_all || retries > schedule::MOST_WRITTEN || least.saturating_mul(i64::from(retries)) < most || least > most {
        return Vec::new();
    }
    arguments.retain(|name, _| name != "x-delivery-limit" && !delays.contains(&name.as_str()));
    let waits = (1..=i64::from(retries)).map(|number| least.saturating_mul(number).min(most));
    schedule::tiers(Strategy::Delayed, &waits.collect::<Vec<_>>())
}

/// Where dead letters go: to a dead-letter queue by its name where its exchange and key are meant.
fn dead_letter(recognized: &Recognized, end: &DeadLettering, wiring: Wiring) -> Tree {
    let named = recognized.dead_letter_queues.iter();
    let mut named =
        named.filter(|(name, it)| it.exchange == end.exchange && it.key_of_letters(name) == end.routing_key);
    let by_policy = (wiring == Wiring::Policy).then(|| entry("wiring", Tree::plain("policy")));
    match named.next() {
        // The word that says "nowhere" is no name.
        Some((name, _)) if by_policy.is_none() && name.as_str() != "none" => Tree::text(name.as_str()),
        Some((name, _)) => Tree::table([entry("queue", Tree::text(name.as_str()))].into_iter().chain(by_policy)),
        None => {
            let key = end.routing_key.as_ref().map(|key| entry("routingKey", Tree::text(key)));
            let exchange = entry("exchange", Tree::text(end.exchange.as_str()));
            Tree::table([exchange].into_iter().chain(key).chain(by_policy))
        }
    }
}

impl Said {
    /// What is said of the queue itself, in the order in which people write it.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let key = |known: &KnownArgument| self.keys.get(known.name).map(|it| entry(known.key, it.clone()));
        let queue_type = self.queue_type.iter().map(|it| entry("type", it.clone()));
        let keys = queue_type.chain(KNOWN_ARGUMENTS.iter().filter_map(key)).chain(self.retry.iter().cloned());
        keys.chain(self.dead_letter.iter().map(|it| entry("deadLetter", it.clone()))).collect()
    }
}
