//! One difference between two topologies.

use crate::model::{ArgumentValue, Object, ObjectId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Desired, and not there.
    Create(Object),
    /// There, and not as desired.
    Alter {
        /// As it is.
        before: Object,
        /// As it shall be.
        after: Object,
        /// Where they differ; never empty.
        fields: Vec<FieldChange>,
    },
    /// There, and not desired.
    Delete {
        /// As it is.
        object: Object,
        /// Who says that it is not desired.
        reason: DeleteReason,
    },
}

/// Why something live is not desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeleteReason {
    /// The spec lists it under `removed`.
    Removed,
    /// It is inside `owns` and the spec does not declare it: deleted only with `--prune`.
    Unmanaged,
    /// The spec declares the settings of the owner, such as the limits of a vhost, but not this one.
    Unset,
    /// It was generated for retries that are no longer desired so: deleted when nothing is in it any more.
    Retired,
}

/// One field that differs; `None` is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Which field.
    pub field: Field,
    /// Its live value.
    pub before: Option<ArgumentValue>,
    /// Its desired value.
    pub after: Option<ArgumentValue>,
}

/// A field of an object, in the order in which the broker checks them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// An exchange's type.
    Type,
    /// Of a queue or an exchange.
    Durable,
    /// Of a queue or an exchange.
    AutoDelete,
    /// Of an exchange.
    Internal,
    /// One argument, by its name on the wire.
    Argument(String),
    /// A policy's.
    Pattern,
    /// A policy's.
    ApplyTo,
    /// A policy's.
    Priority,
    /// One key of a policy's definition.
    Definition(String),
    /// A vhost's.
    Description,
    /// A vhost's.
    DefaultQueueType,
    /// A field of a record, by its name on the wire.
    Record(&'static str),
}

impl Field {
    /// The name on the wire, of an argument.
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

/// The name that RabbitMQ uses for it.
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
    /// What the change is about.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Create(object) | Self::Delete { object, .. } => object.id(),
            Self::Alter { after, .. } => after.id(),
        }
    }
}
