//! Queues, exchanges and topic permissions, as the broker stores them.

use super::arguments::Arguments;
use super::names::OWN_ARGUMENT_PREFIX;
use super::names::{ExchangeName, UserName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A queue without its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// True if the queue survives a broker restart.
    pub durable: bool,
    /// True if the broker deletes the queue when its last consumer is canceled.
    pub auto_delete: bool,
    /// True if the queue belongs to one connection. topo only reads this field, because the management API cannot
    /// declare an exclusive queue for a connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// The `x-` arguments, including `x-queue-type`.
    pub arguments: Arguments,
}

/// The queue types that topo supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueType {
    /// A queue with one replica, on one node.
    Classic,
    /// A queue that is replicated with Raft.
    Quorum,
    /// An append-only log. Consuming does not remove messages.
    Stream,
}

impl QueueType {
    /// All types, in display order.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Quorum, Self::Stream];

    /// Returns RabbitMQ's name for the type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
            Self::Stream => "stream",
        }
    }

    /// Returns the type with this name; `None` for any other name, such as the name of a plugin type.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for QueueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Queue {
    /// Returns the type name in `x-queue-type`. A stored queue without this argument is classic, in every version.
    pub fn type_name(&self) -> &str {
        self.arguments.get("x-queue-type").and_then(|value| value.as_text()).unwrap_or("classic")
    }

    /// Returns the type of the queue; `None` if a plugin provides the type.
    pub fn queue_type(&self) -> Option<QueueType> {
        QueueType::named(self.type_name())
    }

    /// Returns true if the queue has a single active consumer.
    pub fn has_single_active_consumer(&self) -> bool {
        self.arguments.get("x-single-active-consumer") == Some(&super::ArgumentValue::Boolean(true))
    }

    /// Returns true if the queue has the `x-expires` argument: the broker deletes the queue after it has been unused
    /// for the specified time.
    pub fn expires(&self) -> bool {
        self.arguments.contains_key("x-expires")
    }

    /// Returns true if topo created the queue for its own use, such as its lock or a holding queue. topo neither
    /// manages nor reports such queues.
    pub fn is_created_by_topo(&self) -> bool {
        self.arguments.keys().any(|key| key.starts_with(OWN_ARGUMENT_PREFIX))
    }
}

/// An exchange without its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// The type: `direct`, `fanout`, `topic`, `headers`, or a plugin type such as `x-consistent-hash`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if the exchange survives a broker restart.
    pub durable: bool,
    /// True if the broker deletes the exchange when its last binding is deleted.
    pub auto_delete: bool,
    /// True if clients cannot publish to the exchange. Other exchanges can route to it, and queues can dead-letter to
    /// it.
    pub internal: bool,
    /// The arguments. When the exchange is redeclared, the broker compares only `alternate-exchange`, except for the
    /// internal exchanges of federation.
    pub arguments: Arguments,
}

impl Exchange {
    /// Returns the alternate exchange, if an argument sets it.
    pub fn alternate_exchange(&self) -> Option<&str> {
        self.arguments.get("alternate-exchange").and_then(|value| value.as_text())
    }

    /// Returns true if topo created the exchange for its own use, such as a tap. topo neither manages nor reports such
    /// exchanges.
    pub fn is_created_by_topo(&self) -> bool {
        self.arguments.keys().any(|key| key.starts_with(OWN_ARGUMENT_PREFIX))
    }
}

/// A user's permission to use certain routing keys on one exchange. Without a topic permission for the exchange, the
/// user can use any routing key, so deleting a topic permission widens access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TopicPermission {
    /// The user.
    pub user: UserName,
    /// The exchange. Only exchanges of type `topic` enforce topic permissions.
    pub exchange: ExchangeName,
    /// The regular expression for the routing keys with which the user may publish.
    pub write: String,
    /// The regular expression for the routing keys with which the user may bind.
    pub read: String,
}

impl fmt::Display for TopicPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic permission of user {} on exchange {}", self.user, self.exchange)
    }
}
