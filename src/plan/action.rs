//! Defines the operations of steps. A plan shows and saves the same value that topo turns into a request.

use crate::model::{
    Binding, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Record, RecordId, TopicPermission,
    Vhost,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One operation on one object. Each operation except `MoveMessages` changes the broker with one management API
/// request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub enum Action {
    /// Creates a vhost or writes all of its settings. The request must contain all settings, because the broker clears
    /// settings that a PUT omits.
    PutVhost {
        /// The settings to write.
        vhost: Vhost,
    },
    /// Declares an exchange.
    DeclareExchange {
        /// The name of the exchange.
        name: ExchangeName,
        /// The desired exchange.
        exchange: Exchange,
        /// The bindings that the broker creates in the same request when an exchange is recreated, so that no client
        /// sees the exchange without its bindings. Only an administrator may send this request. For other users, topo
        /// declares only the exchange, and later steps create the missing bindings.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bindings: Vec<Binding>,
    },
    /// Restores a topic permission that the broker deleted with its exchange.
    PutTopicPermission {
        /// The topic permission.
        permission: TopicPermission,
    },
    /// Creates or changes a policy.
    PutPolicy {
        /// The name of the policy.
        name: PolicyName,
        /// The desired policy.
        policy: Policy,
    },
    /// Declares a queue.
    DeclareQueue {
        /// The name of the queue.
        name: QueueName,
        /// The desired queue.
        queue: Queue,
    },
    /// Creates a binding.
    Bind {
        /// The binding.
        binding: Binding,
    },
    /// Removes one binding.
    Unbind {
        /// The binding.
        binding: Binding,
        /// The key under which the broker lists the binding. The binding alone is ambiguous: two bindings whose
        /// arguments differ only in the integer type (int32 or int64) have the same JSON.
        properties_key: String,
    },
    /// Deletes a queue.
    DeleteQueue {
        /// The name of the queue.
        name: QueueName,
        /// The condition for the deletion.
        guard: Guard,
    },
    /// Deletes an exchange. The broker also deletes all bindings from and to the exchange.
    DeleteExchange {
        /// The name of the exchange.
        name: ExchangeName,
    },
    /// Deletes a policy.
    DeletePolicy {
        /// The name of the policy.
        name: PolicyName,
    },
    /// Creates or changes a record.
    PutRecord {
        /// The desired record.
        record: Record,
        /// True if the record is a user that exists and keeps the current password.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_password: bool,
    },
    /// Deletes a record.
    DeleteRecord {
        /// The kind and the key of the record.
        id: RecordId,
    },
    /// Moves the messages of a queue to a fanout exchange, in order. A transport (AMQP or a shovel) performs the move.
    MoveMessages {
        /// The queue to read from.
        from: QueueName,
        /// The exchange to publish to. It routes to exactly one queue.
        to: ExchangeName,
        /// How far the transport drains the queue.
        until: Level,
    },
}

/// How far a transport drains a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// The queue is empty, and no message is in transit.
    Empty,
    /// The queue is almost empty. More messages may arrive, so the transport continues, and the next step must follow
    /// immediately.
    NearlyEmpty,
}

/// The condition under which a queue is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Guard {
    /// The broker reports no ready or unacknowledged messages in the queue. Otherwise, topo keeps the queue.
    Empty,
    /// The queue is out of use and has been empty for a second. Otherwise, topo keeps the queue without reporting a
    /// failure, and the next apply tries again.
    Drained,
    /// The queue contains at most this number of messages, the limit from `--allow message-loss:N`.
    AtMost(u64),
    /// No condition: the messages are deleted with the queue. Used only if `message-loss` is allowed without a limit,
    /// or for a queue that topo created and that receives no messages.
    Nothing,
}

impl Action {
    /// Returns an action that declares an exchange without bindings; later steps create the bindings.
    pub fn declare_exchange(name: &ExchangeName, exchange: &Exchange) -> Self {
        Self::DeclareExchange { name: name.clone(), exchange: exchange.clone(), bindings: Vec::new() }
    }

    /// Returns the object that the action changes.
    pub fn object(&self) -> ObjectId {
        match self {
            Self::PutVhost { .. } => ObjectId::Vhost,
            Self::DeclareExchange { name, .. } | Self::DeleteExchange { name } => ObjectId::Exchange(name.clone()),
            Self::PutTopicPermission { permission } => ObjectId::Exchange(permission.exchange.clone()),
            Self::PutPolicy { name, .. } | Self::DeletePolicy { name } => ObjectId::Policy(name.clone()),
            Self::DeclareQueue { name, .. } | Self::DeleteQueue { name, .. } => ObjectId::Queue(name.clone()),
            Self::MoveMessages { from, .. } => ObjectId::Queue(from.clone()),
            Self::PutRecord { record, .. } => ObjectId::Record(record.id.clone()),
            Self::DeleteRecord { id } => ObjectId::Record(id.clone()),
            Self::Bind { binding } | Self::Unbind { binding, .. } => ObjectId::Binding(binding.clone()),
        }
    }
}
