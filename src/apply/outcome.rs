//! Defines the outcome of a run: the report for each vhost with its steps and migrations, the objects that still
//! differ, and the status.

use crate::broker::{BrokerError, Performed};
use crate::model::{Address, QueueName, VhostName};
use crate::plan::{ApprovedPlan, Step};
use std::time::Duration;

/// The report for one vhost, or for the cluster. Every step of the plan is in one of the lists, except migration steps
/// that were not necessary. Each list is in the order in which the steps ended.
#[derive(Debug)]
pub struct Report {
    /// The vhost; [`VhostName::cluster`] for the cluster.
    pub vhost: VhostName,
    /// The steps that the broker executed.
    pub done: Vec<StepDone>,
    /// The steps that were executed and then reverted, such as the preparation of a recreation that did not happen.
    pub rolled_back: Vec<StepDone>,
    /// The steps that failed, for example because the broker refused a request, or because a guard was not satisfied.
    pub failed: Vec<FailedStep>,
    /// The steps that did not start, because another step failed or the run was interrupted.
    pub not_attempted: Vec<Step>,
    /// The steps that are left for the next run: deletions of retired tiers that are not empty yet, and steps that
    /// depend on these deletions. These steps are not failures.
    pub waiting: Vec<WaitingStep>,
    /// The migrations that were started, completed or rolled back.
    pub migrated: Vec<Migrated>,
    /// The consumer counts of the recreated queues that had consumers. Includes queues that topo deleted before it
    /// rolled back the migration.
    pub consumers: Vec<Consumers>,
    /// True if the run was interrupted.
    pub is_interrupted: bool,
}

/// A completed step.
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
    /// The reason why the object to delete is still in use; `None` if the step waits for another step.
    pub why: Option<BrokerError>,
}

impl Report {
    /// Adds the results of later steps for the same vhost or for the cluster.
    pub(super) fn merge(&mut self, later: Self) {
        self.done.extend(later.done);
        self.rolled_back.extend(later.rolled_back);
        self.failed.extend(later.failed);
        self.not_attempted.extend(later.not_attempted);
        self.waiting.extend(later.waiting);
        self.migrated.extend(later.migrated);
        self.consumers.extend(later.consumers);
        self.is_interrupted |= later.is_interrupted;
    }

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
            consumers: Vec::new(),
            is_interrupted: false,
        }
    }

    /// Returns true if every step was completed, apart from steps that are left for the next run.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.not_attempted.is_empty()
    }
}

/// The summary of a migration that was started, completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The queue.
    pub queue: QueueName,
    /// True if the migration was rolled back.
    pub is_rolled_back: bool,
    /// True if the migration is incomplete, and the next run resumes it.
    pub is_interrupted: bool,
    /// The reason why the rollback failed; `None` if no rollback failed.
    pub rollback_error: Option<String>,
    /// The number of messages that a transport returned from the holding queues. `None` if the number is unknown, for
    /// example for shovels on RabbitMQ 4.0 and earlier, or for a shovel whose messages were rejected.
    pub returned: Option<u64>,
    /// The maximum length of the queue, if the queue drops its oldest messages beyond this length; `None` otherwise.
    pub keeps: Option<u64>,
    /// The number of messages that may have been duplicated because a connection was lost.
    pub possible_duplicates: u64,
    /// The number of messages in the holding queue that newer messages overtook, because messages arrived as fast as
    /// topo could move them. `None` if unknown or zero.
    pub reordered: Option<u64>,
    /// The number of messages that are behind newer messages, for example because the rollback began before the old
    /// queue was empty. `None` if there are none, or if the number is unknown.
    pub behind: Option<u64>,
    /// The messages that were moved out of the queue and did not return, for example because they expired or because a
    /// policy removed them. `None` if all messages returned, if the number is unknown, or if a shovel moved
    /// the messages, because its counts are not exact.
    pub missing: Option<Missing>,
    /// The reason why a shovel took over from AMQP; `None` if no shovel took over.
    pub fallback: Option<String>,
    /// The description of a policy that removes messages from the holding queues and that was created or changed after
    /// the plan was made; `None` if there is no such policy.
    pub conflicting_policy: Option<String>,
    /// An upper bound on the total time during which the queue did not exist; `None` if the queue always existed.
    pub gap: Option<Duration>,
    /// The number of times that a client declared the old queue again after topo deleted it.
    pub redeclared: usize,
    /// The clients that may have declared the old queue again, such as `Celery (py-amqp 5.4.2) at 10.0.0.4`. Empty if
    /// no client did, or if topo cannot identify them.
    pub redeclared_by: Vec<String>,
}

/// The messages that did not return after a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The number of messages that did not return.
    pub messages: u64,
    /// The total number of messages that were moved out of the queue.
    pub total: u64,
}

/// The number of consumers of a queue before and after its recreation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// The queue.
    pub queue: QueueName,
    /// The number of consumers before the recreation, which canceled them.
    pub before: usize,
    /// The number of consumers after the recreation or its rollback; `None` if unknown.
    pub after: Option<usize>,
    /// The clients that have not returned, such as `2 consumers using Celery (py-amqp 5.4.2) at 10.0.0.4`. Empty if all
    /// have returned, or if topo cannot identify them.
    pub missing: Vec<String>,
}

impl Consumers {
    /// Returns the number of consumers that have not returned. If the number after the recreation is unknown, counts
    /// all consumers.
    pub fn missing_count(&self) -> usize {
        self.before.saturating_sub(self.after.unwrap_or(0))
    }
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
            redeclared: 0,
            redeclared_by: Vec::new(),
        }
    }

    /// Returns true if topo deleted the old queue, which canceled its consumers. After a rollback, the queue exists
    /// again.
    pub fn has_deleted_queue(&self) -> bool {
        self.gap.is_some() || self.redeclared > 0
    }

    /// Names the application that declared the old queue again: `an application (possibly Celery at 10.0.0.4)`.
    pub fn redeclaring_application(&self) -> String {
        match self.redeclared_by.is_empty() {
            true => "an application".to_owned(),
            false => format!("an application (possibly {})", self.redeclared_by.join(" or ")),
        }
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The plan that was executed.
    pub plan: ApprovedPlan,
    /// A report for the cluster, and a report for each vhost. Includes only parts of the plan that contain steps.
    pub reports: Vec<Report>,
    /// The objects that still differ after every step was done, or the reason why the result could not be verified.
    /// Always empty after an incomplete run, which is not verified.
    pub left: Result<Vec<Address>, BrokerError>,
    /// The shovels that the run created or changed and that are not running, although the broker accepted them.
    pub stopped_shovels: Vec<StoppedShovel>,
    /// True if the run is complete only after all consumers of recreated queues have returned.
    pub requires_consumers: bool,
}

/// A shovel that the run created or changed and that is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedShovel {
    /// The address.
    pub address: Address,
    /// The shovel and its state, in one sentence.
    pub text: String,
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every step was done or is left for the next run, and the broker matches the spec except for the steps that are
    /// left. No messages are missing after the migrations, and no policy removed messages from holding queues. If the
    /// run requires the consumers, all of them have returned.
    Applied,
    /// The run changed the broker but is incomplete, or the run is complete but does not meet the other conditions of
    /// [`Status::Applied`].
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
        let is_complete = self.reports.iter().all(Report::is_complete);
        let is_verified = self.left.as_ref().is_ok_and(Vec::is_empty);
        let is_interrupted = self.reports.iter().any(|report| report.is_interrupted);
        match (is_complete, self.has_changed()) {
            (true, _)
                if is_verified
                    && self.conflicting_policy().is_none()
                    && self.missing_messages() == 0
                    && !(self.requires_consumers && self.missing_consumers() > 0) =>
            {
                Status::Applied
            }
            (true, _) | (false, true) => Status::Partial,
            (false, false) if is_interrupted => Status::Interrupted,
            (false, false) => {
                let is_race =
                    |error: &BrokerError| error.is_guard_failure() || matches!(error, BrokerError::Inequivalent { .. });
                let is_blocked =
                    self.reports.iter().flat_map(|report| &report.failed).any(|failed| is_race(&failed.error));
                if is_blocked { Status::Blocked } else { Status::Failed }
            }
        }
    }

    /// Returns true if the run changed the broker. Also returns true if a failed step may have taken effect, or if a
    /// migration is incomplete, so that topo reports "nothing was changed" only if this is certain.
    pub fn has_changed(&self) -> bool {
        self.reports.iter().any(|report| {
            !report.done.is_empty()
                || report.failed.iter().any(|failed| failed.error.may_have_been_processed())
                || report.migrated.iter().any(|migrated| migrated.is_interrupted)
        })
    }

    /// Returns the description of a policy that removes messages from holding queues, if any.
    pub fn conflicting_policy(&self) -> Option<&str> {
        self.reports
            .iter()
            .flat_map(|report| &report.migrated)
            .find_map(|migrated| migrated.conflicting_policy.as_deref())
    }

    /// Returns the total number of consumers of recreated queues that have not returned.
    pub fn missing_consumers(&self) -> usize {
        self.reports.iter().flat_map(|report| &report.consumers).map(Consumers::missing_count).sum()
    }

    /// Returns the total number of messages that did not return after the migrations. Omits migrations for which this
    /// number is unknown.
    pub fn missing_messages(&self) -> u64 {
        let migrated = self.reports.iter().flat_map(|report| &report.migrated);
        migrated.filter_map(|migrated| migrated.missing).map(|missing| missing.messages).sum()
    }
}
