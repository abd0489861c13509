//! The objects of a vhost or of the cluster, with their identities and kinds.

use super::binding::{Binding, Destination};
use super::names::{ExchangeName, PolicyName, QueueName};
use super::policy::Policy;
use super::queue::{Exchange, Queue};
use super::record::{Record, RecordId};
use super::record_kinds::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The kinds of objects. Except for records, the kinds are in the order in which topo creates objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// The vhost itself.
    Vhost,
    /// An exchange.
    Exchange,
    /// A policy.
    Policy,
    /// A queue or stream.
    Queue,
    /// A binding.
    Binding,
    /// A record.
    #[serde(untagged)]
    Record(RecordKind),
}

impl ObjectKind {
    /// Returns the noun for one object of this kind: `queue`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vhost => "vhost",
            Self::Exchange => "exchange",
            Self::Policy => "policy",
            Self::Queue => "queue",
            Self::Binding => "binding",
            Self::Record(kind) => kind.row().word,
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The identity of an object within its vhost or the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectId {
    /// The vhost itself.
    Vhost,
    /// An exchange, identified by its name.
    Exchange(ExchangeName),
    /// A policy, identified by its name.
    Policy(PolicyName),
    /// A queue or stream, identified by its name.
    Queue(QueueName),
    /// A binding, identified by all of its fields.
    Binding(Binding),
    /// A record, identified by its kind and key.
    Record(RecordId),
}

impl ObjectId {
    /// Returns the kind of the object.
    pub fn kind(&self) -> ObjectKind {
        match self {
            Self::Vhost => ObjectKind::Vhost,
            Self::Exchange(_) => ObjectKind::Exchange,
            Self::Policy(_) => ObjectKind::Policy,
            Self::Queue(_) => ObjectKind::Queue,
            Self::Binding(_) => ObjectKind::Binding,
            Self::Record(id) => ObjectKind::Record(id.kind),
        }
    }
}

impl ObjectId {
    /// Returns the name of the object within its vhost or the cluster; `None` for kinds without names, such as
    /// bindings.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Exchange(name) => Some(name.as_str()),
            Self::Policy(name) => Some(name.as_str()),
            Self::Queue(name) => Some(name.as_str()),
            Self::Record(id) => id.name(),
            Self::Vhost | Self::Binding(_) => None,
        }
    }
}

/// Writes the kind and the name: `queue orders.work`, `binding orders ─ order.# → orders.work`.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vhost => f.write_str("vhost"),
            Self::Exchange(name) => write!(f, "exchange {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::Queue(name) => write!(f, "queue {name}"),
            Self::Binding(binding) => write!(f, "binding {binding}"),
            Self::Record(id) => write!(f, "{id}"),
        }
    }
}

impl Destination {
    /// Returns the identity of the destination.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Queue(name) => ObjectId::Queue(name.clone()),
            Self::Exchange(name) => ObjectId::Exchange(name.clone()),
        }
    }
}

impl Binding {
    /// Returns true if the object is the source or the destination of the binding. The broker deletes the binding when
    /// it deletes either of these objects.
    pub fn involves(&self, id: &ObjectId) -> bool {
        match id {
            ObjectId::Queue(name) => self.leads_to_queue(name),
            ObjectId::Exchange(name) => self.touches_exchange(name),
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => false,
        }
    }
}

/// An object with its identity and settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Document", into = "Document")]
#[schemars(with = "Document")]
pub enum Object {
    /// The settings of the vhost.
    Vhost(Vhost),
    /// An exchange.
    Exchange(ExchangeName, Exchange),
    /// A policy.
    Policy(PolicyName, Policy),
    /// A queue.
    Queue(QueueName, Queue),
    /// A binding.
    Binding(Binding),
    /// A record.
    Record(Record),
}

impl Object {
    /// Returns the name and the policy if the object is an operator policy.
    pub fn operator_policy(&self) -> Option<(PolicyName, Policy)> {
        match self {
            Self::Record(record) => record.operator_policy(),
            Self::Vhost(_) | Self::Exchange(..) | Self::Policy(..) | Self::Queue(..) | Self::Binding(_) => None,
        }
    }

    /// Returns the identity of the object.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Vhost(_) => ObjectId::Vhost,
            Self::Exchange(name, _) => ObjectId::Exchange(name.clone()),
            Self::Policy(name, _) => ObjectId::Policy(name.clone()),
            Self::Queue(name, _) => ObjectId::Queue(name.clone()),
            Self::Binding(binding) => ObjectId::Binding(binding.clone()),
            Self::Record(record) => ObjectId::Record(record.id.clone()),
        }
    }
}

/// The JSON form of an object: a mapping whose only key is the kind. The value contains the name, if the object has
/// one, and the settings.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Document {
    /// The settings of the vhost.
    Vhost(Vhost),
    /// An exchange.
    Exchange {
        name: ExchangeName,
        #[serde(flatten)]
        exchange: Exchange,
    },
    /// A policy.
    Policy {
        name: PolicyName,
        #[serde(flatten)]
        policy: Policy,
    },
    /// A queue.
    Queue {
        name: QueueName,
        #[serde(flatten)]
        queue: Queue,
    },
    /// A binding.
    Binding(Binding),
    /// A record.
    Record(Record),
}

impl From<Object> for Document {
    fn from(object: Object) -> Self {
        match object {
            Object::Vhost(vhost) => Self::Vhost(vhost),
            Object::Exchange(name, exchange) => Self::Exchange { name, exchange },
            Object::Policy(name, policy) => Self::Policy { name, policy },
            Object::Queue(name, queue) => Self::Queue { name, queue },
            Object::Binding(binding) => Self::Binding(binding),
            Object::Record(record) => Self::Record(record),
        }
    }
}

impl From<Document> for Object {
    fn from(document: Document) -> Self {
        match document {
            Document::Vhost(vhost) => Self::Vhost(vhost),
            Document::Exchange { name, exchange } => Self::Exchange(name, exchange),
            Document::Policy { name, policy } => Self::Policy(name, policy),
            Document::Queue { name, queue } => Self::Queue(name, queue),
            Document::Binding(binding) => Self::Binding(binding),
            Document::Record(record) => Self::Record(record),
        }
    }
}

/// The settings of a vhost. topo does not change a setting that is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Vhost {
    /// A human-readable description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tags; absent if the spec does not set them. As of RabbitMQ 3.10, a PUT without tags removes all tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
    /// The type of queues that are declared without a type; since RabbitMQ 3.10.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<String>,
}

impl Vhost {
    /// Returns true if a spec can set the tag. The broker splits tags at commas and trims whitespace, and stores a tag
    /// as an atom of at most 255 characters.
    pub fn is_valid_tag(tag: &str) -> bool {
        !tag.is_empty() && !tag.contains(',') && tag.trim() == tag && tag.chars().count() <= 255
    }
}
