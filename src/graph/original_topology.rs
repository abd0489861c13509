//! Reconstructs the topology before a plan from the plan: all objects that the plan deletes, and the old values of
//! changed objects.

use crate::model::{Object, ObjectId, Topology};
use crate::plan::VhostPlan;

/// Returns the desired topology with every change of the plan reverted.
pub(super) fn topology(plan: &VhostPlan) -> Topology {
    let mut topology = plan.desired.topology.clone();
    for change in &plan.changes {
        if let Some(id) = change.after.as_ref().map(Object::id) {
            remove(&mut topology, &id);
        }
        match change.before.clone() {
            Some(Object::Exchange(name, exchange)) => drop(topology.exchanges.insert(name, exchange)),
            Some(Object::Policy(name, policy)) => drop(topology.policies.insert(name, policy)),
            Some(Object::Queue(name, queue)) => drop(topology.queues.insert(name, queue)),
            Some(Object::Binding(binding)) => drop(topology.bindings.insert(binding)),
            Some(Object::Record(record)) => drop(topology.records.insert(record.id.clone(), record)),
            Some(Object::Vhost(_)) | None => {}
        }
        topology.bindings.extend(change.unbound.iter().cloned());
    }
    topology
}

fn remove(topology: &mut Topology, id: &ObjectId) {
    match id {
        ObjectId::Vhost => {}
        ObjectId::Exchange(name) => drop(topology.exchanges.remove(name)),
        ObjectId::Policy(name) => drop(topology.policies.remove(name)),
        ObjectId::Queue(name) => drop(topology.queues.remove(name)),
        ObjectId::Binding(binding) => drop(topology.bindings.remove(binding)),
        ObjectId::Record(id) => drop(topology.records.remove(id)),
    }
}
