//! Recognizes manual retries: a queue rejects a message, the message waits in another queue until it expires, and
//! returns. The broker dead-letters the message both times, but neither arrow is an end of its lifecycle.

use super::raw::{Link, Raw, members};
use super::{ArrowKind, Mark};
use crate::model::{ObjectId, PolicyName, Queue, QueueName};
use crate::plan::Desired;
use crate::rabbitmq::routing::{Keys, Message, Reason};
use crate::rabbitmq::{ActivePolicies, BrokerProfile, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// Turns dead-letter links of these queues into retries: `now` for current links, `before` for deleted ones.
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

/// Returns the queues of manual retries. In a waiting queue, messages expire and return to the queue that rejected
/// them. A main queue dead-letters rejected messages only to its waiting queues.
pub(super) fn queues(desired: &Desired, profile: &BrokerProfile) -> BTreeSet<ObjectId> {
    let topology = &desired.topology;
    let no_operator: BTreeMap<PolicyName, _> = BTreeMap::new();
    let routing = Routing::new(topology, &no_operator, &desired.scope.external, profile)
        .with_external_bindings(&desired.scope.external_dead_letter_queues);
    let generated = members(desired);
    let age = |name: &QueueName, queue: &Queue| {
        let settings = ActivePolicies::of(routing.policies(), profile).likely(name, queue);
        settings.integer("message-ttl").filter(|age| *age > 0)
    };
    let sends = |name: &QueueName| routing.dead_lettering(name).iter().any(Option::is_some);
    let own = topology.queues.iter().filter(|(name, _)| !generated.contains_key(&ObjectId::Queue((*name).clone())));
    let ages: BTreeMap<&QueueName, i64> =
        own.filter(|(name, _)| sends(name)).filter_map(|(name, queue)| Some((name, age(name, queue)?))).collect();
    // With any routing key: `certain_queues` contains only the queues that receive the message whatever its key is.
    let dead_letter_routes = |name: &QueueName, reason: Reason| {
        routing.route_dead_letter(&Message::with(Keys::any()), name, reason).into_values()
    };
    let mut rejected: BTreeMap<QueueName, BTreeSet<QueueName>> = BTreeMap::new();
    let mut waiting_queues: BTreeMap<QueueName, BTreeSet<&QueueName>> = BTreeMap::new();
    for (wait, age) in &ages {
        for queue in dead_letter_routes(wait, Reason::Expired).flat_map(|route| route.certain_queues) {
            // If two queues dead-letter to each other, the one with the shorter TTL is the waiting queue.
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
