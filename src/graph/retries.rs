//! Recognizes retries and dead-lettering. Folds objects that are generated for retries into their queue, and the
//! exchange of a dead-letter queue into that queue.
//!
//! Manual retries are marked, but not folded. In a manual retry, a worker rejects a message, which waits in a second
//! queue until it expires and then returns. The broker dead-letters the message twice, but this is not the end of its
//! lifecycle.

use super::parts::{ArrowKind, Mark, Retries, Tier};
use super::raw::{Link, Raw, members};
use crate::model::naming::TierName;
use crate::model::units::duration;
use crate::model::{ObjectId, Queue, QueueName, Strategy};
use crate::plan::{Desired, PlannedChange};
use crate::rabbitmq::routing::{Keys, Message, Reason};
use crate::rabbitmq::{BrokerProfile, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// A map from each folded object to the object whose box includes it.
pub(super) type Folds = BTreeMap<ObjectId, ObjectId>;

/// Returns the objects to fold.
pub(super) fn find_folds(raw: &Raw, desired: &Desired, changes: &[PlannedChange]) -> Folds {
    let generated = members(desired).into_iter().map(|(id, queue)| (id.clone(), queue.clone()));
    let retired = changes.iter().filter_map(|change| Some((change.id()?, change.retires.clone()?)));
    let mut folds: Folds = generated.chain(retired).map(|(id, queue)| (id, ObjectId::Queue(queue))).collect();
    // If the queue is not drawn, its generated objects are not folded.
    folds.retain(|id, queue| raw.nodes.contains_key(queue) && !matches!(id, ObjectId::Binding(_)));
    folds.extend(dead_letter_exchanges(raw, desired));
    folds
}

/// Returns the exchanges whose only destination is a dead-letter queue. An exchange whose mark differs from the queue's
/// mark is not folded, so that both marks are visible. Ignores in-place changes to the queue.
fn dead_letter_exchanges<'a>(raw: &'a Raw, desired: &'a Desired) -> impl Iterator<Item = (ObjectId, ObjectId)> + 'a {
    let mut onward: BTreeMap<&ObjectId, Vec<&Link>> = BTreeMap::new();
    for link in &raw.links {
        onward.entry(&link.from).or_default().push(link);
    }
    desired.sources.iter().filter_map(move |(id, source)| {
        let queue = ObjectId::Queue(source.part_of.clone()?);
        let (exchange, behind) = (raw.nodes.get(id)?, raw.nodes.get(&queue)?);
        let mark = behind.mark.filter(|mark| *mark != Mark::Changed);
        let is_to_queue = |link: &&Link| link.to == queue && link.mark == mark;
        let is_part = exchange.kind.is_exchange()
            && exchange.mark == mark
            && onward.get(id).is_some_and(|links| links.iter().all(is_to_queue));
        is_part.then(|| (id.clone(), queue))
    })
}

/// Returns the graph without the folded objects. Adds the folded retries to the boxes of their queues.
pub(super) fn fold(raw: &Raw, folds: &Folds, desired: &Desired, changes: &[PlannedChange]) -> Raw {
    let of = |id: &ObjectId| folds.get(id).unwrap_or(id).clone();
    let mut nodes = raw.nodes.clone();
    nodes.retain(|id, _| !folds.contains_key(id));
    for (queue, retries) in retries(raw, folds, desired, changes) {
        if let Some(node) = nodes.get_mut(&queue) {
            node.retries = Some(retries);
        }
    }
    let generated = members(desired);
    let declared: BTreeSet<&ObjectId> = desired.sources.iter().map(|(id, _)| id).collect();
    // Returns true for a link from a dead-letter queue to its own exchange: the dead-lettered messages return.
    let returns = |link: &Link| {
        let is_from_queue = link.kind == ArrowKind::DeadLetter && !folds.contains_key(&link.from);
        is_from_queue && declared.contains(&link.to) && !generated.contains_key(&link.to)
    };
    let is_shown = |link: &&Link| link.from == link.to || of(&link.from) != of(&link.to) || returns(link);
    let link = |link: &Link| {
        let is_from_retries = link.from != of(&link.from);
        // The routing key of a generated object does not help readers.
        let label = link.label.clone().filter(|_| !is_from_retries);
        Link { from: of(&link.from), to: of(&link.to), label, ..link.clone() }
    };
    let links: BTreeSet<Link> = raw.links.iter().filter(is_shown).map(link).collect();
    Raw { nodes, links, effective: raw.effective.clone() }
}

/// Returns the tiers of each queue that has or had tiers.
fn retries(raw: &Raw, folds: &Folds, desired: &Desired, changes: &[PlannedChange]) -> BTreeMap<ObjectId, Retries> {
    let mut tiers: BTreeMap<ObjectId, BTreeMap<(u32, u32, i64), Tier>> = BTreeMap::new();
    let mut marks: BTreeMap<ObjectId, Vec<Option<Mark>>> = BTreeMap::new();
    for (id, queue) in folds {
        let Some(node) = raw.nodes.get(id) else { continue };
        let tier = match id {
            ObjectId::Queue(name) => TierName::parse(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        if let Some(tier) = tier {
            let delay = duration(tier.delay).unwrap_or_else(|| "0ms".to_owned());
            let position = (tier.number, tier.generation, tier.delay);
            let tier = Tier { number: tier.number, name: node.name.clone(), delay, mark: node.mark };
            tiers.entry(queue.clone()).or_default().insert(position, tier);
        }
        marks.entry(queue.clone()).or_default().push(node.mark);
    }
    for change in changes {
        // An added or deleted binding of the family changes the retries.
        let id = change.id();
        let family =
            desired.scope.families.iter().find(|family| id.as_ref().is_some_and(|id| family.members.contains(id)));
        let queue = family.map(|family| &family.queue).or(change.retires.as_ref());
        if let (Some(ObjectId::Binding(_)), Some(queue)) = (&id, queue) {
            marks.entry(ObjectId::Queue(queue.clone())).or_default().push(Some(Mark::of(change.kind)));
        }
    }
    let strategies: BTreeMap<&QueueName, Strategy> =
        desired.scope.families.iter().map(|family| (&family.queue, family.strategy)).collect();
    let out_label = |queue: &ObjectId| match queue {
        ObjectId::Queue(name) => match strategies.get(name) {
            Some(Strategy::Republish) => "republished",
            Some(Strategy::Ladder | Strategy::Redeliver | Strategy::Delayed) => "rejected",
            None => "retired",
        },
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            "retired"
        }
    };
    let retries = |(queue, tiers): (ObjectId, BTreeMap<_, Tier>)| {
        let mark = Mark::join(marks.remove(&queue).unwrap_or_default());
        let out = out_label(&queue).to_owned();
        (queue, Retries { out, mark, tiers: tiers.into_values().collect() })
    };
    tiers.into_iter().map(retries).collect()
}

/// Converts the dead-letter links of manual retries to retry links. `now` contains the queues with manual retries, and
/// `before` contains the queues that had manual retries before the plan.
pub(super) fn mark_retries(raw: &mut Raw, now: &BTreeSet<ObjectId>, before: &BTreeSet<ObjectId>) {
    let is_retry = |link: &Link| {
        let queues = if link.mark == Some(Mark::Deleted) { before } else { now };
        link.kind == ArrowKind::DeadLetter && queues.contains(&link.from)
    };
    let retries: Vec<Link> = raw.links.iter().filter(|link| is_retry(link)).cloned().collect();
    for link in retries {
        raw.links.remove(&link);
        raw.links.insert(Link { kind: ArrowKind::Retry, ..link });
    }
}

/// Returns the queues of manual retries: waiting queues and main queues. In a waiting queue, messages expire and return
/// to the main queue. A main queue dead-letters rejected messages only to its waiting queues.
pub(super) fn manual_retry_queues(desired: &Desired, profile: &BrokerProfile) -> BTreeSet<ObjectId> {
    let topology = &desired.topology;
    let operator_policies = topology.operator_policies();
    let routing = Routing::new(topology, &operator_policies, &desired.scope.external, profile)
        .with_external_bindings(&desired.scope.external_dead_letter_queues);
    let generated = members(desired);
    let age = |name: &QueueName, queue: &Queue| {
        let settings = routing.settings_of(name, queue);
        settings.integer("message-ttl").filter(|age| *age > 0)
    };
    let sends = |name: &QueueName| routing.dead_lettering(name).iter().any(Option::is_some);
    let queues = topology.queues.iter().filter(|(name, _)| !generated.contains_key(&ObjectId::Queue((*name).clone())));
    let ages: BTreeMap<&QueueName, i64> =
        queues.filter(|(name, _)| sends(name)).filter_map(|(name, queue)| Some((name, age(name, queue)?))).collect();
    // The routing key is arbitrary, so `certain_queues` contains only queues that receive the message regardless of its
    // key.
    let dead_letter_routes = |name: &QueueName, reason: Reason| {
        routing.route_dead_letter(&Message::with(Keys::any()), name, reason).into_values()
    };
    let mut rejected: BTreeMap<QueueName, BTreeSet<QueueName>> = BTreeMap::new();
    let mut waiting_queues: BTreeMap<QueueName, BTreeSet<&QueueName>> = BTreeMap::new();
    for (wait, age) in &ages {
        for queue in dead_letter_routes(wait, Reason::Expired).flat_map(|route| route.certain_queues) {
            // If two queues dead-letter to each other, the queue with the shorter TTL is the waiting queue.
            let is_longer = ages.get(&queue).is_none_or(|other| other > age);
            let destinations = rejected.entry(queue.clone()).or_insert_with(|| {
                dead_letter_routes(&queue, Reason::Rejected)
                    .flat_map(|route| route.certain_queues.into_iter().chain(route.possible_queues))
                    .collect()
            });
            if is_longer && queue != **wait && destinations.contains(*wait) {
                waiting_queues.entry(queue).or_default().insert(wait);
            }
        }
    }
    let mut found: BTreeSet<ObjectId> =
        waiting_queues.values().flatten().map(|wait| ObjectId::Queue((*wait).clone())).collect();
    for (queue, waits) in waiting_queues {
        let destinations = rejected.get(&queue).into_iter().flatten();
        if destinations.into_iter().all(|to| waits.contains(to)) {
            found.insert(ObjectId::Queue(queue));
        }
    }
    found
}
