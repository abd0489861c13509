//! The request of a run: a reviewed plan with its settings, and the resources of each vhost. Also the events that a run
//! reports, and the errors that end it before its first step.

use super::backup::{Backup, BackupError};
use super::outcome::Outcome;
use crate::broker::transport::Transport;
use crate::broker::{Access, BrokerError};
use crate::model::names::{DEFAULT_VHOST, LOCK_QUEUE};
use crate::model::{QueueName, VhostName};
use crate::plan::{Allowance, ApprovedPlan, Blockers, Desired, Plan, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Writes a backup before the first step. After an error, nothing is changed.
pub type BackupWriter<'a> = &'a dyn Fn(&Backup) -> Result<(), BackupError>;

/// A reviewed plan, and everything that its run needs.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    /// The broker.
    pub access: &'a Access,
    /// The desired topologies that the plan was made for, in the same order. That of the cluster, if any, is the first.
    pub desired: &'a [Arc<Desired>],
    /// The reviewed plan. The run executes only its steps, without those that are already done.
    pub reviewed: &'a Plan,
    /// The allowed hazards.
    pub allowed: &'a [Allowance],
    /// Writes the objects that the plan deletes, changes or recreates; `None` for no backup.
    pub backup: Option<BackupWriter<'a>>,
    /// Stops the run after the current steps.
    pub interrupt: &'a Interrupt,
    /// The settings.
    pub options: &'a RunOptions,
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The queue that serves as the lock. All applies to a vhost must use the same one.
    pub lock_queue: QueueName,
    /// The vhost whose lock also protects the cluster. All applies to the cluster must use the same one.
    pub cluster_lock_vhost: VhostName,
    /// The time to wait for a lock that another apply holds.
    pub lock_timeout: Duration,
    /// The time to wait while messages make no progress. After this time, retired tiers are left for the next apply,
    /// and a migration is rolled back.
    pub drain_timeout: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            lock_queue: QueueName::new(LOCK_QUEUE),
            cluster_lock_vhost: VhostName::new(DEFAULT_VHOST),
            lock_timeout: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// The resources of an apply, in addition to the plan.
#[derive(Clone, Copy)]
pub struct ApplyResources<'a> {
    /// The maximum number of concurrent requests.
    pub concurrency: usize,
    /// The transport for messages; `None` if the plan needs none.
    pub transport: Option<&'a Transport>,
    /// The time for which a migration may stall before it is rolled back.
    pub drain_timeout: Duration,
}

/// A flag that a signal sets once. The executor checks it before each step.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Requests a stop after the current steps.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true if a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// An event for the observer of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// The run acquires its locks.
    Locking,
    /// The run waits for a lock that another apply holds.
    LockHeld {
        /// The vhost.
        vhost: &'a VhostName,
        /// The description of the holder.
        holder: &'a str,
    },
    /// The run holds all locks, and plans again.
    Planning,
    /// The new plan is approved; the backup follows.
    Approved(&'a ApprovedPlan),
    /// The steps start. The listed steps created vhosts and are already done.
    Executing(&'a ApprovedPlan, &'a [(VhostName, Step)]),
    /// A step has made progress.
    Step(Progress<'a>),
    /// Every step was done; the run reads the broker again.
    Verifying,
    /// The outcome is complete, and the locks are still held.
    Ended(&'a Outcome),
    /// A lock could not be released; it expires within a minute.
    LockNotReleased(&'a BrokerError),
}

/// An event for the observer of an apply.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A step was done.
    Done(&'a Step),
    /// A step failed.
    Failed(&'a Step, &'a BrokerError),
    /// A step is left for the next run, because the object to delete is still in use.
    Waiting(&'a Step),
    /// A queue drains: the number of moved messages, the number of remaining messages if known, and the reason for a
    /// stall.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// A step is retried, because the object to delete is still in use.
    Stalled(&'a Step, &'a BrokerError),
    /// The deletion waits for two ticks of the queue, which prove its guard. The duration is the length of this wait.
    Proving(&'a Step, Duration),
    /// The migration of a queue is being rolled back. The error is the reason; `None` after an interruption.
    RollingBack(&'a QueueName, Option<&'a BrokerError>),
}

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
