//! Acquires and releases the locks of a run, one in each vhost that the run changes. The lock on one configured vhost,
//! `/` by default, also protects the cluster.

use super::outcome::{Report, StepDone};
use super::request::{RunError, RunEvent, RunRequest};
use crate::broker::{BrokerError, Holder, LockedBroker, Performed};
use crate::model::{BrokerVersion, VhostName};
use crate::plan::{Action, Step, VhostPlan};
use futures_util::stream::{self, StreamExt};
use std::cell::Cell;
use std::collections::BTreeMap;

/// The maximum number of locks that are released concurrently. Locks are acquired one after another, in the order of
/// the vhost names, to avoid deadlocks.
const CONCURRENT_RELEASES: usize = 8;

/// The acquired locks, and the vhosts that were created for them.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<LockedBroker>,
    /// The vhosts that did not exist, and the steps that created them.
    created: Vec<(VhostName, Step)>,
    /// The vhost whose lock protects the cluster; `None` if the run does not change the cluster.
    of_cluster: Option<VhostName>,
}

impl Locks {
    /// Locks every vhost that the run changes, in the order of the vhost names. If the run changes the cluster, also
    /// locks the vhost whose lock protects the cluster. If the plan creates a vhost, creates the vhost before its lock,
    /// because the lock is a queue in the vhost.
    pub(super) async fn acquire(
        &mut self,
        request: &RunRequest<'_>,
        observe: &dyn Fn(RunEvent<'_>),
    ) -> Result<(), RunError> {
        let RunRequest { access, reviewed, options, interrupt, .. } = request;
        let version = reviewed.target.version.parse().unwrap_or(BrokerVersion::NEWEST_KNOWN);
        let changed = reviewed.vhosts.iter().filter(|part| !part.steps.is_empty());
        let mut parts: BTreeMap<&VhostName, Option<&VhostPlan>> =
            changed.map(|part| (&part.vhost, Some(part))).collect();
        if reviewed.cluster.as_ref().is_some_and(|cluster| !cluster.part().steps.is_empty()) {
            parts.entry(&options.cluster_lock_vhost).or_default();
            self.of_cluster = Some(options.cluster_lock_vhost.clone());
        }
        for (vhost, part) in parts {
            let first = part.filter(|part| part.creates_vhost()).and_then(|part| part.steps.first());
            if let Some(step) = first.filter(|step| matches!(step.action, Action::PutVhost { .. })) {
                access.broker.perform(vhost, &step.action).await?;
                self.created.push((vhost.clone(), step.clone()));
            }
            let holder = Holder::new(access.process.description());
            let is_reported = Cell::new(false);
            let wait = |holder: &str| {
                if !is_reported.replace(true) {
                    observe(RunEvent::LockHeld { vhost, holder });
                }
                interrupt.is_requested()
            };
            let locked =
                access.broker.lock(vhost, &options.lock_queue, (holder, version), options.lock_timeout, wait).await;
            self.held.push(locked.map_err(|error| lock_error(error, vhost, request))?);
        }
        Ok(())
    }

    /// Returns the lock on a vhost. For [`VhostName::cluster`], returns the lock that protects the cluster.
    pub(super) fn of(&self, vhost: &VhostName) -> Option<&LockedBroker> {
        let vhost = if vhost.is_cluster() { self.of_cluster.as_ref()? } else { vhost };
        self.held.iter().find(|lock| lock.vhost() == vhost)
    }

    /// Returns the steps that created vhosts, in order.
    pub(super) fn creation_steps(&self) -> &[(VhostName, Step)] {
        &self.created
    }

    /// Adds the steps that created vhosts to the reports for these vhosts.
    pub(super) fn add_creation_steps(&self, reports: &mut Vec<Report>) {
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

    /// Releases all locks. A failure is reported but does not fail the run, because the lock expires with its lease.
    pub(super) async fn release(self, observe: &dyn Fn(RunEvent<'_>)) {
        let release = async |lock: LockedBroker| {
            if let Err(error) = lock.release().await {
                observe(RunEvent::LockNotReleased(&error));
            }
        };
        stream::iter(self.held).for_each_concurrent(CONCURRENT_RELEASES, release).await;
    }
}

/// Converts an error from acquiring a lock into the error that ends the run.
fn lock_error(error: BrokerError, vhost: &VhostName, request: &RunRequest<'_>) -> RunError {
    if let BrokerError::AccessRefused { username, .. } = &error {
        let (vhost, queue, username) = (vhost.clone(), request.options.lock_queue.clone(), username.clone());
        return RunError::LockRefused { vhost, queue, username, error };
    }
    let is_held = matches!(error, BrokerError::LockHeld { .. });
    if is_held && request.interrupt.is_requested() { RunError::LockInterrupted(error) } else { RunError::Broker(error) }
}
