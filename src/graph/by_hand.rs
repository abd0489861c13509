//! Recognizes manual retries: a message that a queue rejects waits in another one until it expires, and returns. For
//! the broker both ways are dead-lettering; for a reader neither is an end.

use super::raw::{Link, Raw};
use super::{ArrowKind, Mark, fold};
use crate::model::{ObjectId, PolicyName, Queue, QueueName};
use crate::plan::Desired;
use crate::rabbitmq::routing::{Keys, Message, Reason};
use crate::rabbitmq::{BrokerProfile, Governors, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// Draws as retries what the queues of `now` send there, and what goes away of those `before`.
pub(super) fn tell_apart(raw: &mut Raw, now: &BTreeSet<ObjectId>, before: &BTreeSet<ObjectId>) {
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

/// The queues whose dead letters are not over: those in which messages wait and go back to where they were rejected, and
/// those that reject to nowhere else.
pub(super) fn queues(desired: &Desired, profile: &BrokerProfile) -> BTreeSet<ObjectId> {
    let topology = &desired.topology;
    let no_operator: BTreeMap<PolicyName, _> = BTreeMap::new();
    let routing = Routing::new(topology, &no_operator, &desired.scope.external, profile)
        .with_bound_by_others(&desired.scope.external_dead_letter_queues);
    let made = fold::members(desired);
    let age = |name: &QueueName, queue: &Queue| {
        let settings = Governors::of(routing.policies(), profile).likely(name, queue);
        settings.integer("message-ttl").filter(|age| *age > 0)
    };
    let sends = |name: &QueueName| routing.dead_lettering(name).iter().any(Option::is_some);
    let own = topology.queues.iter().filter(|(name, _)| !made.contains_key(&ObjectId::Queue((*name).clone())));
    let ages: BTreeMap<&QueueName, i64> =
        own.filter(|(name, _)| sends(name)).filter_map(|(name, queue)| Some((name, age(name, queue)?))).collect();
    // Whatever key a message has: where that decides, nobody can say.
    let letters = |name: &QueueName, reason: Reason| {
        routing.route_dead_letter(&Message::with(Keys::any()), name, reason).into_values()
    };
    let mut rejected: BTreeMap<QueueName, BTreeSet<QueueName>> = BTreeMap::new();
    let mut comes_back: BTreeMap<QueueName, BTreeSet<&QueueName>> = BTreeMap::new();
    for (wait, age) in &ages {
        for queue in letters(wait, Reason::Expired).flat_map(|route| route.surely) {
            // Of two that lead to each other, messages wait in the one that keeps them for a shorter time.
            let is_longer = ages.get(&queue).is_none_or(|other| other > age);
            let comes = rejected.entry(queue.clone()).or_insert_with(|| {
                letters(&queue, Reason::Rejected)
                    .flat_map(|route| route.surely.into_iter().chain(route.perhaps))
                    .collect()
            });
            if is_longer && queue != **wait && comes.contains(*wait) {
                comes_back.entry(queue).or_default().insert(wait);
            }
        }
    }
    let mut found: BTreeSet<ObjectId> =
        comes_back.values().flatten().map(|wait| ObjectId::Queue((*wait).clone())).collect();
    for (queue, waits) in comes_back {
        let comes = rejected.get(&queue).into_iter().flatten();
        if comes.into_iter().all(|to| waits.contains(to)) {
            found.insert(ObjectId::Queue(queue));
        }
    }
    found
}
