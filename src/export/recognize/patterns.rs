//! Defines the patterns that the export recognizes, and the patterns that the export has given up on.

use crate::model::{ExchangeName, ObjectId, PolicyName, QueueName, Topology};
use crate::plan::spec_keys::Tiered;
use crate::rabbitmq::queue_wiring;
use crate::rabbitmq::routing::DeadLettering;
use crate::spec::Wiring;
use std::collections::{BTreeMap, BTreeSet};

/// The patterns that do not reproduce the current objects. The export does not recognize them again.
#[derive(Clone, Debug, Default)]
pub(in crate::export) struct GivenUp {
    /// The queues whose retries are written object by object.
    pub(in crate::export) retries: BTreeSet<QueueName>,
    /// The dead-letter queues that are written as plain queues.
    pub(in crate::export) dead_letter_queues: BTreeSet<QueueName>,
    /// The queues whose dead-lettering policy is written as a plain policy.
    pub(in crate::export) wirings: BTreeSet<QueueName>,
}

/// The recognized patterns.
#[derive(Clone, Debug, Default)]
pub(in crate::export) struct Recognized {
    /// The retries with tiers, by queue.
    pub(in crate::export) tiered: BTreeMap<QueueName, Tiered>,
    /// The dead-letter queues, by name.
    pub(in crate::export) dead_letter_queues: BTreeMap<QueueName, DeadLetterQueue>,
    /// The policy that sets dead-lettering, by the queue that it applies to.
    pub(in crate::export) wirings: BTreeMap<QueueName, PolicyName>,
    /// The quorum queues that have a delivery limit and a dead-letter exchange.
    pub(in crate::export) counted: BTreeSet<QueueName>,
    /// The super streams, by exchange.
    pub(in crate::export) super_streams: BTreeMap<ExchangeName, Partitions>,
    /// The objects that the patterns generate, with the queue to which each object belongs.
    pub(in crate::export) generated: BTreeMap<ObjectId, QueueName>,
    /// The comments on objects.
    pub(in crate::export) notes: BTreeMap<ObjectId, Vec<String>>,
}

impl Recognized {
    /// Returns the dead-letter target of a queue from its arguments, or from a policy that applies only to this queue.
    pub(in crate::export) fn dead_lettering(
        &self,
        kept: &Topology,
        name: &QueueName,
    ) -> Option<(DeadLettering, Wiring)> {
        match queue_wiring(kept, name)? {
            (to, None) => Some((to, Wiring::Arguments)),
            (to, Some(_)) => self.wirings.contains_key(name).then_some((to, Wiring::Policy)),
        }
    }
}

impl Recognized {
    /// Returns true if a pattern generates the queue, for example as a tier. A recognized tier can lack arguments that
    /// only newer brokers support.
    pub(in crate::export) fn generates_queue(&self, name: &QueueName) -> bool {
        self.generated.contains_key(&ObjectId::Queue(name.clone()))
    }
}

impl GivenUp {
    /// Returns the number of patterns that the export has given up on.
    pub(in crate::export) fn len(&self) -> usize {
        self.retries.len() + self.dead_letter_queues.len() + self.wirings.len()
    }

    /// Gives up on the next pattern that involves an object: first retries, then a dead-letter queue, then a
    /// dead-lettering policy. Returns false if no pattern is left.
    pub(in crate::export) fn give_up(&mut self, id: &ObjectId, recognized: &Recognized) -> bool {
        let owner = match id {
            ObjectId::Queue(name) => Some(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let Some(name) =
            owner.filter(|name| !recognized.generates_queue(name)).or_else(|| recognized.generated.get(id))
        else {
            return false;
        };
        let retries = recognized.tiered.contains_key(name) || recognized.counted.contains(name);
        retries && self.retries.insert(name.clone())
            || recognized.dead_letter_queues.contains_key(name) && self.dead_letter_queues.insert(name.clone())
            || recognized.wirings.contains_key(name) && self.wirings.insert(name.clone())
    }
}

/// The partitions of a recognized super stream.
#[derive(Clone, Debug)]
pub(in crate::export) struct Partitions {
    /// The number of partitions.
    pub(in crate::export) count: usize,
    /// The routing keys in order; `None` if they are consecutive numbers that start at 0.
    pub(in crate::export) keys: Option<Vec<String>>,
    /// The stream of the first partition. The streams of all partitions have the same arguments.
    pub(in crate::export) stream: QueueName,
}

/// A recognized dead-letter queue: its exchange, the binding between them, and its delivery limit.
#[derive(Clone, Debug)]
pub(in crate::export) struct DeadLetterQueue {
    /// The name of the exchange.
    pub(in crate::export) exchange: ExchangeName,
    /// The type of the exchange.
    pub(in crate::export) kind: String,
    /// True if the exchange is internal.
    pub(in crate::export) internal: bool,
    /// The routing key of the binding; `None` if it is the default key.
    pub(in crate::export) routing_key: Option<String>,
    /// True if the queue has the delivery limit that topo sets on dead-letter queues by default.
    pub(in crate::export) has_default_limit: bool,
}

impl DeadLetterQueue {
    /// Returns true if a dead-letter target leads to this queue. If the target has no routing key, messages keep their
    /// own routing keys.
    pub(in crate::export) fn leads_to(&self, name: &QueueName, end: &DeadLettering) -> bool {
        let by_type = || (self.kind == "direct").then(|| default_key(&self.kind, name));
        self.exchange == end.exchange && self.routing_key.clone().or_else(by_type) == end.routing_key
    }
}

/// Returns the default routing key that binds a dead-letter queue to an exchange of this type.
pub(in crate::export) fn default_key(kind: &str, name: &QueueName) -> String {
    match kind {
        "topic" => "#".to_owned(),
        "direct" => name.as_str().to_owned(),
        _ => String::new(),
    }
}
