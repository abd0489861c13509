//! Compares the queues that receive the dead-lettered messages of a queue before and after the steps of a plan.
//!
//! [`compare_routing`](super::compare_routing) compares the messages to an exchange, also those that queues dead-letter to
//! it. This module compares the queues whose dead-letter exchange or routing key changes, and the queues whose dead-letter
//! exchange topo generated, because applications do not publish to it. The messages are examples: one for each routing key
//! or pattern with which messages reach the queue, and for each binding of the dead-letter exchange.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::hazard::HazardKind;
use super::routing_changes::{DeadLetterChange, RoutedMessage};
use crate::model::naming::{TierName, retry_key};
use crate::model::{Arguments, Destination, ExchangeName, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::rabbitmq::routing::{Arrivals, Certainty, Headers, Keys, Message, Reason, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of examples for a queue.
const MAX_KEYS: usize = 50;

/// The routing before and after the plan.
pub(super) struct Sides<'r, 'a> {
    pub(super) before: &'r Routing<'a>,
    pub(super) after: &'r Routing<'a>,
    /// The exchanges that receive messages from applications or queues.
    pub(super) entries: &'r BTreeSet<ExchangeName>,
}

/// The queues that receive a dead-lettered message after all retries.
#[derive(PartialEq, Eq)]
struct Ends {
    queues: BTreeSet<QueueName>,
    unclear: Option<String>,
}

/// Compares the dead letters, and adds a hazard for each queue whose messages reach a queue before, and no queue after the
/// plan, although it still has a dead-letter exchange.
pub(super) fn compare(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    sides: &Sides<'_, '_>,
) -> Vec<DeadLetterChange> {
    let candidates = candidates(sides);
    if candidates.is_empty() {
        return Vec::new();
    }
    let families = &context.desired.scope.families;
    let arrivals = [sides.before, sides.after].map(|routing| Arrivals::new(routing, families));
    let bindings = binding_keys(sides);
    let mut changes = Vec::new();
    for (name, queue) in candidates {
        let keys = examples(sides, &arrivals, &bindings, name);
        let mut found: Vec<DeadLetterChange> = Vec::new();
        for reason in reasons(queue) {
            let Some(change) = change(context, sides, (name, reason), &keys) else { continue };
            let same = found.iter_mut().find(|it| effect(it) == effect(&change));
            match same {
                Some(same) => same.reasons.extend(change.reasons),
                None => found.push(change),
            }
        }
        for change in &found {
            hazard(builder, sides, change);
        }
        changes.extend(found);
    }
    changes
}

/// Returns the change without its reasons.
fn effect(it: &DeadLetterChange) -> impl PartialEq + use<'_> {
    (&it.lost, &it.gained, &it.example, &it.before, &it.after, &it.unknown)
}

/// Returns the reasons for which a queue can dead-letter messages.
fn reasons(queue: &Queue) -> impl Iterator<Item = Reason> + use<> {
    let is_quorum = queue.queue_type() == Some(QueueType::Quorum);
    Reason::ALL.into_iter().filter(move |reason| is_quorum || *reason != Reason::DeliveryLimit)
}

/// Returns the queues that exist before and after the plan, and whose dead letters can change.
fn candidates<'a>(sides: &Sides<'_, 'a>) -> Vec<(&'a QueueName, &'a Queue)> {
    let (before, after) = (sides.before.topology(), sides.after.topology());
    let changed = changed_exchanges(before, after);
    let routes = exchange_routes(before, after);
    let is_changed = |name: &QueueName| {
        let (was, is) = (sides.before.dead_lettering(name), sides.after.dead_lettering(name));
        if was != is {
            return true;
        }
        let generated =
            is.iter().flatten().map(|to| &to.exchange).filter(|exchange| !sides.entries.contains(*exchange));
        let mut open: Vec<&ExchangeName> = generated.collect();
        let mut seen = BTreeSet::new();
        while let Some(exchange) = open.pop() {
            if changed.contains(exchange) {
                return true;
            }
            if seen.insert(exchange) {
                open.extend(routes.get(exchange).into_iter().flatten());
            }
        }
        false
    };
    let queues = after.queues.iter().filter(|(name, queue)| {
        let is_own = TierName::parse(name).is_some() || queue.is_created_by_topo();
        before.queues.contains_key(*name) && !is_own && is_changed(name)
    });
    queues.collect()
}

/// Returns the exchanges whose definition or bindings change.
fn changed_exchanges<'a>(before: &'a Topology, after: &'a Topology) -> BTreeSet<&'a ExchangeName> {
    let bindings = before.bindings.symmetric_difference(&after.bindings).map(|binding| &binding.source);
    let names = before.exchanges.keys().chain(after.exchanges.keys());
    bindings.chain(names.filter(|name| before.exchanges.get(*name) != after.exchanges.get(*name))).collect()
}

/// Returns the exchanges to which each exchange routes, by bindings and as alternate exchanges.
fn exchange_routes<'a>(before: &'a Topology, after: &'a Topology) -> BTreeMap<&'a ExchangeName, Vec<&'a ExchangeName>> {
    let mut routes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for binding in before.bindings.iter().chain(&after.bindings) {
        if let Destination::Exchange(destination) = &binding.destination {
            routes.entry(&binding.source).or_default().push(destination);
        }
    }
    routes
}

/// Returns the binding keys of each exchange.
fn binding_keys<'a>(sides: &Sides<'_, 'a>) -> BTreeMap<&'a ExchangeName, BTreeSet<&'a str>> {
    let mut keys: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for binding in sides.before.topology().bindings.iter().chain(&sides.after.topology().bindings) {
        keys.entry(&binding.source).or_default().insert(binding.routing_key.as_str());
    }
    keys
}

/// Returns routing keys with which messages reach the queue.
fn examples(
    sides: &Sides<'_, '_>,
    arrivals: &[Arrivals; 2],
    bindings: &BTreeMap<&ExchangeName, BTreeSet<&str>>,
    queue: &QueueName,
) -> Vec<String> {
    let mut keys = Vec::new();
    let mut add = |key: String| {
        if keys.len() < MAX_KEYS && !keys.contains(&key) {
            keys.push(key);
        }
    };
    for (routing, arrivals) in [sides.before, sides.after].into_iter().zip(arrivals) {
        for to in routing.dead_lettering(queue).iter().flatten() {
            let arriving = arrivals.dead_lettered_keys(queue, to);
            arriving.iter().map(example_of).for_each(&mut add);
            let bound = bindings.get(&to.exchange).into_iter().flatten().map(|key| example_of(&Keys::of_topic(key)));
            bound.filter(|key| arriving.iter().any(|class| includes(class, key))).for_each(&mut add);
        }
    }
    keys
}

/// Returns a key that is not a retry.
fn example_of(keys: &Keys) -> String {
    match keys {
        Keys::One(key) => key.clone(),
        Keys::Like(pattern) => pattern.replace(['*', '#'], "x"),
    }
}

fn includes(class: &Keys, key: &str) -> bool {
    match class {
        Keys::One(only) => only == key,
        Keys::Like(pattern) => Keys::One(key.to_owned()).match_topic(pattern) == Certainty::Always,
    }
}

/// Returns the change for a reason; `None` if no example reaches different queues.
fn change(
    context: &PlanContext<'_>,
    sides: &Sides<'_, '_>,
    (queue, reason): (&QueueName, Reason),
    keys: &[String],
) -> Option<DeadLetterChange> {
    let (mut lost, mut gained) = (BTreeSet::new(), BTreeSet::new());
    let mut example: Option<(&String, Ends, Ends)> = None;
    for key in keys {
        let [was, is] = [sides.before, sides.after].map(|routing| ends(routing, queue, key, reason));
        if was == is {
            continue;
        }
        lost.extend(was.queues.difference(&is.queues).cloned());
        gained.extend(is.queues.difference(&was.queues).cloned());
        // A message that is dropped is the best example.
        let is_better = example.as_ref().is_none_or(|(_, _, known)| !known.queues.is_empty() && is.queues.is_empty());
        if is_better {
            example = Some((key, was, is));
        }
    }
    let (key, was, is) = example?;
    let id = ObjectId::Queue(queue.clone());
    Some(DeadLetterChange {
        queue: queue.clone(),
        address: context.address(&id),
        source: context.source(&id),
        reasons: vec![reason.as_str().to_owned()],
        lost,
        gained,
        example: RoutedMessage { routing_key: key.clone(), headers: Arguments::new() },
        before: was.queues,
        after: is.queues,
        unknown: was.unclear.or(is.unclear),
    })
}

/// Returns the queues in which a message stays that the queue dead-letters after each delivery. Retries return the message
/// to the queue, so they are passed over.
fn ends(routing: &Routing<'_>, queue: &QueueName, key: &str, reason: Reason) -> Ends {
    let mut ends = Ends { queues: BTreeSet::new(), unclear: None };
    let targets = routing.dead_lettering(queue);
    if targets.len() > 1 {
        ends.unclear = Some("different policies may govern the queue".to_owned());
    }
    let (mut open, mut seen) = (vec![key.to_owned()], BTreeSet::new());
    while let Some(key) = open.pop() {
        if !seen.insert(key.clone()) {
            continue;
        }
        let message = Message { keys: Keys::One(key), headers: Headers::exactly(&Arguments::new()) };
        for to in targets.iter().flatten() {
            let route = routing.route(&to.exchange, &routing.to_dead_lettered(&message, queue, reason, to));
            ends.unclear = ends.unclear.take().or_else(|| route.unclear.map(|unclear| unclear.to_string()));
            for target in route.certain_queues.into_iter().chain(route.possible_queues) {
                match TierName::parse(&target).filter(|tier| tier.queue == *queue) {
                    Some(tier) => open.push(retry_key(queue, tier.number)),
                    // The broker drops a message in a cycle without a rejection.
                    None if target == *queue && reason != Reason::Rejected => {}
                    None => drop(ends.queues.insert(target)),
                }
            }
        }
    }
    ends
}

/// Adds the hazard of messages that are dropped after the plan. The removal of a dead-letter exchange is a hazard of its
/// own.
fn hazard(builder: &mut PlanBuilder, sides: &Sides<'_, '_>, change: &DeadLetterChange) {
    let has_target = sides.after.dead_lettering(&change.queue).iter().any(Option::is_some);
    if !has_target || change.before.is_empty() || !change.after.is_empty() || change.unknown.is_some() {
        return;
    }
    let queues: Vec<&str> = change.before.iter().map(QueueName::as_str).collect();
    let text = format!(
        "some messages that this queue dead-letters will be dropped; for example, messages with {} and the reason {}, \
         which currently reach {}",
        change.example,
        change.reasons.join(" or "),
        queues.join(", ")
    );
    builder.hazard(HazardKind::RoutingLoss, &change.address, text, None);
}
