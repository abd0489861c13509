//! The one operation of a step. The same value is shown, saved, and turned into the request that is sent.

use crate::model::{
    Binding, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Record, RecordId, TopicPermission,
    Vhost,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One operation on one object of a vhost; one request of the management API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub enum Action {
    /// Creates a vhost, or writes its settings: always all of them, because a PUT empties what it leaves out.
    PutVhost {
        /// The settings after it.
        vhost: Vhost,
    },
    /// Declares an exchange.
    DeclareExchange {
        /// Its name.
        name: ExchangeName,
        /// What it shall be.
        exchange: Exchange,
        /// Bound in the same request, where it is made again: so nobody sees it without them. Only an administrator may do
        /// that; for anybody else it is declared alone. What is still missing is bound by later steps.
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
        /// Its name.
        name: PolicyName,
        /// What it shall be.
        policy: Policy,
    },
    /// Declares a queue.
    DeclareQueue {
        /// Its name.
        name: QueueName,
        /// What it shall be.
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
        /// The broker's own key for it, as it was listed: the same JSON can be two bindings (int32 and int64).
        properties_key: String,
    },
    /// Deletes a queue.
    DeleteQueue {
        /// Its name.
        name: QueueName,
        /// What must hold at that moment.
        guard: Guard,
    },
    /// Deletes an exchange, and with it every binding from it and to it.
    DeleteExchange {
        /// Its name.
        name: ExchangeName,
    },
    /// Deletes a policy.
    DeletePolicy {
        /// Its name.
        name: PolicyName,
    },
    /// Creates or changes a record.
    PutRecord {
        /// The desired record.
        record: Record,
    },
    /// Deletes a record.
    DeleteRecord {
        /// Its kind and key.
        id: RecordId,
    },
    /// Moves what a queue holds to a fanout exchange, in order: not one request, but a transport that runs for a while.
    MoveMessages {
        /// The queue.
        from: QueueName,
        /// The exchange, which leads to one queue.
        to: ExchangeName,
        /// How far.
        until: Level,
    },
}

/// How far a queue is emptied by a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// Until it holds nothing, and nothing is under way.
    Empty,
    /// Until next to nothing is in it; more may come, so the transport goes on. What comes next must follow at once.
    NearlyEmpty,
}

/// What must hold when a queue is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Guard {
    /// It holds no message, acknowledged or not, as far as the broker can say; else it is left alone.
    Empty,
    /// It holds no message, and that has been so for a moment: it is out of use. While it does, it is left alone, and that
    /// is no failure: the next apply tries again.
    Drained,
    /// It holds no more than so many messages: the bound of `--allow message-loss:N`.
    AtMost(u64),
    /// Nothing: its messages go with it. Only after `message-loss` was allowed without a bound, and for what topo made itself
    /// a moment ago and nothing leads to.
    Nothing,
}

impl Action {
    /// Declares an exchange alone: its bindings come later.
    pub fn declare_exchange(name: &ExchangeName, exchange: &Exchange) -> Self {
        Self::DeclareExchange { name: name.clone(), exchange: exchange.clone(), bindings: Vec::new() }
    }

    /// The object that it is about.
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
