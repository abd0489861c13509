//! What live objects are together: the retries of a queue, a dead-letter queue with its exchange, a policy that wires dead
//! letters. Only what a spec would make exactly so again; whether it does is tried afterwards (`check`), and what does not
//! is given up and said object by object.

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

/// What is not to be recognized (again): it did not come out as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp {
    /// The retries of these queues, whatever their strategy.
    pub(super) retries: BTreeSet<QueueName>,
    /// These dead-letter queues.
    pub(super) dead_letter_queues: BTreeSet<QueueName>,
    /// The policies that wire the dead letters of these queues.
    pub(super) wirings: BTreeSet<QueueName>,
}

/// All that was recognized.
#[derive(Clone, Debug, Default)]
pub(super) struct Recognized {
    /// By the queue that retries.
    pub(super) tiered: BTreeMap<QueueName, Tiered>,
    /// By the queue.
    pub(super) dead_letter_queues: BTreeMap<QueueName, DeadLetterQueue>,
    /// By the queue that is wired.
    pub(super) wirings: BTreeMap<QueueName, PolicyName>,
    /// The queues that count deliveries themselves and have somewhere to send what was delivered too often.
    pub(super) counted: BTreeSet<QueueName>,
    /// The objects that these make, and by the say of which queue.
    pub(super) made: BTreeMap<ObjectId, QueueName>,
    /// What is odd about an object.
    pub(super) notes: BTreeMap<ObjectId, Vec<String>>,
}

/// Looks at what is kept; what is only live may use it.
pub(super) fn recognize(live: &Live<'_>, kept: &Topology, given_up: &GivenUp) -> Recognized {
    let mut recognized = Recognized::default();
    for name in kept.queues.keys().filter(|name| !given_up.wirings.contains(*name)) {
        if let Some((_, Some(policy))) = own_wiring(kept, name) {
            recognized.made.insert(ObjectId::Policy(policy.clone()), name.clone());
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
    /// Where a queue sends its dead letters by its own arguments, or by a policy of its own.
    pub(super) fn dead_lettering(&self, kept: &Topology, name: &QueueName) -> Option<(DeadLettering, Wiring)> {
        match own_wiring(kept, name)? {
            (to, None) => Some((to, Wiring::Arguments)),
            (to, Some(_)) => self.wirings.contains_key(name).then_some((to, Wiring::Policy)),
        }
    }
}

impl Recognized {
    /// Whether a queue is a tier that was recognized; such a one may lack what only a newer broker offers.
    pub(super) fn is_tier(&self, name: &QueueName) -> bool {
        self.made.contains_key(&ObjectId::Queue(name.clone()))
    }
}

impl GivenUp {
    /// How much.
    pub(super) fn len(&self) -> usize {
        self.retries.len() + self.dead_letter_queues.len() + self.wirings.len()
    }

    /// Gives up what an object was recognized as: whatever is least of what is there. Whether there was anything.
    pub(super) fn give_up(&mut self, id: &ObjectId, recognized: &Recognized) -> bool {
        let owner = match id {
            ObjectId::Queue(name) => Some(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        let Some(name) = owner.filter(|name| !recognized.is_tier(name)).or_else(|| recognized.made.get(id)) else {
            return false;
        };
        let retries = recognized.tiered.contains_key(name) || recognized.counted.contains(name);
        retries && self.retries.insert(name.clone())
            || recognized.dead_letter_queues.contains_key(name) && self.dead_letter_queues.insert(name.clone())
            || recognized.wirings.contains_key(name) && self.wirings.insert(name.clone())
    }
}
