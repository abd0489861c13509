//! Defines the differences between two topologies: changes to objects and their fields.

use crate::model::{ArgumentValue, Object, ObjectId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A difference between the current and the desired topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is desired but does not exist.
    Create(Object),
    /// The object exists but differs from the desired object.
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
        /// The reason for the deletion.
        reason: DeleteReason,
    },
}

/// The reason for deleting a current object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeleteReason {
    /// The spec lists the object under `removed`.
    Removed,
    /// The spec does not declare the object, but `owns` matches its name, or the destination if the object is a
    /// binding. topo deletes the object only with `--prune`.
    Unmanaged,
    /// The object is a setting, such as a vhost limit, that the spec omits although the spec manages the settings of
    /// the same owner.
    Unset,
    /// The object was generated for retries that the spec no longer declares. topo deletes a retired queue only when
    /// the queue is empty.
    Retired,
}

/// A difference in one field. A value is `None` if the field is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field.
    pub field: Field,
    /// The current value.
    pub before: Option<ArgumentValue>,
    /// The desired value.
    pub after: Option<ArgumentValue>,
}

/// A field of an object. The variants for queues and exchanges are in the order in which the broker checks the fields.
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
    /// An argument, identified by its name on the wire.
    Argument(String),
    /// The pattern of a policy.
    Pattern,
    /// The target kinds of a policy.
    ApplyTo,
    /// The priority of a policy.
    Priority,
    /// A key in the definition of a policy or a record.
    Definition(String),
    /// The description of a vhost.
    Description,
    /// The tags of a vhost.
    Tags,
    /// The default queue type of a vhost.
    DefaultQueueType,
    /// A field of a record, identified by its name on the wire.
    Record(&'static str),
}

impl Field {
    /// Returns the name of the argument on the wire. Returns `None` if the field is not an argument.
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
            | Self::Tags
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
            Self::Tags => "tags",
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
