//! Computes the differences between the current and the desired topology, and predicts the topology after an apply.
//!
//! `plan` decides how to apply each difference, for example whether the broker can change a field in place.

mod change;
mod compare;

pub use change::{Change, DeleteReason, Field, FieldChange};
pub use compare::{binding_reason, diff, fields};

use crate::model::{Binding, Object, ObjectId, ObjectKind, Scope, Topology};
use std::collections::BTreeSet;

/// Returns the topology after an apply that prunes objects of the kinds in `prune`. This topology contains all desired
/// objects, and all current objects that the apply does not delete. Retired objects are not recognized, and are treated
/// as unmanaged.
pub fn merge(current: &Topology, desired: &Topology, scope: &Scope, prune: &BTreeSet<ObjectKind>) -> Topology {
    let mut merged = current.clone();
    for change in diff(current, desired, scope) {
        match change {
            Change::Create(object) | Change::Alter { after: object, .. } => insert(&mut merged, object),
            Change::Delete { object, reason: DeleteReason::Removed | DeleteReason::Unset } => {
                remove(&mut merged, &object.id())
            }
            Change::Delete { object, reason: DeleteReason::Unmanaged } if prune.contains(&object.id().kind()) => {
                remove(&mut merged, &object.id());
            }
            Change::Delete { reason: DeleteReason::Unmanaged | DeleteReason::Retired, .. } => {}
        }
    }
    merged
}

fn insert(topology: &mut Topology, object: Object) {
    match object {
        Object::Vhost(settings) => topology.settings = Some(settings),
        Object::Exchange(name, exchange) => drop(topology.exchanges.insert(name, exchange)),
        Object::Policy(name, policy) => drop(topology.policies.insert(name, policy)),
        Object::Queue(name, queue) => drop(topology.queues.insert(name, queue)),
        Object::Binding(binding) => drop(topology.bindings.insert(binding)),
        Object::Record(record) => drop(topology.records.insert(record.id.clone(), record)),
    }
}

/// Removes an object. Removing a queue or an exchange also removes its bindings.
fn remove(topology: &mut Topology, id: &ObjectId) {
    let is_removed = |binding: &Binding| match id {
        ObjectId::Exchange(name) => binding.touches_exchange(name),
        ObjectId::Queue(name) => binding.leads_to_queue(name),
        ObjectId::Binding(removed) => removed == binding,
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Record(_) => false,
    };
    topology.bindings.retain(|binding| !is_removed(binding));
    match id {
        ObjectId::Exchange(name) => drop(topology.exchanges.remove(name)),
        ObjectId::Policy(name) => drop(topology.policies.remove(name)),
        ObjectId::Queue(name) => drop(topology.queues.remove(name)),
        ObjectId::Record(id) => drop(topology.records.remove(id)),
        ObjectId::Vhost | ObjectId::Binding(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Destination, Glob, Queue};

    fn vhost(queues: &[&str]) -> Topology {
        let mut topology = Topology::missing("v".into());
        for name in queues {
            let queue = Queue {
                durable: true,
                auto_delete: false,
                exclusive: false,
                arguments: crate::model::Arguments::new(),
            };
            topology.queues.insert((*name).into(), queue);
            topology.bindings.insert(Binding {
                source: "e".into(),
                destination: Destination::Queue((*name).into()),
                routing_key: String::new(),
                arguments: crate::model::Arguments::new(),
            });
        }
        topology
    }

    #[test]
    fn current_objects_are_kept_unless_they_are_removed() {
        let scope = Scope { removed: [ObjectId::Queue("old".into())].into(), ..Scope::default() };
        let after = |scope: &Scope, prune: &[ObjectKind]| {
            merge(&vhost(&["live", "old"]), &vhost(&["new"]), scope, &prune.iter().copied().collect())
        };
        let kept = after(&scope, &[]);
        assert_eq!(kept.queues, vhost(&["live", "new"]).queues);
        assert_eq!(kept.bindings, vhost(&["live", "new"]).bindings);
        let owned = Scope { owns: vec![Glob::new("*")], ..scope };
        assert_eq!(after(&owned, &[ObjectKind::Exchange]).queues, kept.queues);
        let pruned = after(&owned, &[ObjectKind::Queue]);
        assert_eq!(pruned.queues, vhost(&["new"]).queues);
        assert_eq!(pruned.bindings, vhost(&["new"]).bindings);
    }
}
