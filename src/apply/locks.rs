//! Acquires and releases the locks of a run: one in each vhost that is changed.

use super::{Report, RunError, RunEvent, RunRequest, StepDone};
use crate::broker::{BrokerError, Holder, LockedBroker, Performed};
use crate::model::{BrokerVersion, VhostName};
use crate::plan::{Action, Step};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;

/// The number of locks that are released concurrently. They are acquired one after another, by name, to avoid deadlocks.
const RELEASES_AT_ONCE: usize = 8;

/// The acquired locks, and the vhosts that had to be created for them.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<LockedBroker>,
    /// Vhosts that were created before anything could be locked in them.
    created: Vec<(VhostName, Step)>,
}

impl Locks {
    /// Locks every vhost that is changed, in the order of their names. A missing vhost is created first, because the lock is a
    /// queue in it.
    pub(super) async fn acquire(
        &mut self,
        request: &RunRequest<'_>,
        observe: &dyn Fn(RunEvent<'_>),
    ) -> Result<(), RunError> {
        let RunRequest { access, reviewed, options, interrupt, .. } = request;
        let version = reviewed.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
        for part in reviewed.vhosts.iter().filter(|part| !part.steps.is_empty()) {
            let vhost = &part.vhost;
            let missing = part.creates_vhost();
            let first = part.steps.first();
            if let Some(step) = first.filter(|step| missing && matches!(step.action, Action::PutVhost { .. })) {
                access.broker.perform(vhost, &step.action).await?;
                self.created.push((vhost.clone(), step.clone()));
            }
            let holder = Holder::new(access.process.words());
            let is_told = Cell::new(false);
            let wait = |holder: &str| {
                if !is_told.replace(true) {
                    observe(RunEvent::LockHeld { vhost, holder });
                }
                interrupt.is_requested()
            };
            let locked =
                access.broker.lock(vhost, &options.lock_queue, (holder, version), options.lock_timeout, wait).await;
            self.held.push(locked.map_err(|error| not_locked(error, vhost, request))?);
        }
        Ok(())
    }

    /// The lock of a vhost.
    pub(super) fn of(&self, vhost: &VhostName) -> Option<&LockedBroker> {
        self.held.iter().find(|lock| lock.vhost() == vhost)
    }

    /// The steps that created vhosts, in order.
    pub(super) fn created(&self) -> &[(VhostName, Step)] {
        &self.created
    }

    /// Adds the steps that created vhosts to the reports.
    pub(super) fn complete(&self, reports: &mut Vec<Report>) {
        for (vhost, step) in &self.created {
            let done = StepDone { step: step.clone(), performed: Performed::Done };
            match reports.iter_mut().find(|report| report.vhost == *vhost) {
                Some(report) => report.done.insert(0, done),
                None => {
                    let mut report = Report::new(vhost.clone());
                    report.done.push(done);
                    reports.push(report);
                }
            }
        }
    }

    /// Releases all locks. The lease of an unreleased lock expires; the report is more important.
    pub(super) async fn release(self, observe: &dyn Fn(RunEvent<'_>)) {
        let release = async |lock: LockedBroker| {
            if let Err(error) = lock.release().await {
                observe(RunEvent::LockNotReleased(&error));
            }
        };
        stream::iter(self.held).for_each_concurrent(RELEASES_AT_ONCE, release).await;
    }
}

fn not_locked(error: BrokerError, vhost: &VhostName, request: &RunRequest<'_>) -> RunError {
    if let BrokerError::AccessRefused { username, .. } = &error {
        let (vhost, queue, username) = (vhost.clone(), request.options.lock_queue.clone(), username.clone());
        return RunError::LockRefused { vhost, queue, username, error };
    }
    let held = matches!(error, BrokerError::LockHeld { .. });
    if held && request.interrupt.is_requested() { RunError::LockInterrupted(error) } else { RunError::Broker(error) }
}
