//! Recognizes patterns of objects: the retries of a queue, a dead-letter queue with its exchange, a policy that sets
//! dead-lettering. A pattern must reproduce the same objects. `check` verifies this, and the export writes the objects
//! of a failed pattern one by one.

mod dead_letters;
mod families;
#[cfg(test)]
mod tests;
pub(super) mod waits;

pub(super) use dead_letters::DeadLetterQueue;

use super::Live;
use crate::model::{ArgumentValue, ObjectId, PolicyName, Queue, QueueName, QueueType, Topology};
use crate::plan::spec_keys::Tiered;
use crate::rabbitmq::own_wiring;
use crate::rabbitmq::routing::DeadLettering;
use crate::spec::Wiring;
use std::collections::{BTreeMap, BTreeSet};

/// Patterns that do not reproduce the current objects, and must not be recognized again.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp {
    /// The queues whose retries are written object by object.
    pub(super) retries: BTreeSet<QueueName>,
    /// The dead-letter queues that are written as plain queues.
    pub(super) dead_letter_queues: BTreeSet<QueueName>,
    /// The queues whose dead-lettering policy is written as a plain policy.
    pub(super) wirings: BTreeSet<QueueName>,
}

/// The recognized patterns.
#[derive(Clone, Debug, Default)]
pub(super) struct Recognized {
    /// The tiers, by the queue that retries.
    pub(super) tiered: BTreeMap<QueueName, Tiered>,
    /// The dead-letter queues, by name.
    pub(super) dead_letter_queues: BTreeMap<QueueName, DeadLetterQueue>,
    /// The policies that set dead-lettering, by the queue that they apply to.
    pub(super) wirings: BTreeMap<QueueName, PolicyName>,
    /// The quorum queues that have a delivery limit and a dead-letter exchange.
    pub(super) counted: BTreeSet<QueueName>,
    /// The objects that the patterns generate, with the queue that they belong to.
    pub(super) generated: BTreeMap<ObjectId, QueueName>,
    /// Comments on objects.
    pub(super) notes: BTreeMap<ObjectId, Vec<String>>,
}

/// Recognizes patterns among the kept objects. Other current objects may refer to these.
pub(super) fn recognize(live: &Live<'_>, kept: &Topology, given_up: &GivenUp) -> Recognized {
    let mut recognized = Recognized::default();
    for name in kept.queues.keys().filter(|name| !given_up.wirings.contains(*name)) {
        if let Some((_, Some(policy))) = own_wiring(kept, name) {
            recognized.generated.insert(ObjectId::Policy(policy.clone()), name.clone());
            recognized.wirings.insert(name.clone(), policy);
        }
    }
    families::find(&mut recognized, live.profile, kept, given_up);
    dead_letters::find(&mut recognized, live, kept, given_up);
    let counts = |name: &QueueName, queue: &Queue| {
        let is_other = recognized.tiered.contains_key(name) || recognized.dead_letter_queues.contains_key(name);
        let limit = queue.arguments.get("x-delivery-limit").and_then(ArgumentValue::as_integer);
        let is_limited = queue.queue_type() == Some(QueueType::Quorum) && limit.is_some_and(|limit| limit > 0);
        is_limited && !is_other && recognized.dead_lettering(kept, name).is_some() && !given_up.retries.contains(name)
    };
    let counted = kept.queues.iter().filter(|(name, queue)| counts(name, queue)).map(|(name, _)| name.clone());
    recognized.counted = counted.collect();
    recognized
}

impl Recognized {
    /// Returns the dead-lettering of a queue by its own arguments, or by a policy for this queue alone.
    pub(super) fn dead_lettering(&self, kept: &Topology, name: &QueueName) -> Option<(DeadLettering, Wiring)> {
        match own_wiring(kept, name)? {
            (to, None) => Some((to, Wiring::Arguments)),
            (to, Some(_)) => self.wirings.contains_key(name).then_some((to, Wiring::Policy)),
        }
    }
}

impl Recognized {
    /// Returns true for a recognized tier. A tier may lack arguments that only newer brokers support.
    pub(super) fn is_tier(&self, name: &QueueName) -> bool {
        self.generated.contains_key(&ObjectId::Queue(name.clone()))
    }
}

impl GivenUp {
    /// Returns the number of patterns that were given up.
    pub(super) fn len(&self) -> usize {
        self.retries.len() + self.dead_letter_queues.len() + self.wirings.len()
    }

    /// Gives up the pattern of an object, smallest effect first. Returns false if nothing is left to give up.
    pub(super) fn give_up(&mut self, id: &ObjectId, recognized: &Recognized) -> bool {
        let owner = match id {
            ObjectId::Queue(name) => Some(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let Some(name) = owner.filter(|name| !recognized.is_tier(name)).or_else(|| recognized.generated.get(id)) else {
            return false;
        };
        let retries = recognized.tiered.contains_key(name) || recognized.counted.contains(name);
        retries && self.retries.insert(name.clone())
            || recognized.dead_letter_queues.contains_key(name) && self.dead_letter_queues.insert(name.clone())
            || recognized.wirings.contains_key(name) && self.wirings.insert(name.clone())
    }
}
