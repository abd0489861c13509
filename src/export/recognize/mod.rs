//! Recognizes patterns of objects: the retries of a queue, a dead-letter queue with its exchange, a policy that sets
//! dead-lettering, and super streams. A pattern must reproduce the current objects exactly. `check` verifies this, and
//! the export writes the objects of a failed pattern one by one.

mod dead_letters;
mod families;
pub(super) mod patterns;
mod super_streams;
#[cfg(test)]
mod tests;
pub(super) mod waits;

pub(super) use patterns::DeadLetterQueue;

use super::CurrentVhost;
use crate::model::{ArgumentValue, ObjectId, Queue, QueueName, QueueType, Topology};
use crate::rabbitmq::queue_wiring;
use patterns::{GivenUp, Recognized};

/// Recognizes patterns among the kept objects. `live` also contains objects that are not exported, because such objects
/// can refer to kept objects.
pub(super) fn recognize(live: &CurrentVhost<'_>, kept: &Topology, given_up: &GivenUp) -> Recognized {
    let mut recognized = Recognized::default();
    for name in kept.queues.keys().filter(|name| !given_up.wirings.contains(*name)) {
        if let Some((_, Some(policy))) = queue_wiring(kept, name) {
            recognized.generated.insert(ObjectId::Policy(policy.clone()), name.clone());
            recognized.wirings.insert(name.clone(), policy);
        }
    }
    families::find(&mut recognized, live.profile, kept, given_up);
    dead_letters::find(&mut recognized, live, kept, given_up);
    super_streams::find(&mut recognized, kept);
    let is_counted = |name: &QueueName, queue: &Queue| {
        let is_other = recognized.tiered.contains_key(name) || recognized.dead_letter_queues.contains_key(name);
        let limit = queue.arguments.get("x-delivery-limit").and_then(ArgumentValue::as_integer);
        let is_limited = queue.queue_type() == Some(QueueType::Quorum) && limit.is_some_and(|limit| limit > 0);
        is_limited && !is_other && recognized.dead_lettering(kept, name).is_some() && !given_up.retries.contains(name)
    };
    let counted = kept.queues.iter().filter(|(name, queue)| is_counted(name, queue)).map(|(name, _)| name.clone());
    recognized.counted = counted.collect();
    recognized
}
