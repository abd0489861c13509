//! Lints the loaded specs. `topo validate` shows all findings. `topo plan` omits infos, and omits errors that the plan
//! already shows as blockers.

use super::arguments::{Global, LintArguments, PlanFormat};
use super::connection::environment;
use super::failure::Failure;
use super::input::Loaded;
use super::output;
use super::value_parsers::ALL_RULES;
use crate::broker::Snapshot;
use crate::diff::merge;
use crate::lint::{Finding, Levels, RULES, Subject, lint};
use crate::model::count::count;
use crate::model::{Address, BrokerVersion, ObjectKind, Topology};
use crate::plan::{Plan, VhostPlan};
use crate::rabbitmq::BrokerProfile;
use crate::render::style::{Painted, YELLOW};
use crate::render::{findings, plan_markdown};
use crate::spec::{Diagnostic, Diagnostics, Level, Severity};
use std::collections::BTreeSet;

/// The maximum number of findings that are shown with a plan. `topo validate` shows all findings.
const MAX_WITH_A_PLAN: usize = 20;

/// Lints the specs for a RabbitMQ version.
pub(super) fn for_version(loaded: &Loaded, version: BrokerVersion, arguments: &LintArguments) -> Diagnostics {
    let levels = levels(arguments);
    let profile = BrokerProfile::of(version);
    let mut diagnostics = Diagnostics::new();
    for (spec, expansion) in loaded.cluster.iter().chain(&loaded.expanded) {
        let found = lint(&Subject::new(spec, expansion, &profile), &levels);
        found.iter().for_each(|finding| diagnostics.push(finding.into()));
    }
    diagnostics
}

/// Returns the levels that `--lint` sets. If `--lint` sets a rule's level several times, the last one applies.
pub(super) fn levels(arguments: &LintArguments) -> Levels {
    let levels_of = |(rule, level): &(String, Level)| match rule.as_str() {
        ALL_RULES => RULES.iter().map(|rule| (rule.name.to_owned(), *level)).collect(),
        _ => vec![(rule.clone(), *level)],
    };
    arguments.levels.iter().flat_map(levels_of).collect()
}

/// Returns the lint flags for a suggested command, without values that the environment already sets.
pub(super) fn flags(arguments: &LintArguments) -> String {
    let levels: Vec<String> =
        arguments.levels.iter().map(|(rule, level)| format!("{rule}={}", level.as_str())).collect();
    let fail_on = arguments.fail_on.map_or("", Severity::as_str);
    let mut line = String::new();
    for (name, variable, value) in [("lint", "TOPO_LINT", &*levels.join(",")), ("fail-on", "TOPO_FAIL_ON", fail_on)] {
        if !value.is_empty() && environment(variable).as_deref() != Some(value) {
            line.push_str(&format!(" --{name} {value}"));
        }
    }
    line
}

/// Returns the failure for findings at or above `limit`, which is the value of `--fail-on`. Returns `None` if there are
/// no such findings.
pub(super) fn lint_failure(severities: impl Iterator<Item = Severity>, limit: Severity) -> Option<Failure> {
    let failing = severities.filter(|severity| *severity <= limit).count() as u64;
    let word = limit.as_str();
    (failing > 0).then(|| Failure::failed(format!("{} at or above --fail-on {word}", count(failing, "finding"))))
}

/// The findings that are shown with a plan, and the number of omitted findings.
#[derive(Debug, Default)]
pub(super) struct PlanFindings {
    diagnostics: Diagnostics,
    /// The number of findings beyond the maximum, which are not shown.
    left_out: usize,
    /// The RabbitMQ version for which the specs were linted; `None` without specs.
    version: Option<BrokerVersion>,
    /// The severities of all relevant findings, including findings that are not shown.
    severities: Vec<Severity>,
    fail_on: Option<Severity>,
    /// The lint flags for the suggested command that shows all findings.
    flags: String,
}

/// The lint findings for the broker's version.
#[derive(Debug, Default)]
pub(super) struct SpecFindings {
    /// The findings for each vhost.
    findings: Vec<Vec<Finding>>,
    /// The findings for the cluster spec.
    cluster: Vec<Finding>,
    version: Option<BrokerVersion>,
}

/// Lints each vhost spec for the profile with the same index, and the cluster spec for the version of the first
/// profile.
pub(super) fn for_profiles<'a>(
    loaded: &Loaded,
    profiles: impl Iterator<Item = &'a BrokerProfile>,
    levels: &Levels,
) -> SpecFindings {
    let mut found = SpecFindings::default();
    for ((spec, expansion), profile) in loaded.expanded.iter().zip(profiles) {
        found.version.get_or_insert(profile.version);
        found.findings.push(lint(&Subject::new(spec, expansion, profile), levels));
    }
    if let Some((spec, expansion)) = &loaded.cluster {
        let profile = BrokerProfile::of(found.version.unwrap_or(BrokerVersion::NEWEST_KNOWN));
        found.cluster = lint(&Subject::new(spec, expansion, &profile), levels);
    }
    found
}

impl SpecFindings {
    /// Lints each spec together with the current objects of its vhost, and replaces the findings. Keeps the findings
    /// for a vhost that contains no more objects than its spec.
    pub(super) fn with_live_objects(
        mut self,
        loaded: &Loaded,
        snapshots: &[Snapshot],
        (levels, prune): (&Levels, &BTreeSet<ObjectKind>),
    ) -> Self {
        let vhosts = loaded.expanded.iter().zip(snapshots);
        for (findings, ((spec, expansion), snapshot)) in self.findings.iter_mut().zip(vhosts) {
            let live = merge(&snapshot.topology, &expansion.topology, &expansion.scope, prune);
            if contains_more(&live, &expansion.topology) {
                let subject = Subject::new(spec, expansion, &snapshot.profile);
                *findings = lint(&subject.with_live_topology(&live, snapshot.includes_transient_queues), levels);
            }
        }
        self
    }
}

/// Returns true if `all` contains more objects than `part`, which is a subset of `all`.
fn contains_more(all: &Topology, part: &Topology) -> bool {
    all.exchanges.len() > part.exchanges.len()
        || all.queues.len() > part.queues.len()
        || all.bindings.len() > part.bindings.len()
        || all.policies.len() > part.policies.len()
}

/// Selects the findings that are shown with a plan, up to a maximum. Omits errors that the plan already shows as
/// blockers, and shows other errors as warnings. Selects infos only with `--fail-on info`.
pub(super) fn for_plan(found: SpecFindings, plan: &Plan, arguments: &LintArguments) -> PlanFindings {
    let fail_on = arguments.fail_on;
    let mut shown =
        PlanFindings { version: found.version, fail_on, flags: flags(arguments), ..PlanFindings::default() };
    let of_cluster = plan.cluster.iter().map(|cluster| (found.cluster.clone(), cluster.part()));
    let of_vhosts = found.findings.into_iter().zip(&plan.vhosts);
    for (findings, part) in of_cluster.chain(of_vhosts) {
        for finding in findings {
            if !is_relevant(&finding, part, plan, fail_on) {
                continue;
            }
            shown.severities.push(finding.severity);
            if is_redundant(&finding, part, fail_on) {
                continue;
            }
            if shown.diagnostics.iter().count() == MAX_WITH_A_PLAN {
                shown.left_out += 1;
                continue;
            }
            let diagnostic = Diagnostic::from(&finding);
            let severity = finding.severity.max(Severity::Warning);
            shown.diagnostics.push(Diagnostic { severity, ..diagnostic });
        }
    }
    shown
}

fn addresses(finding: &Finding, part: &VhostPlan) -> impl Iterator<Item = Address> {
    finding.objects.iter().map(|id| Address::of(&part.vhost, id))
}

/// Returns true if a finding concerns an object. If the run has `--target`, the object must be a target. A finding
/// about the whole spec is relevant only if `--fail-on` makes the run fail because of the finding, and the run has no
/// `--target`.
fn is_relevant(finding: &Finding, part: &VhostPlan, plan: &Plan, fail_on: Option<Severity>) -> bool {
    let targets = &plan.options.targets;
    if finding.objects.is_empty() {
        return targets.is_empty() && fail_on.is_some_and(|limit| finding.severity <= limit);
    }
    let is_target = |address: Address| targets.iter().any(|target| target.matches(address.as_str()));
    targets.is_empty() || addresses(finding, part).any(is_target)
}

/// Returns true for an error that the plan already shows as a blocker, and for an info unless `--fail-on info` is set.
fn is_redundant(finding: &Finding, part: &VhostPlan, fail_on: Option<Severity>) -> bool {
    match finding.severity {
        Severity::Error => {
            let is_blocked = |address: Address| part.blocks.iter().any(|block| block.address == address);
            !finding.objects.is_empty() && addresses(finding, part).all(is_blocked)
        }
        Severity::Warning => false,
        // Infos require no immediate action.
        Severity::Info => fail_on != Some(Severity::Info),
    }
}

impl PlanFindings {
    /// Returns the failure for findings at or above `--fail-on`, if any.
    pub(super) fn lint_failure(&self) -> Option<Failure> {
        lint_failure(self.severities.iter().copied(), self.fail_on?)
    }

    /// Inserts the findings into the text of the plan if the format allows it. Otherwise, prints the findings to
    /// standard error.
    pub(super) fn insert_or_print(&self, plan: String, format: PlanFormat, loaded: &Loaded, global: &Global) -> String {
        match format {
            PlanFormat::Text | PlanFormat::Json => self.eprint(loaded, global),
            PlanFormat::Markdown | PlanFormat::Github => {}
        }
        self.insert_into(plan, format, loaded)
    }

    /// Inserts the findings into the text of the plan if the format allows it. Otherwise, returns only the plan.
    pub(super) fn insert_into(&self, plan: String, format: PlanFormat, loaded: &Loaded) -> String {
        match format {
            PlanFormat::Text | PlanFormat::Json => plan,
            PlanFormat::Markdown if self.diagnostics.is_empty() => plan,
            PlanFormat::Markdown => {
                let mut lines = findings::markdown(&self.diagnostics, &loaded.files);
                lines.extend(self.more(loaded).map(|more| format!("- {more}")));
                plan_markdown::with_warnings(plan, &lines)
            }
            PlanFormat::Github => format!("{}{plan}", findings::github(&self.diagnostics, &loaded.files)),
        }
    }

    /// Prints the findings to standard error.
    pub(super) fn eprint(&self, loaded: &Loaded, global: &Global) {
        if global.quiet {
            return;
        }
        if let Some(note) = self.version.and_then(newer_version_note) {
            output::eprint(&note);
        }
        output::eprint(&findings::lines(&self.diagnostics, &loaded.files, output::width()));
        if let Some(more) = self.more(loaded) {
            output::eprint(&format!("{more}\n"));
        }
        if !self.diagnostics.is_empty() {
            output::eprint("\n");
        }
    }

    fn more(&self, loaded: &Loaded) -> Option<String> {
        let version = self.version.filter(|_| self.left_out > 0)?;
        let left_out = count(self.left_out as u64, "more warning");
        Some(format!("{left_out}: topo validate --broker-version {version}{} {}", self.flags, loaded.specs))
    }
}

/// Returns a note if the version is newer than all supported versions.
pub(super) fn newer_version_note(version: BrokerVersion) -> Option<String> {
    let newest = BrokerVersion::NEWEST_KNOWN.series();
    version.is_newer_than_known().then(|| {
        let note = Painted(YELLOW, "info:");
        format!(
            "{note} RabbitMQ {version} is newer than the newest supported version; topo assumes the behavior of \
             {newest}\n"
        )
    })
}
