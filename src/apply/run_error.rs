//! Errors that end a run before its first step.

use super::BackupError;
use crate::broker::BrokerError;
use crate::model::{QueueName, VhostName};
use crate::plan::{Blockers, Plan};

/// A run that ended before its first step.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// The reason.
    #[source]
    pub error: RunError,
    /// The vhosts that were created before the error, because the lock is a queue in its vhost. Nothing else was
    /// changed.
    pub created: Vec<VhostName>,
}

/// The reason why a run ended before its first step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The broker could not be read or locked, or a vhost could not be created.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The user may not declare the lock queue.
    #[error("{error}")]
    LockRefused {
        /// The vhost.
        vhost: VhostName,
        /// The lock queue.
        queue: QueueName,
        /// The user.
        username: String,
        /// The broker's error.
        error: BrokerError,
    },
    /// The run was interrupted while it waited for the lock of another apply.
    #[error("{0}")]
    LockInterrupted(BrokerError),
    /// The plan under the locks differs from the reviewed one. Each difference is a line.
    #[error("the broker no longer matches the plan; nothing was changed")]
    Stale(Vec<String>),
    /// The plan under the locks has blockers.
    #[error("BLOCKED by {}; nothing was changed", .0.1)]
    Blocked(Box<(Plan, Blockers)>),
    /// The backup could not be written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// No transport can move the messages. Each transport has a reason.
    #[error("no transport can move the messages; nothing was changed")]
    NoTransport(Vec<String>),
    /// AMQP and HTTP reach different brokers.
    #[error("the messages cannot be moved safely; nothing was changed")]
    UnsafeTransport(#[source] BrokerError),
}
