//! A queue, as the broker stores it.

use super::Arguments;
use super::names::OWN_ARGUMENT_PREFIX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A queue without its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// Whether it survives a restart of the broker.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// Whether it belongs to one connection. Read only: over HTTP no exclusive queue can be made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// The `x-` arguments, `x-queue-type` among them.
    pub arguments: Arguments,
}

/// The types of queues that topo knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueType {
    /// One replica, on one node.
    Classic,
    /// Replicated by Raft.
    Quorum,
    /// An append-only log; reading does not remove.
    Stream,
}

impl QueueType {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Quorum, Self::Stream];

    /// RabbitMQ's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
            Self::Stream => "stream",
        }
    }

    /// The type with that name; `None` for the types of plugins.
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
    /// The word in `x-queue-type`; without the argument a queue is classic, on every version.
    pub fn type_name(&self) -> &str {
        self.arguments.get("x-queue-type").and_then(|value| value.as_text()).unwrap_or("classic")
    }

    /// The type, or `None` for a type that a plugin brings.
    pub fn queue_type(&self) -> Option<QueueType> {
        QueueType::named(self.type_name())
    }

    /// Whether topo made it for itself (its lock, a holding queue): such queues are neither managed nor reported.
    pub fn is_topos_own(&self) -> bool {
        self.arguments.keys().any(|key| key.starts_with(OWN_ARGUMENT_PREFIX))
    }
}
