//! Differences between two topologies.
//!
//! Merges the current topology with the one of a spec.

use super::diff;
use crate::model::{ArgumentValue, Binding, Object, ObjectId, ObjectKind, Scope, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is desired but does not exist.
    Create(Object),
    /// The object exists but differs from the desired one.
    Alter {
        /// The current object.
        before: Object,
        /// The desired object.
        after: Object,
        /// The fields that differ; never empty.
        fields: Vec<FieldChange>,
    },
    /// The object exists but is not desired.
    Delete {
        /// The current object.
        object: Object,
        /// The reason why it is not desired.
        reason: DeleteReason,
    },
}

/// The reason why a current object is not desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeleteReason {
    /// The spec lists it under `removed`.
    Removed,
    /// The object matches `owns`, and the spec does not declare it: deleted only with `--prune`.
    Unmanaged,
    /// The spec declares the settings of the owner, such as the limits of a vhost, but not this one.
    Unset,
    /// The object was generated for retries that have changed since: deleted when it is empty.
    Retired,
}

/// One field that differs; a value is `None` if the field is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field.
    pub field: Field,
    /// The current value.
    pub before: Option<ArgumentValue>,
    /// The desired value.
    pub after: Option<ArgumentValue>,
}

/// A field of an object, in the order in which the broker checks them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The type of an exchange.
    Type,
    /// The durability of a queue or an exchange.
    Durable,
    /// The auto-delete property of a queue or an exchange.
    AutoDelete,
    /// The internal property of an exchange.
    Internal,
    /// One argument, by its name on the wire.
    Argument(String),
    /// The pattern of a policy.
    Pattern,
    /// The target kinds of a policy.
    ApplyTo,
    /// The priority of a policy.
    Priority,
    /// One key of the definition of a policy.
    Definition(String),
    /// The description of a vhost.
    Description,
    /// The default queue type of a vhost.
    DefaultQueueType,
    /// A field of a record, by its name on the wire.
    Record(&'static str),
}

impl Field {
    /// Returns the name of an argument on the wire; `None` for other fields.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Argument(name) => Some(name),
            Self::Type
            | Self::Durable
            | Self::AutoDelete
            | Self::Internal
            | Self::Pattern
            | Self::ApplyTo
            | Self::Priority
            | Self::Definition(_)
            | Self::Description
            | Self::DefaultQueueType
            | Self::Record(_) => None,
        }
    }
}

/// Formats the name that RabbitMQ uses for the field.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Type => "type",
            Self::Durable => "durable",
            Self::AutoDelete => "auto_delete",
            Self::Internal => "internal",
            Self::Argument(name) | Self::Definition(name) => name,
            Self::Pattern => "pattern",
            Self::ApplyTo => "apply-to",
            Self::Priority => "priority",
            Self::Description => "description",
            Self::DefaultQueueType => "default_queue_type",
            Self::Record(name) => name,
        })
    }
}

impl Change {
    /// Returns the ID of the changed object.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Create(object) | Self::Delete { object, .. } => object.id(),
            Self::Alter { after, .. } => after.id(),
        }
    }
}

/// Returns the topology after an apply that prunes objects of these kinds: all desired objects, and all current objects
/// that are neither removed by the spec nor pruned.
pub fn merged(current: &Topology, desired: &Topology, scope: &Scope, prune: &BTreeSet<ObjectKind>) -> Topology {
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
        ObjectId::Queue(name) => binding.touches_queue(name),
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
            merged(&vhost(&["live", "old"]), &vhost(&["new"]), scope, &prune.iter().copied().collect())
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
