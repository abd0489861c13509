//! The report of an apply on one vhost.

use super::Migrated;
use crate::broker::{BrokerError, Performed};
use crate::model::VhostName;
use crate::plan::Step;

/// Every step of a plan is in one of the lists, in the order in which it ended, or stands in the plan.
#[derive(Debug)]
pub struct Report {
    /// The vhost.
    pub vhost: VhostName,
    /// Done, and answered by the broker.
    pub done: Vec<StepDone>,
    /// Done, and taken back: what a recreate prepares before it deletes anything. Nothing of it is left.
    pub rolled_back: Vec<StepDone>,
    /// Failed: refused, or without a response.
    pub failed: Vec<FailedStep>,
    /// Not tried, because something before failed, or the run was interrupted.
    pub not_attempted: Vec<Step>,
    /// Left for the next run, and no failure: tiers that are retired and not empty yet, and what must stay as long.
    pub waiting: Vec<WaitingStep>,
    /// The migrations that were begun, done or undone.
    pub migrated: Vec<Migrated>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
}

/// A step that was done.
#[derive(Debug)]
pub struct StepDone {
    /// The step.
    pub step: Step,
    /// How the broker answered.
    pub performed: Performed,
}

/// A step that failed.
#[derive(Debug)]
pub struct FailedStep {
    /// The step.
    pub step: Step,
    /// Why.
    pub error: BrokerError,
}

/// A step that is left for the next run.
#[derive(Debug)]
pub struct WaitingStep {
    /// The step.
    pub step: Step,
    /// What keeps it in use; `None` if it waits for another step.
    pub why: Option<BrokerError>,
}

impl Report {
    /// Nothing done yet.
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

    /// Whether every step was done, except those left for the next run.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.not_attempted.is_empty()
    }
}
