//! The outcome of a run: its reports, the objects that still differ, and its status.

use super::planning::plan;
use super::{Report, RunRequest};
use crate::broker::BrokerError;
use crate::model::{Address, VhostName};
use crate::plan::{ApprovedPlan, Options, PlannedChange};
use std::collections::BTreeSet;

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The plan that was executed.
    pub plan: ApprovedPlan,
    /// A report for each vhost with steps.
    pub reports: Vec<Report>,
    /// The objects that still differ after every step was done, or the reason why the result could not be verified.
    /// Always empty after an incomplete run, which is not verified.
    pub left: Result<Vec<Address>, BrokerError>,
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every step was done, and the broker matches the spec.
    Applied,
    /// Something was changed, but not everything is as planned.
    Partial,
    /// The run was interrupted before anything was changed.
    Interrupted,
    /// A guard or another client prevented the first step; nothing was changed.
    Blocked,
    /// The first step failed; nothing was changed.
    Failed,
}

impl Status {
    /// Returns the status as a word for JSON reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Partial => "partial",
            Self::Interrupted => "interrupted",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

impl Outcome {
    /// Returns the status of the run.
    pub fn status(&self) -> Status {
        let complete = self.reports.iter().all(Report::is_complete);
        let matches = self.left.as_ref().is_ok_and(Vec::is_empty);
        let interrupted = self.reports.iter().any(|report| report.interrupted);
        match (complete, self.has_changed()) {
            (true, _) if matches && self.conflicting_policy().is_none() && self.missing_messages() == 0 => {
                Status::Applied
            }
            (true, _) | (false, true) => Status::Partial,
            (false, false) if interrupted => Status::Interrupted,
            (false, false) => {
                let is_race =
                    |error: &BrokerError| error.is_guard() || matches!(error, BrokerError::Inequivalent { .. });
                let refused =
                    self.reports.iter().flat_map(|report| &report.failed).any(|failed| is_race(&failed.error));
                if refused { Status::Blocked } else { Status::Failed }
            }
        }
    }

    /// Returns true if the run changed the broker. A step that may have been done counts as done, so that "nothing was
    /// changed" is always true. An interrupted migration of an earlier run counts, too.
    pub fn has_changed(&self) -> bool {
        self.reports.iter().any(|report| {
            !report.done.is_empty()
                || report.failed.iter().any(|failed| failed.error.may_have_been_processed())
                || report.migrated.iter().any(|migrated| migrated.is_interrupted)
        })
    }

    /// Returns the policy that dropped held messages, if any.
    pub fn conflicting_policy(&self) -> Option<&str> {
        self.reports
            .iter()
            .flat_map(|report| &report.migrated)
            .find_map(|migrated| migrated.conflicting_policy.as_deref())
    }

    /// Returns the number of messages that did not return.
    pub fn missing_messages(&self) -> u64 {
        let migrated = self.reports.iter().flat_map(|report| &report.migrated);
        migrated.filter_map(|migrated| migrated.missing).map(|missing| missing.messages).sum()
    }
}

/// Returns the objects that still differ after a complete run, except those that are left for the next run. Reads the
/// broker again, because a response of 204 does not prove that the broker executed a request.
pub(super) async fn remaining_differences(
    request: &RunRequest<'_>,
    reports: &[Report],
) -> Result<Vec<Address>, BrokerError> {
    let reviewed = &request.reviewed.options;
    // A migration that was rolled back must not be rolled back again.
    let options = Options { abort: BTreeSet::new(), ..reviewed.clone() };
    let after = plan(request.access, request.desired, &options).await?;
    let waiting: Vec<(&VhostName, &Address)> = reports
        .iter()
        .flat_map(|report| report.waiting.iter().map(|waiting| (&report.vhost, &waiting.step.address)))
        .collect();
    let is_left = |vhost: &VhostName, change: &PlannedChange| {
        let mut in_vhost = waiting.iter().filter(|(of, _)| *of == vhost);
        // Retired objects are deleted together with their tiers.
        !in_vhost.any(|(_, address)| change.retires.is_some() || **address == change.address)
    };
    let changes = after.vhosts.iter().flat_map(|part| part.changes.iter().map(move |change| (&part.vhost, change)));
    let mut left: Vec<Address> =
        changes.filter(|(vhost, change)| is_left(vhost, change)).map(|(_, change)| change.address.clone()).collect();
    // The executed plan had no blockers, so these blockers are new.
    for block in after.blocks() {
        if !left.contains(&block.address) {
            left.push(block.address.clone());
        }
    }
    let interrupted = after.vhosts.iter().flat_map(|part| &part.interrupted).map(|note| &note.address);
    left.extend(interrupted.filter(|address| reviewed.abort.contains(address)).cloned());
    Ok(left)
}
