//! Recognizes objects that clients create for a while, and that do not belong in a spec: the transient objects of known
//! clients, and queues that expire and that are not connected to other objects.

use super::left_out::Reason;
use crate::model::known_clients::owner_of_transient;
use crate::model::naming::TierName;
use crate::model::{ArgumentValue, Destination, QueueName, Topology};
use crate::rabbitmq::{dead_lettering, queue_wiring};
use std::collections::BTreeSet;

/// Returns the reason to leave out a queue or an exchange with the name of a known client's transient object.
pub(super) fn reason_for_name(name: &str, expires: bool) -> Option<Reason> {
    owner_of_transient(name, expires).map(|(client, group)| Reason::OwnedByClient { client: client.name, group })
}

/// Returns the queues with `x-expires` that are not connected to other objects: they have no binding and no dead-letter
/// exchange, and no queue, policy or record refers to them. A connected queue can be part of the topology, such as a
/// manual retry.
pub(super) fn temporary_queues(topology: &Topology) -> BTreeSet<QueueName> {
    let is_tier =
        |name: &QueueName| TierName::parse(name).is_some_and(|tier| topology.queues.contains_key(&tier.queue));
    let queues = topology.queues.iter().filter(|(_, queue)| queue.expires()).map(|(name, _)| name);
    let mut queues: BTreeSet<QueueName> =
        queues.filter(|name| !is_tier(name) && queue_wiring(topology, name).is_none()).cloned().collect();
    if queues.is_empty() {
        return queues;
    }
    for binding in &topology.bindings {
        if let Destination::Queue(name) = &binding.destination {
            queues.remove(name);
        }
    }
    let of_queues = topology.queues.values().filter_map(|it| dead_lettering(&it.arguments, "x-"));
    let of_policies = topology.policies.values().filter_map(|it| dead_lettering(&it.definition, ""));
    // The default exchange routes to the queue with the name of the routing key.
    let to_default = of_queues.chain(of_policies).filter(|to| to.exchange.as_str().is_empty());
    let targets = to_default.filter_map(|to| to.routing_key);
    let fields = topology.records.values().flat_map(|record| record.fields.values());
    let referenced = fields.filter_map(ArgumentValue::as_text).map(str::to_owned);
    for name in targets.chain(referenced) {
        queues.remove(&QueueName::new(name));
    }
    queues
}
