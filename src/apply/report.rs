//! The report of an apply on one vhost.

use super::Migrated;
use crate::broker::{BrokerError, Performed};
use crate::model::VhostName;
use crate::plan::Step;

/// The report of one vhost. Every step of its plan is in one of the lists, in the order in which the steps ended.
#[derive(Debug)]
pub struct Report {
    /// The vhost.
    pub vhost: VhostName,
    /// Steps that the broker executed.
    pub done: Vec<StepDone>,
    /// Steps that were executed and then reverted, such as the preparation of a recreate that did not happen.
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
