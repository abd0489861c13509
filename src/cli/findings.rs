//! What the lint rules say of the loaded specs: all of it for `topo validate`, and beside a plan what the plan itself does
//! not say.

use super::arguments::{Global, PlanFormat};
use super::failure::Failure;
use super::input::Loaded;
use super::offline_arguments::LintArguments;
use super::output;
use crate::behaviour::Dialect;
use crate::lint::{Finding, Levels, Subject, lint};
use crate::model::count::count;
use crate::model::{Address, BrokerVersion};
use crate::plan::{Plan, VhostPlan};
use crate::render::style::{Painted, YELLOW};
use crate::render::{findings, plan_markdown};
use crate::spec::{Diagnostic, Diagnostics, Severity};

/// So many are shown beside a plan; `topo validate` shows all.
const MOST_BESIDE_A_PLAN: usize = 20;

/// All that the rules find for a broker of that version.
pub(super) fn for_version(loaded: &Loaded, version: BrokerVersion, arguments: &LintArguments) -> Diagnostics {
    let levels = levels(arguments);
    let dialect = Dialect::of(version);
    let mut diagnostics = Diagnostics::new();
    for (spec, expansion) in &loaded.expanded {
        let found = lint(&Subject::new(spec, expansion, &dialect), &levels);
        found.iter().for_each(|finding| diagnostics.push(finding.into()));
    }
    diagnostics
}

/// The levels that were typed; of two for one rule, the last.
pub(super) fn levels(arguments: &LintArguments) -> Levels {
    arguments.levels.iter().cloned().collect()
}

/// What ends a run whose findings are as bad as `--fail-on` says; errors speak for themselves.
pub(super) fn too_bad(severities: impl Iterator<Item = Severity>, limit: Severity) -> Option<Failure> {
    let bad = severities.filter(|severity| *severity <= limit).count() as u64;
    let word = limit.as_str();
    (bad > 0).then(|| Failure::failed(format!("{}, with --fail-on {word}", count(bad, "finding"))))
}

/// What is worth saying beside a plan, and how many more there are.
#[derive(Debug, Default)]
pub(super) struct BesidePlan {
    diagnostics: Diagnostics,
    left_out: usize,
    version: Option<BrokerVersion>,
    /// How bad each of all findings is, also of those that are not shown.
    severities: Vec<Severity>,
}

/// What the rules find for the brokers that were read, a vhost each. What blocks the plan is left out: the plan says it,
/// with what it is about to do; so what is left is a warning.
///
/// Notes are shown where the run ends because of them.
pub(super) fn beside(
    loaded: &Loaded,
    dialects: &[Dialect],
    plan: &Plan,
    levels: &Levels,
    fail_on: Option<Severity>,
) -> BesidePlan {
    let mut beside = BesidePlan { version: dialects.first().map(|dialect| dialect.version), ..BesidePlan::default() };
    let parts = loaded.expanded.iter().zip(dialects).zip(&plan.vhosts);
    for (((spec, expansion), dialect), part) in parts {
        for finding in lint(&Subject::new(spec, expansion, dialect), levels) {
            beside.severities.push(finding.severity);
            if !is_news(&finding, part, plan, fail_on) {
                continue;
            }
            if beside.diagnostics.iter().count() == MOST_BESIDE_A_PLAN {
                beside.left_out += 1;
                continue;
            }
            let diagnostic = Diagnostic::from(&finding);
            let severity = finding.severity.max(Severity::Warning);
            beside.diagnostics.push(Diagnostic { severity, ..diagnostic });
        }
    }
    beside
}

/// Whether the plan is about it, and does not say it itself.
fn is_news(finding: &Finding, part: &VhostPlan, plan: &Plan, fail_on: Option<Severity>) -> bool {
    let addresses: Vec<Address> = finding.objects.iter().map(|id| Address::of(&part.vhost, id)).collect();
    let targets = &plan.options.targets;
    let is_meant = |address: &Address| targets.is_empty() || targets.iter().any(|it| it.matches(address.as_str()));
    let is_blocked = |address: &Address| part.blocks.iter().any(|block| block.address == *address);
    let is_said = match finding.severity {
        Severity::Error => addresses.iter().all(is_blocked),
        Severity::Warning => false,
        // Nothing to do about it now.
        Severity::Info => fail_on != Some(Severity::Info),
    };
    addresses.iter().any(is_meant) && !is_said
}

impl BesidePlan {
    /// What ends the run, if any finding does.
    pub(super) fn too_bad(&self, limit: Option<Severity>) -> Option<Failure> {
        too_bad(self.severities.iter().copied(), limit?)
    }

    /// With the plan's text in front where the format has a place for both; else on standard error.
    pub(super) fn joined(&self, plan: String, format: PlanFormat, loaded: &Loaded, global: &Global) -> String {
        match format {
            PlanFormat::Text | PlanFormat::Json => {
                self.tell(loaded, global);
                plan
            }
            PlanFormat::Markdown if self.diagnostics.is_empty() => plan,
            PlanFormat::Markdown => {
                let mut lines = findings::markdown(&self.diagnostics, &loaded.files);
                lines.extend(self.more(loaded).map(|more| format!("- {more}")));
                plan_markdown::with_warnings(plan, &lines)
            }
            PlanFormat::Github => format!("{}{plan}", findings::github(&self.diagnostics, &loaded.files)),
        }
    }

    /// On standard error.
    pub(super) fn tell(&self, loaded: &Loaded, global: &Global) {
        if global.quiet {
            return;
        }
        if let Some(note) = self.version.and_then(too_new) {
            output::tell(&note);
        }
        output::tell(&findings::lines(&self.diagnostics, &loaded.files, output::width()));
        if let Some(more) = self.more(loaded) {
            output::tell(&format!("{more}\n"));
        }
        if !self.diagnostics.is_empty() {
            output::tell("\n");
        }
    }

    fn more(&self, loaded: &Loaded) -> Option<String> {
        let version = self.version.filter(|_| self.left_out > 0)?;
        let left_out = count(self.left_out as u64, "more warning");
        Some(format!("{left_out}: topo validate --broker-version {version} {}", loaded.specs))
    }
}

/// A note about a version that nothing is known of.
pub(super) fn too_new(version: BrokerVersion) -> Option<String> {
    let newest = BrokerVersion::NEWEST_KNOWN.series();
    version.is_newer_than_known().then(|| {
        let note = Painted(YELLOW, "note:");
        format!("{note} RabbitMQ {version} is newer than all that this topo knows; it is taken to behave as {newest}\n")
    })
}
