//! What is around a queue that is migrated, and does not take it lightly.

use super::Obstacle;
use crate::behaviour::routing::{Keys, Message, Reason, Routing};
use crate::model::{Destination, Exchange, ExchangeName, QueueName};
use crate::plan::situation::Situation;
use std::collections::BTreeSet;

/// The exchanges that are bound to a queue.
fn sources<'a>(
    situation: &'a Situation<'_>,
    name: &'a QueueName,
) -> impl Iterator<Item = (&'a ExchangeName, &'a Exchange)> {
    let is_there = |destination: &Destination| matches!(destination, Destination::Queue(queue) if queue == name);
    let bindings = situation.current.bindings.iter().filter(move |binding| is_there(&binding.destination));
    let names: BTreeSet<&ExchangeName> = bindings.map(|binding| &binding.source).collect();
    names.into_iter().filter_map(|source| Some((source, situation.current.exchanges.get(source)?)))
}

/// A source that allows no tap: it is bound to the tap for a while, and to the queue again.
pub(super) fn obstacle(situation: &Situation<'_>, name: &QueueName) -> Option<Obstacle> {
    sources(situation, name).find_map(|(source, exchange)| {
        let why = match exchange.kind.as_str() {
            // Measured: of 10 messages that it remembered 30 were in the queue afterwards.
            "x-recent-history" => "it sends what it remembers to each new binding, so that messages come three times",
            // Refused by the broker.
            "x-local-random" => "it can be bound to queues alone, and `migrate` puts an exchange before the queue",
            _ => return None,
        };
        Some(Obstacle {
            text: format!("exchange {source} is of type {}: {why}", exchange.kind),
            lift: Some(format!(
                "take the binding from {source} away for the while, or wait until the queue is empty (ifEmpty)"
            )),
        })
    })
}

/// The sources that divide their keys among all that is bound, and do it anew with each change of a binding.
pub(super) fn dividing<'a>(situation: &'a Situation<'_>, name: &'a QueueName) -> Vec<&'a ExchangeName> {
    let divides = |kind: &str| kind == "x-consistent-hash" || kind == "x-modulus-hash";
    sources(situation, name).filter(|(_, exchange)| divides(&exchange.kind)).map(|(source, _)| source).collect()
}

/// Whether dead letters of a queue can come back to it: retries, as a rule.
pub(super) fn comes_back(situation: &Situation<'_>, name: &QueueName) -> bool {
    let external = BTreeSet::new();
    let routing = Routing::new(situation.current, situation.operator_policies, &external, situation.dialect);
    let (mut seen, mut todo) = (BTreeSet::new(), vec![name.clone()]);
    while let Some(queue) = todo.pop() {
        let ways = routing.route_dead_letter(&Message::with(Keys::any()), &queue, Reason::Rejected);
        for next in ways.into_values().flat_map(|route| route.surely.into_iter().chain(route.perhaps)) {
            if next == *name {
                return true;
            }
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    false
}
