//! Computes how much of the routing the test cases cover. Removes each part in turn, and reruns the cases whose
//! messages use the part. A part is covered if a case fails without it.

use super::case::{Case, TestFile};
use super::compare::compare;
use super::parts::{Scenario, changes_without, is_unknown, object_of, parts, unreachable};
use super::subject::Subject;
use crate::model::{BrokerVersion, VhostName};
use crate::simulation::{Outcome, RoutingPart, Simulation};
use crate::spec::Location;
use std::collections::{BTreeMap, BTreeSet};

/// The routing coverage that the cases achieve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// All parts.
    pub parts: Vec<PartCoverage>,
    /// The number of failed cases, which cover nothing.
    pub ignored: usize,
}

/// The coverage of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct PartCoverage {
    /// The part.
    pub part: RoutingPart,
    /// The position of the part's origin in the spec; `None` if unknown.
    pub at: Option<Location>,
    /// The state.
    pub state: PartState,
    /// The names of the cases that fail without the part. If no case fails, the names of the cases whose messages use
    /// the part.
    pub cases: BTreeSet<String>,
}

/// The coverage state of a part. A better state is less than a worse state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartState {
    /// A case fails without the part.
    Covered,
    /// Messages in a case use the part, but no case fails without it.
    Exercised,
    /// No message in any case uses the part.
    NotExercised,
    /// No message is routed differently without the part, so no case can cover it.
    Redundant,
    /// topo generated the part, and no message can use it with the current settings.
    Unreachable,
    /// topo cannot simulate the part, because its exchange is external or has a type from a plugin.
    Unknown,
}

impl PartState {
    /// Returns true if cases can cover the part, so that it counts toward the coverage.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Covered | Self::Exercised | Self::NotExercised)
    }

    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Covered => "covered",
            Self::Exercised => "exercised",
            Self::NotExercised => "notExercised",
            Self::Redundant => "redundant",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
        }
    }
}

impl Coverage {
    /// Adds other test files' coverage of the same spec. These files may have different stand-ins. For each part, the
    /// better state counts.
    pub fn merge(&mut self, other: Self) {
        self.ignored += other.ignored;
        for part in other.parts {
            match self.parts.iter_mut().find(|known| known.part == part.part) {
                None => self.parts.push(part),
                Some(known) if known.state == part.state => known.cases.extend(part.cases),
                Some(known) if known.state > part.state => *known = part,
                Some(_) => {}
            }
        }
    }

    /// Returns the number of covered parts, and the number of parts that cases can cover.
    pub fn counts(&self) -> (usize, usize) {
        let of = |state| self.parts.iter().filter(|part| part.state == state).count();
        (of(PartState::Covered), self.parts.iter().filter(|part| part.state.is_counted()).count())
    }

    /// Returns the percentage of covered parts; 100 if there are no parts.
    pub fn percent(&self) -> f64 {
        let (covered, all) = self.counts();
        if all == 0 { 100.0 } else { 100.0 * covered as f64 / all as f64 }
    }
}

/// The coverage of a vhost's specs, for one RabbitMQ version.
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageReport {
    /// The specs, as messages show them.
    pub specs: String,
    /// The files of the spec, to which the positions refer.
    pub spec_files: Vec<String>,
    /// The vhost.
    pub vhost: VhostName,
    /// The RabbitMQ version.
    pub version: BrokerVersion,
    /// The coverage.
    pub coverage: Coverage,
}

/// A case that passes, with its result.
struct Passed<'c> {
    case: &'c Case,
    outcome: Outcome,
}

/// Returns how much of a topology the cases in test files cover. Cases that fail cover nothing. Parts whose positions
/// refer to `stand_ins_file` belong to stand-ins, not to the spec, and do not count.
pub fn coverage<'c>(
    files: impl IntoIterator<Item = &'c TestFile>,
    subject: &Subject<'_>,
    stand_ins_file: Option<&str>,
) -> Coverage {
    let simulation = subject.simulation().recording();
    let version = subject.profile.version;
    let applies = |case: &&Case| case.only.is_none_or(|only| only.is_met_by(version));
    let cases = files.into_iter().flat_map(|file| &file.cases).filter(applies);
    let results = cases.map(|case| Passed { case, outcome: simulation.run(&case.publication.value, &case.workers()) });
    let (passed, failed): (Vec<_>, Vec<_>) = results.partition(|it| compare(it.case, &it.outcome, subject).is_empty());
    let mut taken: BTreeMap<&RoutingPart, Vec<&Case>> = BTreeMap::new();
    for it in &passed {
        it.outcome.taken.iter().for_each(|part| taken.entry(part).or_default().push(it.case));
    }
    let is_of_spec =
        |part: &RoutingPart| stand_ins_file.is_none_or(|file| subject.file_of(&object_of(part)) != Some(file));
    let all: Vec<RoutingPart> = parts(subject).into_iter().filter(is_of_spec).collect();
    let unreachable = unreachable(subject, &simulation, &all);
    let parts = all.into_iter().map(|part| {
        let cases = taken.get(&part).map_or(&[][..], Vec::as_slice);
        let uncounted = match (is_unknown(subject, &part), cases.is_empty() && unreachable.contains(&part)) {
            (true, _) => Some(PartState::Unknown),
            (false, true) => Some(PartState::Unreachable),
            (false, false) => None,
        };
        if let Some(state) = uncounted {
            let at = subject.location(&object_of(&part));
            return PartCoverage { part, at, state, cases: BTreeSet::new() };
        }
        part_coverage(part, cases, &simulation, subject)
    });
    Coverage { parts: parts.collect(), ignored: failed.len() }
}

/// Returns the coverage of a part. `using_cases` are the cases whose messages use the part.
fn part_coverage(
    part: RoutingPart,
    using_cases: &[&Case],
    simulation: &Simulation<'_, '_>,
    subject: &Subject<'_>,
) -> PartCoverage {
    let fails = |without: &Simulation<'_, '_>, case: &Case| {
        !compare(case, &without.run(&case.publication.value, &case.workers()), subject).is_empty()
    };
    let failing = |without: &Simulation<'_, '_>| -> BTreeSet<String> {
        using_cases.iter().filter(|case| fails(without, case)).map(|case| case.name.clone()).collect()
    };
    let (covering, is_redundant) = match &part {
        RoutingPart::DeadLettering(queue, reason) => {
            let without = simulation.without_dead_lettering(queue, *reason);
            let covering = failing(&without);
            // Returns true if the final states are the same without the dead-lettering, for example because no queue is
            // bound.
            let has_same_ends = || {
                let scenario = Scenario::of(subject, queue, *reason)?;
                Some(scenario.run(simulation).ends == scenario.run(&without).ends)
            };
            let is_redundant = covering.is_empty() && has_same_ends() == Some(true);
            (covering, is_redundant)
        }
        RoutingPart::Binding(_) | RoutingPart::Alternate(_) => {
            let mut topology = subject.routing.topology().clone();
            part.remove_from(&mut topology);
            let covering = match using_cases {
                [] => BTreeSet::new(),
                [..] => failing(&simulation.with_routing(&subject.routing_of(&topology))),
            };
            let is_redundant = covering.is_empty() && {
                let entries = topology.exchanges.keys().cloned().collect();
                let changes = changes_without(subject, &part, &entries);
                changes.changes.is_empty() && changes.losses.is_empty() && changes.not_compared.is_empty()
            };
            (covering, is_redundant)
        }
    };
    let state = match (covering.is_empty(), is_redundant, using_cases.is_empty()) {
        (false, _, _) => PartState::Covered,
        (true, true, _) => PartState::Redundant,
        (true, false, true) => PartState::NotExercised,
        (true, false, false) => PartState::Exercised,
    };
    let cases = if covering.is_empty() { using_cases.iter().map(|case| case.name.clone()).collect() } else { covering };
    PartCoverage { at: subject.location(&object_of(&part)), part, state, cases }
}
