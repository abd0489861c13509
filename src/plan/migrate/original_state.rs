//! Reconstructs the topology before an interrupted migration: the bindings of its tap belonged to the queue, and the
//! objects of the migration did not exist.

use super::interrupted::interrupted;
use super::{BEFORE, Migration};
use crate::model::naming::MigrationNames;
use crate::model::{ArgumentValue, Binding, Destination, ExchangeName, Queue, QueueName, Topology};

/// Returns the current topology as if no migration had been started; `None` if none was interrupted. The sources of a
/// tap are bound to its queue. If the queue does not exist, the old queue takes its place.
pub fn before_migrations(live: &Topology) -> Option<Topology> {
    let mut before: Option<Topology> = None;
    for (queue, holding) in interrupted(live) {
        let before = before.get_or_insert_with(|| live.clone());
        remove_migration_objects(before, &queue);
        if let (false, Some(old)) = (live.queues.contains_key(&queue), old(holding)) {
            before.queues.insert(queue, old);
        }
    }
    before
}

/// Removes the objects of a migration, and binds the sources of the tap to the queue.
pub(in crate::plan) fn remove_migration_objects(topology: &mut Topology, queue: &QueueName) {
    let names = MigrationNames::of(queue);
    let tap = Destination::Exchange(names.tap.clone());
    let own = [ExchangeName::new(&names.hold), ExchangeName::new(&names.drained), names.tap, names.back];
    topology.bindings = std::mem::take(&mut topology.bindings)
        .into_iter()
        .filter(|binding| !own.contains(&binding.source))
        .map(|binding| match binding.destination == tap {
            true => Binding { destination: Destination::Queue(queue.clone()), ..binding },
            false => binding,
        })
        .collect();
    own.iter().for_each(|name| drop(topology.exchanges.remove(name)));
    for name in [names.hold, names.drained, names.probe] {
        topology.queues.remove(&QueueName::new(name));
    }
    topology.policies.remove(&names.shield);
}

/// Returns the old queue, as the first holding queue stores it.
pub(super) fn old(holding: &Queue) -> Option<Queue> {
    let text = holding.arguments.get(BEFORE).and_then(ArgumentValue::as_text)?;
    serde_json::from_str(text).ok()
}

impl Migration {
    /// Returns the old queue as it was when the migration started, if one was interrupted. The holding queue stores it,
    /// so a later run finds it even if the queue no longer exists.
    pub fn old(&self, live: &Topology) -> Option<Queue> {
        interrupted(live).find(|(name, _)| *name == self.queue).and_then(|(_, holding)| old(holding))
    }
}
