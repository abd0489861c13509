//! Defines the request for a run, the resources for an apply, the events that a run reports, and the errors that end a
//! run before its first step.

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

/// A callback that writes a backup before the first step. If the callback returns an error, the run changes nothing.
pub type BackupWriter<'a> = &'a dyn Fn(&Backup) -> Result<(), BackupError>;

/// A reviewed plan, and the inputs for its run.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    /// The broker.
    pub access: &'a Access,
    /// The desired topologies for which the plan was made, in the same order. The topology of the cluster, if any, is
    /// first.
    pub desired: &'a [Arc<Desired>],
    /// The reviewed plan. The run executes only steps from this plan, and omits steps that are already done.
    pub reviewed: &'a Plan,
    /// The allowed hazards.
    pub allowed: &'a [Allowance],
    /// The callback that writes the backup; `None` for no backup.
    pub backup: Option<BackupWriter<'a>>,
    /// The flag that stops the run after the current steps.
    pub interrupt: &'a Interrupt,
    /// The settings of the run.
    pub options: &'a RunOptions,
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The queue that serves as the lock. Every apply to a vhost must use the same queue.
    pub lock_queue: QueueName,
    /// The vhost whose lock also protects the cluster. Every apply to the cluster must use the same vhost.
    pub cluster_lock_vhost: VhostName,
    /// The maximum time to wait for a lock that another apply holds.
    pub lock_timeout: Duration,
    /// The maximum total time for retired tiers to drain, and the maximum time that a migration can go without
    /// progress. After this time, retired tiers are left for the next apply. A migration is rolled back if the old
    /// queue still exists, and fails otherwise.
    pub drain_timeout: Duration,
    /// The maximum time to wait for the consumers of recreated queues; `None` for
    /// [`Intervals::consumers_return`](crate::model::Intervals::consumers_return).
    pub consumer_wait: Option<Duration>,
    /// True if the run is incomplete until the recreated queues have as many consumers as before.
    pub requires_consumers: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            lock_queue: QueueName::new(LOCK_QUEUE),
            cluster_lock_vhost: VhostName::new(DEFAULT_VHOST),
            lock_timeout: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
            consumer_wait: None,
            requires_consumers: false,
        }
    }
}

/// The resources for applying the plan of one vhost, in addition to the plan itself.
#[derive(Clone, Copy)]
pub struct ApplyResources<'a> {
    /// The maximum number of steps that run concurrently.
    pub concurrency: usize,
    /// The transport for messages; `None` if the plan moves no messages.
    pub transport: Option<&'a Transport>,
    /// The time limit for draining; see [`RunOptions::drain_timeout`].
    pub drain_timeout: Duration,
}

/// A flag that a signal sets once. The executor checks the flag before each step.
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
    /// The run is acquiring its locks.
    Locking,
    /// The run is waiting for a lock that another apply holds.
    LockHeld {
        /// The vhost.
        vhost: &'a VhostName,
        /// The description of the holder.
        holder: &'a str,
    },
    /// The run holds all locks, and is planning again.
    Planning,
    /// The new plan is approved. The backup follows.
    Approved(&'a ApprovedPlan),
    /// The steps start. The listed steps, which created vhosts, are already done.
    Executing(&'a ApprovedPlan, &'a [(VhostName, Step)]),
    /// A step has made progress.
    Step(Progress<'a>),
    /// The run is waiting for the consumers of recreated queues to subscribe again. Reported again when the number of
    /// returned consumers changes.
    AwaitingConsumers {
        /// The number of consumers that have returned.
        returned: usize,
        /// The number of consumers before the recreations.
        before: usize,
    },
    /// Every step was done or is left for the next run, and the run is reading the broker again to verify the result.
    Verifying,
    /// The outcome is complete, and the locks are still held.
    Ended(&'a Outcome),
    /// A lock could not be released. The lock expires within a minute.
    LockNotReleased(&'a BrokerError),
}

/// An event for the observer of an apply.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A step was done.
    Done(&'a Step),
    /// A step failed.
    Failed(&'a Step, &'a BrokerError),
    /// A step is left for the next run, because it deletes a retired tier that has not drained, or because it depends
    /// on such a step.
    Waiting(&'a Step),
    /// Messages are being moved or consumed. The values are the step, the number of moved messages, the number of
    /// remaining messages, and the reason for a stall. A number is `None` if unknown.
    Moving(&'a Step, Option<u64>, Option<u64>, Option<&'a str>),
    /// A retired tier could not be deleted yet, because its guard was not satisfied. topo retries until the drain
    /// timeout.
    Stalled(&'a Step, &'a BrokerError),
    /// The deletion of a queue is waiting for two ticks, which prove that its guard is satisfied. The duration is the
    /// expected length of this wait.
    Confirming(&'a Step, Duration),
    /// The migration of a queue is being rolled back. The error is the reason; `None` after an interruption.
    RollingBack(&'a QueueName, Option<&'a BrokerError>),
}

/// A run that ended before it executed the plan.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// The reason.
    #[source]
    pub error: RunError,
    /// The vhosts that were created before the error occurred. A vhost must exist before topo can lock it, because the
    /// lock is a queue in the vhost. Nothing else was changed.
    pub created: Vec<VhostName>,
}

/// The reason why a run ended before it executed the plan.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The broker could not be read or locked, or a vhost could not be created.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The user is not allowed to declare the lock queue.
    #[error("{error}")]
    LockRefused {
        /// The vhost.
        vhost: VhostName,
        /// The lock queue.
        queue: QueueName,
        /// The user name.
        username: String,
        /// The broker's error.
        error: BrokerError,
    },
    /// The run was interrupted while it was waiting for a lock that another apply held.
    #[error("{0}")]
    LockInterrupted(BrokerError),
    /// The plan that was made under the locks differs from the reviewed plan. Each string describes a difference.
    #[error("the broker no longer matches the plan; nothing was changed")]
    Stale(Vec<String>),
    /// The plan that was made under the locks has blockers.
    #[error("BLOCKED by {}; nothing was changed", .0.1)]
    Blocked(Box<(Plan, Blockers)>),
    /// The backup could not be written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// No transport can move the messages. Each string is the reason why one transport is unavailable.
    #[error("no transport can move the messages; nothing was changed")]
    NoTransport(Vec<String>),
    /// topo could not verify that the AMQP and HTTP connections reach the same broker.
    #[error("the messages cannot be moved safely; nothing was changed")]
    UnsafeTransport(#[source] BrokerError),
}
