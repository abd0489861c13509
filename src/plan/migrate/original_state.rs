//! Reconstructs the state before an interrupted migration: the bindings of its tap belonged to the queue, and the
//! objects that topo created for it did not exist.

use super::interrupted::interrupted;
use super::{BEFORE, Migration};
use crate::model::naming::MigrationNames;
use crate::model::{ArgumentValue, Binding, Destination, ExchangeName, Queue, QueueName, Topology};

/// What is live as if no migration had been begun: what leads to a tap leads to its queue, which is the old one where
/// neither is there. `None` where none was cut short.
pub fn before_migrations(live: &Topology) -> Option<Topology> {
    let mut before: Option<Topology> = None;
    for (queue, holding) in interrupted(live) {
        let before = before.get_or_insert_with(|| live.clone());
        take_away(before, &queue);
        if let (false, Some(old)) = (live.queues.contains_key(&queue), old(holding)) {
            before.queues.insert(queue, old);
        }
    }
    before
}

/// Takes away what was made beside a queue, and binds to the queue what is bound to the tap.
pub(in crate::plan) fn take_away(topology: &mut Topology, queue: &QueueName) {
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

/// The old queue, as the first holding queue says it was.
pub(super) fn old(holding: &Queue) -> Option<Queue> {
    let text = holding.arguments.get(BEFORE).and_then(ArgumentValue::as_text)?;
    serde_json::from_str(text).ok()
}

impl Migration {
    /// The old queue as it was when the migration began, where one did: what holds its messages says so, also to a run
    /// that finds it gone.
    pub fn old(&self, live: &Topology) -> Option<Queue> {
        interrupted(live).find(|(name, _)| *name == self.queue).and_then(|(_, holding)| old(holding))
    }
}
