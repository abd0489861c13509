//! Defines the errors of the `topo dlq` commands.

use super::hazard::Hazard;
use crate::broker::BrokerError;
use crate::model::count::count;
use crate::model::{QueueName, VhostName};
use std::collections::BTreeSet;

/// The reason why a `topo dlq` command fails before it moves any messages.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DlqError {
    /// The vhost does not exist.
    #[error("vhost `{vhost}` does not exist")]
    NoVhost {
        /// The vhost.
        vhost: VhostName,
        /// The existing vhosts.
        known: Vec<VhostName>,
    },
    /// The queue does not exist.
    #[error("queue `{queue}` does not exist")]
    NoQueue {
        /// The queue.
        queue: QueueName,
        /// The dead-letter queues in the vhost.
        dead_letter_queues: Vec<QueueName>,
    },
    /// The queue receives no dead-lettered messages.
    #[error("queue `{queue}` is not a dead-letter queue: no queue dead-letters messages to it")]
    NotDeadLetterQueue {
        /// The queue.
        queue: QueueName,
    },
    /// The queue is a stream, from which no message can be removed.
    #[error("queue `{queue}` is a stream; messages cannot be removed from a stream")]
    Stream {
        /// The queue.
        queue: QueueName,
    },
    /// Some messages in an archive may be published only by other users.
    #[error("the archive contains messages whose `user_id` names a different user: {}", .users.iter().map(|user| format!("`{user}`")).collect::<Vec<_>>().join(", "))]
    OtherUsers {
        /// The users.
        users: BTreeSet<String>,
    },
    /// An inspection could exceed the delivery limit of the queue, and lose messages.
    #[error(
        "the delivery limit of queue `{queue}` is {limit}, so an inspection could lose messages; the limit must be at least {required}"
    )]
    LowLimit {
        /// The queue.
        queue: QueueName,
        /// The limit.
        limit: u64,
        /// The minimum limit.
        required: u64,
    },
    /// The messages could not be inspected.
    #[error("the messages could not be inspected: {reason}")]
    Inspection {
        /// The reason.
        reason: String,
    },
    /// Another `topo dlq` command is using the queue.
    #[error("another topo dlq command is using queue `{queue}`")]
    Locked {
        /// The queue.
        queue: QueueName,
    },
    /// Hazards that are not allowed.
    #[error("{}", hazards_text(.0))]
    Hazards(Vec<(Hazard, String)>),
    /// The target of a replay cannot receive messages.
    #[error("{messages} cannot be replayed to queue `{target}`: {reason}", messages = count(*.messages, "message"))]
    Target {
        /// The target.
        target: QueueName,
        /// The number of messages.
        messages: u64,
        /// The reason.
        reason: String,
    },
    /// topo cannot connect over AMQP.
    #[error("cannot connect over AMQP: {reason}")]
    Amqp {
        /// The reason.
        reason: String,
    },
    /// A request to the broker failed.
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

fn hazards_text(hazards: &[(Hazard, String)]) -> String {
    let texts: Vec<String> = hazards.iter().map(|(hazard, text)| format!("{}: {text}", hazard.as_str())).collect();
    texts.join("; ")
}
