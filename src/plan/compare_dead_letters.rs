//! Compares the queues that receive dead-lettered messages from a queue before and after the steps of a plan.
//!
//! [`compare_routing`](super::compare_routing) compares the messages that are published or dead-lettered to an entry
//! exchange. This module covers the remaining cases. It compares queues whose dead-letter exchange or routing key
//! changes, and queues whose dead-letter exchange is not an entry, such as a generated exchange. The comparison uses
//! example messages: one for each routing key or pattern with which messages reach the queue, and one for each binding
//! of the dead-letter exchange.

use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::hazard::HazardKind;
use super::routing_changes::{DeadLetterChange, RoutedMessage};
use crate::model::count::number;
use crate::model::naming::{TierName, retry_key};
use crate::model::{Arguments, BrokerVersion, Destination, ExchangeName, ObjectId, QueueName, Topology};
use crate::rabbitmq::routing::{Arrivals, Certainty, DeadLettering, Keys, Message, Reason, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of examples for a queue.
const MAX_KEYS: usize = 50;
/// The maximum number of queues in the text of a hazard.
const MAX_QUEUES: usize = 5;

/// The routing before and after the plan.
pub(super) struct Sides<'r, 'a> {
    pub(super) before: &'r Routing<'a>,
    pub(super) after: &'r Routing<'a>,
    /// The entry exchanges: exchanges that receive messages directly from applications or queues.
    pub(super) entries: &'r BTreeSet<ExchangeName>,
}

/// The queues that receive a dead-lettered message after all retries.
#[derive(PartialEq, Eq)]
struct FinalQueues {
    queues: BTreeSet<QueueName>,
    unclear: Option<String>,
}

/// Compares the dead-lettered messages from each queue before and after the plan. Adds a hazard for each queue that
/// still has a dead-letter exchange, if some of its dead-lettered messages no longer reach a queue.
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
    for name in candidates {
        let (keys, are_certain) = examples(sides, &arrivals, &bindings, name);
        let mut found: Vec<DeadLetterChange> = Vec::new();
        for reason in reasons(sides, name) {
            let Some(change) = change(context, sides, (name, reason), &keys) else { continue };
            let same = found.iter_mut().find(|it| effect(it) == effect(&change));
            match same {
                Some(same) => same.reasons.extend(change.reasons),
                None => found.push(change),
            }
        }
        for change in found.iter().filter(|_| are_certain) {
            hazard(builder, sides, change);
        }
        changes.extend(found);
    }
    changes
}

/// Returns the fields that describe the effect of the change.
fn effect(it: &DeadLetterChange) -> impl PartialEq + use<'_> {
    (&it.lost, &it.gained, &it.example, &it.before, &it.after, &it.unknown)
}

/// Returns the reasons for which a queue dead-letters messages under its settings before or after the plan. Ignores the
/// per-message `expiration`.
fn reasons(sides: &Sides<'_, '_>, name: &QueueName) -> BTreeSet<Reason> {
    let mut reasons: BTreeSet<Reason> = [Reason::Rejected].into();
    for routing in [sides.before, sides.after] {
        if let Some(queue) = routing.topology().queues.get(name) {
            reasons.extend(Reason::without_rejection(&routing.settings_of(name, queue)));
        }
    }
    reasons
}

/// Returns the queues that exist before and after the plan, and whose dead-lettered messages can reach different
/// queues. Omits tiers and queues that topo created for its own use.
fn candidates<'a>(sides: &Sides<'_, 'a>) -> Vec<&'a QueueName> {
    let (before, after) = (sides.before.topology(), sides.after.topology());
    let changed = changed_exchanges(before, after);
    let alternates = alternates(sides);
    let routes = exchange_routes(before, after, &alternates);
    let is_changed = |name: &QueueName| {
        let (was, is) = (sides.before.dead_lettering(name), sides.after.dead_lettering(name));
        if was != is {
            return true;
        }
        // The default exchange routes a message to the queue whose name is the routing key.
        let is_missing = |topology: &Topology, to: &DeadLettering| {
            let key = to.routing_key.as_deref().unwrap_or(name.as_str());
            !topology.queues.contains_key(&QueueName::new(key))
        };
        let mut to_default = is.iter().flatten().filter(|to| to.exchange.as_str().is_empty());
        if to_default.any(|to| is_missing(before, to) != is_missing(after, to)) {
            return true;
        }
        // Skips entry exchanges: `compare_routing` covers the messages that are sent to them, with all keys.
        let mut open: Vec<&ExchangeName> = is.iter().flatten().map(|to| &to.exchange).collect();
        let mut seen = BTreeSet::new();
        while let Some(exchange) = open.pop() {
            if sides.entries.contains(exchange) || !seen.insert(exchange) {
                continue;
            }
            if changed.contains(exchange) {
                return true;
            }
            open.extend(routes.get(exchange).into_iter().flatten());
        }
        false
    };
    let queues = after.queues.iter().filter(|(name, queue)| {
        let is_own = TierName::parse(name).is_some() || queue.is_created_by_topo();
        before.queues.contains_key(*name) && !is_own && is_changed(name)
    });
    queues.map(|(name, _)| name).collect()
}

/// Returns the exchanges whose definition or bindings change.
fn changed_exchanges<'a>(before: &'a Topology, after: &'a Topology) -> BTreeSet<&'a ExchangeName> {
    let bindings = before.bindings.symmetric_difference(&after.bindings).map(|binding| &binding.source);
    let names = before.exchanges.keys().chain(after.exchanges.keys());
    bindings.chain(names.filter(|name| before.exchanges.get(*name) != after.exchanges.get(*name))).collect()
}

/// Returns the exchanges that have an alternate exchange, each paired with that alternate exchange.
fn alternates(sides: &Sides<'_, '_>) -> Vec<(ExchangeName, ExchangeName)> {
    let of = |routing: &Routing<'_>| -> Vec<_> {
        let names = routing.topology().exchanges.keys();
        names.flat_map(|name| routing.alternates(name).into_iter().map(|(to, _)| (name.clone(), to))).collect()
    };
    [sides.before, sides.after].into_iter().flat_map(of).collect()
}

/// Returns, for each exchange, the exchanges to which it can route messages: its alternate exchanges, and the
/// destinations of its bindings.
fn exchange_routes<'r>(
    before: &'r Topology,
    after: &'r Topology,
    alternates: &'r [(ExchangeName, ExchangeName)],
) -> BTreeMap<&'r ExchangeName, Vec<&'r ExchangeName>> {
    let mut routes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (exchange, alternate) in alternates {
        routes.entry(exchange).or_default().push(alternate);
    }
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

/// Returns example routing keys with which messages reach the queue both before and after the plan, together with true.
/// If no such key exists, returns keys with which messages reach the queue before or after the plan, together with
/// false.
fn examples(
    sides: &Sides<'_, '_>,
    arrivals: &[Arrivals; 2],
    bindings: &BTreeMap<&ExchangeName, BTreeSet<&str>>,
    queue: &QueueName,
) -> (Vec<String>, bool) {
    let targets = || [sides.before, sides.after].into_iter().flat_map(|it| it.dead_lettering(queue).iter().flatten());
    let [before, after] = [0, 1].map(|side| -> BTreeSet<Keys> {
        let arrivals = arrivals.get(side).into_iter();
        arrivals.flat_map(|it| targets().flat_map(|to| it.dead_lettered_keys(queue, to))).collect()
    });
    // If the broker replaces all keys, one example is sufficient.
    let is_replaced = targets().all(|to| to.routing_key.is_some());
    let max = if is_replaced { 1 } else { MAX_KEYS };
    let patterns = || before.iter().chain(&after).filter(|class| matches!(class, Keys::Like(_)));
    let bound =
        targets().flat_map(|to| bindings.get(&to.exchange)).flatten().map(|key| example_of(&Keys::of_topic(key)));
    let bound = bound.filter(|key| patterns().any(|class| includes(class, key)));
    let all = before.iter().chain(&after).map(example_of).chain(bound);
    let mut keys: Vec<String> = Vec::new();
    let mut one_sided: Vec<String> = Vec::new();
    for key in all {
        let arrives = |classes: &BTreeSet<Keys>| classes.iter().any(|class| includes(class, &key));
        let list = if arrives(&before) && arrives(&after) { &mut keys } else { &mut one_sided };
        if list.len() < max && !list.contains(&key) {
            list.push(key);
        }
        if keys.len() == max {
            break;
        }
    }
    if keys.is_empty() { (one_sided, false) } else { (keys, true) }
}

/// Returns an example routing key from the class.
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
    let mut example: Option<(u8, &String, FinalQueues, FinalQueues)> = None;
    for key in keys {
        let version = context.profile.version;
        let [was, is] = [sides.before, sides.after].map(|routing| final_queues(routing, queue, key, (reason, version)));
        if was == is {
            continue;
        }
        let is_certain = was.unclear.is_none() && is.unclear.is_none();
        if is_certain {
            lost.extend(was.queues.difference(&is.queues).cloned());
            gained.extend(is.queues.difference(&was.queues).cloned());
        }
        // The best example is a message that is dropped after the plan.
        let rank = match (is_certain, was.queues.is_empty(), is.queues.is_empty()) {
            (true, false, true) => 2,
            (true, _, _) => 1,
            (false, _, _) => 0,
        };
        if example.as_ref().is_none_or(|(known, ..)| *known < rank) {
            example = Some((rank, key, was, is));
        }
    }
    let (_, key, was, is) = example?;
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

/// Returns the queues that ultimately receive a message that the queue dead-letters after each delivery. Omits tiers,
/// which return the message to the queue.
fn final_queues(
    routing: &Routing<'_>,
    queue: &QueueName,
    key: &str,
    (reason, version): (Reason, BrokerVersion),
) -> FinalQueues {
    let mut found = FinalQueues { queues: BTreeSet::new(), unclear: None };
    let targets = routing.dead_lettering(queue);
    if targets.len() > 1 {
        found.unclear = Some("different policies may govern the queue".to_owned());
    }
    let (mut open, mut seen) = (vec![key.to_owned()], BTreeSet::new());
    while let Some(key) = open.pop() {
        if !seen.insert(key.clone()) {
            continue;
        }
        let message = Message::published(&key, &Arguments::new());
        for to in targets.iter().flatten() {
            let route = routing.route(&to.exchange, &routing.to_dead_lettered(&message, queue, reason, to));
            found.unclear = found.unclear.take().or_else(|| route.unclear.map(|unclear| unclear.to_string()));
            for target in route.certain_queues.into_iter().chain(route.possible_queues) {
                match TierName::parse(&target).filter(|tier| tier.queue == *queue) {
                    // Without a rejection, RabbitMQ 3.12 and earlier treat the tier as part of a cycle, and drop the
                    // message.
                    Some(_) if reason != Reason::Rejected && !version.is_at_least(3, 13) => {}
                    Some(tier) => open.push(retry_key(queue, tier.number)),
                    // The broker drops a message that returns to the queue without a rejection (a cycle).
                    None if target == *queue && reason != Reason::Rejected => {}
                    None => drop(found.queues.insert(target)),
                }
            }
        }
    }
    found
}

/// Adds a hazard if the messages in the example reach no queue after the plan. The removal of a dead-letter exchange is
/// a separate hazard.
fn hazard(builder: &mut PlanBuilder, sides: &Sides<'_, '_>, change: &DeadLetterChange) {
    let has_target = sides.after.dead_lettering(&change.queue).iter().any(Option::is_some);
    if !has_target || change.before.is_empty() || !change.after.is_empty() || change.unknown.is_some() {
        return;
    }
    let queue = sides.after.topology().queues.get(&change.queue);
    let settings = queue.map(|queue| sides.after.settings_of(&change.queue, queue));
    let fate = match settings.is_some_and(|settings| settings.is_at_least_once()) {
        true => "will remain in the queue",
        false => "will be dropped",
    };
    let names: Vec<&str> = change.before.iter().map(QueueName::as_str).take(MAX_QUEUES).collect();
    let more = match change.before.len() - names.len() {
        0 => String::new(),
        more => format!(" and {} more", number(more as u64)),
    };
    let text = format!(
        "some messages that this queue dead-letters {fate}; for example, messages with {} and the reason {}, which \
         currently reach {}{more}",
        change.example,
        change.reasons.join(" or "),
        names.join(", ")
    );
    builder.hazard(HazardKind::RoutingLoss, &change.address, text, None);
}
