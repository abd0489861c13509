//! Describes the routing changes between two topologies. A change contains the queues that gain or lose messages, and
//! an example message with the queues that receive it before and after the change.

use super::demand::ExampleMessage;
use super::losses::{Cause, EntryAndCause, Extent, Losses, losses};
use super::search::NotCompared;
use crate::model::{Binding, Destination, ExchangeName, QueueName};
use crate::rabbitmq::routing::{Route, Routing, Unclear};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of messages that topo examines to find a message that a change does not affect.
const MAX_CANDIDATES: usize = 20;

/// A change in the queues that receive messages published to an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryChange {
    /// The exchange to which the messages are published.
    pub entry: ExchangeName,
    /// The cause.
    pub cause: Cause,
    /// The queues that no longer receive some messages.
    pub lost: BTreeSet<QueueName>,
    /// The queues that receive some messages only after the change.
    pub gained: BTreeSet<QueueName>,
    /// The extent of the change.
    pub extent: Extent,
    /// An example of an affected message.
    pub example: ExampleMessage,
    /// The queues that receive the example before the change.
    pub before: Reached,
    /// The queues that receive the example after the change.
    pub after: Reached,
}

/// The queues that receive a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The first queues by name, up to a limit.
    pub queues: BTreeSet<QueueName>,
    /// The total number of queues.
    pub total: usize,
    /// The reason why additional queues may receive the message; `None` if the route is certain.
    pub unclear: Option<Unclear>,
}

impl Reached {
    /// The maximum number of listed queues. A fanout exchange can route each of many examples to thousands of queues.
    const MAX_LISTED: usize = 20;

    fn of(Route { certain_queues, unclear, .. }: Route) -> Self {
        let total = certain_queues.len();
        let queues = certain_queues.into_iter().take(Self::MAX_LISTED).collect();
        Self { queues, total, unclear }
    }
}

/// The routing changes between two topologies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingDifference {
    /// The changes, by exchange and cause.
    pub changes: Vec<EntryChange>,
    /// Examples of messages that reach a queue before the changes, but no queue after them, by exchange.
    pub losses: BTreeMap<ExchangeName, ExampleMessage>,
    /// The causes whose effects topo could not compare, each with the reason.
    pub not_compared: BTreeMap<EntryAndCause, NotCompared>,
}

/// Compares the routing of messages that are published to the exchanges in `entries`.
pub fn routing_changes<'a>(
    before: &Routing<'a>,
    after: &Routing<'a>,
    entries: &BTreeSet<ExchangeName>,
) -> RoutingDifference {
    let (lost, gained) = (losses(before, after, entries), losses(after, before, entries));
    let mut changes = RoutingDifference::default();
    // Many changes have the same example, so its routes are computed only once.
    let mut known: BTreeMap<(&ExchangeName, ExampleMessage), (Reached, Reached)> = BTreeMap::new();
    for ((entry, _), example) in &lost.complete {
        changes.losses.entry(entry.clone()).or_insert_with(|| example.clone());
    }
    let keys: BTreeSet<&EntryAndCause> = lost.queues.keys().chain(gained.queues.keys()).collect();
    for key in keys {
        let (entry, cause) = key;
        let queues = |of: &Losses| -> BTreeSet<QueueName> {
            of.queues.get(key).into_iter().flat_map(BTreeMap::keys).cloned().collect()
        };
        let found = || [&lost, &gained].into_iter().filter_map(|it| it.queues.get(key)).flat_map(BTreeMap::values);
        let examples = found().map(|loss| &loss.example);
        let extents = || found().map(|loss| &loss.extent);
        let (of_lost, of_gained) = (queues(&lost), queues(&gained));
        // A message that still reaches one of the queues may no longer reach a different queue.
        let is_unaffected = |message: &ExampleMessage| {
            let (was, is) = (before.route(entry, &message.message()), after.route(entry, &message.message()));
            let is_certain = was.unclear.is_none() && is.unclear.is_none();
            let (was, is) = (was.certain_queues, is.certain_queues);
            is_certain
                && of_lost.iter().all(|queue| !was.contains(queue) || is.contains(queue))
                && of_gained.iter().all(|queue| !is.contains(queue) || was.contains(queue))
        };
        let candidates: BTreeSet<&ExampleMessage> = extents()
            .filter_map(|it| match it {
                Extent::Except(message) => Some(message),
                Extent::All | Extent::Unknown => None,
            })
            .collect();
        let except = candidates.into_iter().take(MAX_CANDIDATES).find(|message| is_unaffected(message));
        // Queues other than the binding's destination receive only some of the messages that the binding matches.
        let is_own = |binding: &Binding, queues: &BTreeSet<QueueName>| {
            binding.source == *entry
                && queues.iter().all(|queue| binding.destination == Destination::Queue(queue.clone()))
        };
        let is_complete = match cause {
            Cause::Binding(binding) => is_own(binding, &of_lost) && is_own(binding, &of_gained),
            Cause::Alternate(_) | Cause::Type(_) => false,
        };
        let all = is_complete && extents().all(|it| *it == Extent::All);
        let extent = match except {
            Some(message) => Extent::Except(message.clone()),
            None if all => Extent::All,
            None => Extent::Unknown,
        };
        // A message that no longer reaches any queue is the most important example.
        let Some(example) = lost.complete.get(key).into_iter().chain(examples).next().cloned() else { continue };
        let reached = |routing: &Routing<'_>| Reached::of(routing.route(entry, &example.message()));
        let known = known.entry((entry, example.clone()));
        let (was, is) = known.or_insert_with(|| (reached(before), reached(after))).clone();
        changes.changes.push(EntryChange {
            entry: entry.clone(),
            cause: cause.clone(),
            lost: of_lost,
            gained: of_gained,
            extent,
            before: was,
            after: is,
            example,
        });
    }
    changes.not_compared = lost.not_compared.into_iter().chain(gained.not_compared).collect();
    changes
}
