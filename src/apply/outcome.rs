//! The outcome of a run: the report of each vhost with its steps and migrations, the objects that still differ, and the
//! status.

use crate::broker::{BrokerError, Performed};
use crate::model::{Address, QueueName, VhostName};
use crate::plan::{ApprovedPlan, Step};
use std::time::Duration;

/// The report of one vhost, or of the cluster. Every step of its plan is in one of the lists, in the order in which the steps ended.
#[derive(Debug)]
pub struct Report {
    /// The vhost; [`VhostName::cluster`] for the cluster.
    pub vhost: VhostName,
    /// Steps that the broker executed.
    pub done: Vec<StepDone>,
    /// Steps that were executed and then reverted, such as the preparation of a recreation that did not happen.
    pub rolled_back: Vec<StepDone>,
    /// Steps that the broker refused or did not answer.
    pub failed: Vec<FailedStep>,
    /// Steps that did not start, because another step failed or the run was interrupted.
    pub not_attempted: Vec<Step>,
    /// Steps that are left for the next run: retired tiers that are not empty yet, and steps that depend on them. Not
    /// failures.
    pub waiting: Vec<WaitingStep>,
    /// The migrations that were started, completed or rolled back.
    pub migrated: Vec<Migrated>,
    /// True if the run was interrupted.
    pub interrupted: bool,
}

/// A step that was done.
#[derive(Debug)]
pub struct StepDone {
    /// The step.
    pub step: Step,
    /// The result of the request.
    pub performed: Performed,
}

/// A step that failed.
#[derive(Debug)]
pub struct FailedStep {
    /// The step.
    pub step: Step,
    /// The reason.
    pub error: BrokerError,
}

/// A step that is left for the next run.
#[derive(Debug)]
pub struct WaitingStep {
    /// The step.
    pub step: Step,
    /// The reason why its object is still in use; `None` if the step waits for another step.
    pub why: Option<BrokerError>,
}

impl Report {
    /// Creates an empty report.
    pub fn new(vhost: VhostName) -> Self {
        Self {
            vhost,
            done: Vec::new(),
            rolled_back: Vec::new(),
            failed: Vec::new(),
            not_attempted: Vec::new(),
            waiting: Vec::new(),
            migrated: Vec::new(),
            interrupted: false,
        }
    }

    /// Returns true if every step was done, except those left for the next run.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.not_attempted.is_empty()
    }
}

/// The summary of a migration, completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The queue.
    pub queue: QueueName,
    /// True if the migration was rolled back.
    pub is_rolled_back: bool,
    /// True if the migration is interrupted: the next run resumes it.
    pub is_interrupted: bool,
    /// The reason why the rollback failed, if one was tried.
    pub rollback_error: Option<String>,
    /// The number of messages that a transport returned from the holding queues. `None` if the broker does not count
    /// them: for a shovel before 4.2, and for a shovel whose messages were rejected.
    pub returned: Option<u64>,
    /// The maximum number of messages of a queue that drops the oldest ones beyond it (max-length).
    pub keeps: Option<u64>,
    /// The number of messages that may be duplicated, because a connection was lost.
    pub possible_duplicates: u64,
    /// The number of messages that were still held when new messages overtook them, because those arrived as fast as
    /// topo moved messages.
    pub reordered: Option<u64>,
    /// The number of messages behind newer ones, because the rollback began before the old queue was empty.
    pub behind: Option<u64>,
    /// Messages that were moved out of the queue and did not return, because they expired or a policy removed them.
    /// `None` for a shovel, whose counts are not exact.
    pub missing: Option<Missing>,
    /// The reason why a shovel moved messages instead of AMQP, if it took over.
    pub fallback: Option<String>,
    /// The description of a policy that was created after the plan and removes messages from the holding queues.
    pub conflicting_policy: Option<String>,
    /// The time for which the queue did not exist; `None` if it always existed.
    pub gap: Option<Duration>,
    /// The consumers of the queue.
    pub consumers: Option<Consumers>,
}

/// Messages that did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The number of messages.
    pub messages: u64,
    /// The total number that was moved out of the queue.
    pub of: u64,
}

/// The consumers of a queue, if the broker lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// The number before the migration. The migration canceled them.
    pub before: usize,
    /// The number after the migration.
    pub after: usize,
}

impl Migrated {
    pub(super) fn new(queue: QueueName) -> Self {
        Self {
            queue,
            is_rolled_back: false,
            is_interrupted: false,
            rollback_error: None,
            returned: Some(0),
            keeps: None,
            possible_duplicates: 0,
            reordered: None,
            behind: None,
            missing: None,
            fallback: None,
            conflicting_policy: None,
            gap: None,
            consumers: None,
        }
    }
}

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
