//! Runs a reviewed plan: locks its vhosts, plans again, checks the new plan, executes it, and verifies the result.

use super::execute::Progress;
use super::locks::Locks;
use super::planning::plan;
use super::vhosts::{self, transports};
use super::{Backup, BackupError, Interrupt, Outcome, Report, RunError, RunFailure};
use crate::broker::{Access, BrokerError};
use crate::model::names::LOCK_QUEUE;
use crate::model::{QueueName, VhostName};
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::{Allowance, ApprovedPlan, Desired, Plan, Step, gate};
use std::sync::Arc;
use std::time::Duration;

/// Writes a backup before the first step. After an error, nothing is changed.
pub type BackupWriter<'a> = &'a dyn Fn(&Backup) -> Result<(), BackupError>;

/// A reviewed plan, and everything that its run needs.
#[derive(Clone, Copy)]
pub struct RunRequest<'a> {
    /// The broker.
    pub access: &'a Access,
    /// The desired topologies that the plan was made for, in the same order.
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
            lock_timeout: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
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

/// Runs a reviewed plan under the locks of its vhosts, and reports every event to `observe`.
///
/// Must run inside a tokio runtime. The future is not `Send`. If it is dropped, steps in progress may or may not
/// complete, and the locks expire within a minute.
///
/// # Errors
/// Returns an error if the run ended before its first step. A failed step is part of the [`Outcome`].
pub async fn run(request: &RunRequest<'_>, observe: &dyn Fn(RunEvent<'_>)) -> Result<Outcome, RunFailure> {
    let mut locks = Locks::default();
    observe(RunEvent::Locking);
    let result = match locks.acquire(request, observe).await {
        Ok(()) => locked_run(request, &locks, observe).await,
        Err(error) => Err(error),
    };
    let created = || locks.created().iter().map(|(vhost, _)| vhost.clone()).collect();
    let result = result.map_err(|error| RunFailure { error, created: created() });
    locks.release(observe).await;
    result
}

async fn locked_run(
    request: &RunRequest<'_>,
    locks: &Locks,
    observe: &dyn Fn(RunEvent<'_>),
) -> Result<Outcome, RunError> {
    observe(RunEvent::Planning);
    let approved = approve(request).await?;
    observe(RunEvent::Approved(&approved));
    if let Some(write) = request.backup
        && let Some(backup) = Backup::read(&request.access.broker, approved.plan()).await?
    {
        write(&backup)?;
    }
    let transports = transports(request.access, approved.plan()).await?;
    observe(RunEvent::Executing(&approved, locks.created()));
    let mut reports = vhosts::execute(request, &approved, locks, &transports, observe).await;
    locks.complete(&mut reports);
    let is_complete = reports.iter().all(Report::is_complete);
    // A signal that arrived after the last step counts, too.
    for report in reports.iter_mut().filter(|_| is_complete && request.interrupt.is_requested()) {
        report.interrupted = true;
    }
    if is_complete {
        observe(RunEvent::Verifying);
    }
    let left =
        if is_complete { super::outcome::remaining_differences(request, &reports).await } else { Ok(Vec::new()) };
    let outcome = Outcome { plan: approved, reports, left };
    observe(RunEvent::Ended(&outcome));
    Ok(outcome)
}

/// Plans again under the locks. Approves the new plan if it has no additional steps and no blockers.
async fn approve(request: &RunRequest<'_>) -> Result<ApprovedPlan, RunError> {
    let now = plan(request.access, request.desired, &request.reviewed.options).await?;
    match staleness(request.reviewed, &now) {
        Staleness::Same | Staleness::Rest => gate(now, request.allowed).map_err(RunError::Blocked),
        Staleness::Stale(news) => Err(RunError::Stale(news)),
    }
}
