//! Runs the cases of a test file against a topology.

use super::case::{Case, TestFile};
use super::compare::{Mismatch, compare};
use crate::contract::{Contract, contracts};
use crate::expand::Expansion;
use crate::model::{BrokerVersion, ObjectId, QueueName, VhostName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use crate::simulation::{Outcome, Simulation};
use crate::spec::{Location, Spec};
use std::collections::BTreeMap;

/// The topology that is tested.
pub struct Subject<'a> {
    /// The spec.
    pub spec: &'a Spec,
    pub(super) expansion: &'a Expansion,
    pub(super) profile: &'a BrokerProfile,
    pub(super) routing: Routing<'a>,
    pub(super) contracts: BTreeMap<QueueName, Contract>,
}

impl<'a> Subject<'a> {
    /// Creates the subject from a spec and its expansion.
    pub fn new(spec: &'a Spec, expansion: &'a Expansion, profile: &'a BrokerProfile) -> Self {
        let scope = &expansion.scope;
        let routing = Routing::new(&expansion.topology, [], &scope.external, profile)
            .with_external_bindings(&scope.external_dead_letter_queues);
        let contracts = contracts(spec, expansion, profile).queues;
        Self { spec, expansion, profile, routing, contracts }
    }

    pub(super) fn is_external_queue(&self, queue: &QueueName) -> bool {
        self.expansion.scope.external.contains(&ObjectId::Queue(queue.clone()))
    }

    /// Returns the position of the queue, or of its retries.
    pub(super) fn position(&self, queue: &QueueName, of_retries: bool) -> Option<Location> {
        let dead_letter_queue = || self.spec.dead_letter_queues.get(queue).map(|it| &it.queue);
        let declared = self.spec.queues.get(queue).or_else(dead_letter_queue)?;
        let retries = declared.retry.as_ref().filter(|_| of_retries).map(|it| it.max_retries.at);
        Some(retries.unwrap_or(declared.at))
    }
}

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
    /// The case does not hold for this version.
    Skipped,
}

/// Runs the cases whose names contain `filter`.
pub fn run(file: &TestFile, subject: &Subject<'_>, filter: &str) -> Vec<CaseResult> {
    let simulation = Simulation::new(&subject.routing, &subject.contracts, subject.profile);
    let run = |case: &Case| {
        let is_skipped = case.only.is_some_and(|only| !only.holds_for(subject.profile.version));
        let outcome = if is_skipped {
            CaseOutcome::Skipped
        } else {
            let workers = case.workers.iter().map(|(queue, (worker, _))| (queue.clone(), worker.clone())).collect();
            let simulated = simulation.run(&case.publication.value, &workers);
            match compare(case, &simulated, subject) {
                mismatches if mismatches.is_empty() => CaseOutcome::Passed,
                mismatches => CaseOutcome::Failed { mismatches, simulated: Box::new(simulated) },
            }
        };
        CaseResult { name: case.name.clone(), at: case.at, outcome }
    };
    file.cases.iter().filter(|case| case.name.contains(filter)).map(run).collect()
}
