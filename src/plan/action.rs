//! Defines the operation of a step. A plan shows and saves the same value that becomes the request.

use crate::model::{
    Binding, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Record, RecordId, TopicPermission,
    Vhost,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One operation on one object of a vhost. Each is one request of the management API, except moving messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub enum Action {
    /// Creates a vhost, or writes all of its settings, because a PUT clears the settings that it leaves out.
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
        /// Bindings that the broker creates in the same request when an exchange is recreated, so that no client sees
        /// the exchange without them. Only an administrator may send that request; for other users, topo declares the
        /// exchange alone. Later steps create the bindings that are still missing.
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
        /// The key by which the broker lists the binding. Two bindings can have the same JSON (int32 and int64).
        properties_key: String,
    },
    /// Deletes a queue.
    DeleteQueue {
        /// The name of the queue.
        name: QueueName,
        /// The condition for the deletion.
        guard: Guard,
    },
    /// Deletes an exchange. The broker also deletes every binding from it and to it.
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
    },
    /// Deletes a record.
    DeleteRecord {
        /// The kind and the key of the record.
        id: RecordId,
    },
    /// Moves the messages of a queue to a fanout exchange, in order. A transport moves them over some time, without a
    /// request.
    MoveMessages {
        /// The queue to read from.
        from: QueueName,
        /// The exchange to publish to; it leads to one queue.
        to: ExchangeName,
        /// The level at which the move ends.
        until: Level,
    },
}

/// The level to which a transport empties a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// The queue holds no messages, and no message is in transit.
    Empty,
    /// The queue holds almost no messages. More may arrive, so the transport continues. The next step must follow
    /// immediately.
    NearlyEmpty,
}

/// The condition under which a queue is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Guard {
    /// The queue holds no messages, ready or unacknowledged, as far as the broker reports. Otherwise topo keeps the
    /// queue.
    Empty,
    /// The queue has held no messages for a moment: it is out of use. While it holds messages, topo keeps the queue.
    /// This is not a failure: the next apply tries again.
    Drained,
    /// The queue holds at most this number of messages: the limit of `--allow message-loss:N`.
    AtMost(u64),
    /// No condition: the messages are deleted with the queue. Used only if `message-loss` is allowed without a limit,
    /// or for an object that topo has just created and that receives no messages.
    Nothing,
}

impl Action {
    /// Returns an action that declares an exchange without bindings; later steps create them.
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
            Self::PutRecord { record } => ObjectId::Record(record.id.clone()),
            Self::DeleteRecord { id } => ObjectId::Record(id.clone()),
            Self::Bind { binding } | Self::Unbind { binding, .. } => ObjectId::Binding(binding.clone()),
        }
    }
}
