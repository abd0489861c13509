//! Runs the cases of a test file against a topology.

use super::case::{Case, TestFile};
use super::compare::{Mismatch, compare};
use super::subject::Subject;
use crate::model::{BrokerVersion, VhostName};
use crate::simulation::Outcome;
use crate::spec::Location;

/// The results of the cases of a file, for one RabbitMQ version.
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
    /// The results.
    pub results: Vec<CaseResult>,
}

impl FileReport {
    /// Returns true if a case failed.
    pub fn has_failures(&self) -> bool {
        self.results.iter().any(|result| matches!(result.outcome, CaseOutcome::Failed { .. }))
    }

    /// Formats a position in the spec: `topology.yaml:12`.
    pub fn spec_position(&self, at: Location) -> Option<String> {
        Some(format!("{}:{}", self.spec_files.get(at.file)?, at.line))
    }
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseResult {
    /// The name of the case.
    pub name: String,
    /// The name of the test; a table of routes is one test.
    pub test: String,
    /// The position in the test file.
    pub at: Location,
    /// The outcome.
    pub outcome: CaseOutcome,
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

/// Runs the cases whose names contain `filter`.
pub fn run(file: &TestFile, subject: &Subject<'_>, filter: &str) -> Vec<CaseResult> {
    let simulation = subject.simulation();
    let run = |case: &Case| {
        let is_skipped = case.only.is_some_and(|only| !only.is_met_by(subject.profile.version));
        let outcome = if is_skipped {
            CaseOutcome::Skipped
        } else {
            let simulated = simulation.run(&case.publication.value, &case.workers());
            match compare(case, &simulated, subject) {
                mismatches if mismatches.is_empty() => CaseOutcome::Passed,
                mismatches => CaseOutcome::Failed { mismatches, simulated: Box::new(simulated) },
            }
        };
        CaseResult { name: case.name.clone(), test: case.test.clone(), at: case.at, outcome }
    };
    file.cases.iter().filter(|case| case.name.contains(filter)).map(run).collect()
}
