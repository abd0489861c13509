//! Runs the cases in a test file against a topology.

use super::case::{Case, TestFile};
use super::compare::{Mismatch, compare, unpublishable};
use super::subject::Subject;
use crate::model::{BrokerVersion, VhostName};
use crate::simulation::Outcome;
use crate::spec::Location;

/// The results of the cases in a file, for one RabbitMQ version.
#[derive(Clone, Debug, PartialEq)]
pub struct FileReport {
    /// The test file, as messages show it.
    pub file: String,
    /// The specs, as messages show them.
    pub specs: String,
    /// The files of the spec, to which the positions of differences refer.
    pub spec_files: Vec<String>,
    /// The vhost.
    pub vhost: VhostName,
    /// The RabbitMQ version.
    pub version: BrokerVersion,
    /// The broker on which the cases also ran; `None` if they ran only offline.
    pub live: Option<LiveTarget>,
    /// The topology in which the cases ran; `None` for the topology of the spec.
    pub against: Option<Against>,
    /// The results.
    pub results: Vec<CaseResult>,
}

/// A topology other than the topology of the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// The topology of the broker at this URL.
    Live(String),
    /// The topology of the broker at this URL after the plan is applied.
    Planned(String),
    /// The topology of this file.
    File(String),
}

/// The broker on which cases ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTarget {
    /// The URL of the management API.
    pub url: String,
    /// The factor by which all times were divided.
    pub time_scale: u64,
}

/// The result of a case on a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveResult {
    /// The broker and the simulation agree, so the offline result is valid for the broker.
    Agrees,
    /// The broker and the simulation differ, because of a bug in topo or because of another client.
    Differs,
    /// The case did not run on the broker, for this reason.
    NotRun(String),
}

impl FileReport {
    /// Returns true if a case failed.
    pub fn has_failures(&self) -> bool {
        self.results.iter().any(|result| matches!(result.outcome, CaseOutcome::Failed { .. }))
    }

    /// Describes the version and the tested topology, such as `RabbitMQ 4.3.6, planned topology of
    /// http://localhost:15672`.
    pub fn target(&self) -> String {
        match &self.against {
            None => format!("RabbitMQ {}", self.version),
            Some(Against::Live(url)) => format!("RabbitMQ {}, live topology of {url}", self.version),
            Some(Against::Planned(url)) => format!("RabbitMQ {}, planned topology of {url}", self.version),
            Some(Against::File(name)) => format!("RabbitMQ {}, topology of {name}", self.version),
        }
    }

    /// Formats a position in the spec, such as `topology.yaml:12`. Returns `None` if the file is unknown.
    pub fn spec_position(&self, at: Location) -> Option<String> {
        Some(format!("{}:{}", self.spec_files.get(at.file)?, at.line))
    }
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The name of the case.
    pub name: String,
    /// The name of the test. A table of routes is one test.
    pub test: String,
    /// The position in the test file.
    pub at: Location,
    /// The outcome.
    pub outcome: CaseOutcome,
    /// The result on a broker; `None` if the case ran only offline.
    pub live: Option<LiveResult>,
}

impl CaseResult {
    /// Records the differences between the broker and the simulation. If there is a difference, the case fails.
    pub fn record_live(&mut self, differences: Vec<String>, simulated: &Outcome) {
        if differences.is_empty() {
            self.live = Some(LiveResult::Agrees);
            return;
        }
        self.live = Some(LiveResult::Differs);
        let mut mismatches = match std::mem::replace(&mut self.outcome, CaseOutcome::Skipped) {
            CaseOutcome::Failed { mismatches, .. } => mismatches,
            CaseOutcome::Passed | CaseOutcome::Skipped => Vec::new(),
        };
        mismatches.extend(differences.into_iter().map(Mismatch::live));
        self.outcome = CaseOutcome::Failed { mismatches, simulated: Box::new(simulated.clone()) };
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseOutcome {
    /// All results are as expected.
    Passed,
    /// Some results differ.
    Failed {
        /// The differences.
        mismatches: Vec<Mismatch>,
        /// The simulated result.
        simulated: Box<Outcome>,
    },
    /// The case does not apply to this version.
    Skipped,
}

/// Runs the cases whose names contain `filter`. Skips the cases that do not apply to the version.
pub fn run(file: &TestFile, subject: &Subject<'_>, filter: &str) -> Vec<CaseResult> {
    let simulation = subject.simulation();
    let run = |case: &Case| {
        let is_skipped = case.only.is_some_and(|only| !only.is_met_by(subject.profile.version));
        let outcome = if is_skipped {
            CaseOutcome::Skipped
        } else if let Some(mismatch) = unpublishable(case, subject) {
            CaseOutcome::Failed { mismatches: vec![mismatch], simulated: Box::default() }
        } else {
            let simulated = simulation.run(&case.publication.value, &case.workers());
            match compare(case, &simulated, subject) {
                mismatches if mismatches.is_empty() => CaseOutcome::Passed,
                mismatches => CaseOutcome::Failed { mismatches, simulated: Box::new(simulated) },
            }
        };
        CaseResult { name: case.name.clone(), test: case.test.clone(), at: case.at, outcome, live: None }
    };
    file.cases.iter().filter(|case| case.name.contains(filter)).map(run).collect()
}
