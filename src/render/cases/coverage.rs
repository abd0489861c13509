//! Renders the routing coverage of test cases.

use super::document::{Coverage, Element, ElementKind, Position};
use super::margin::with_position;
use crate::cases::{CoverageReport, PartCoverage, PartState};
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::model::{Places, Source};
use crate::render::change_details::full_binding;
use crate::render::markdown::inline;
use crate::render::plan_github::annotate;
use crate::render::style::{BOLD, DIM, Painted, fold};
use crate::simulation::RoutingPart;
use std::fmt::Write;

/// The maximum number of parts to list.
const MAX_LISTED: usize = 30;

/// Renders the coverage as text: the covered share, and the parts that are uncovered, redundant or unknown.
pub fn coverage(report: &CoverageReport, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", Painted(BOLD, fold(&heading(report), width)));
    for part in uncovered(report).take(MAX_LISTED) {
        let sentence = format!("{}: {}", name(&part.part), state(part));
        let at = position(report, part).map(|at| format!("{}:{}", clean(&at.file), at.line)).unwrap_or_default();
        let _ = writeln!(text, "  {}", with_position(&sentence, &at, 2, width));
    }
    let more = uncovered(report).count().saturating_sub(MAX_LISTED);
    if more > 0 {
        let _ = writeln!(text, "  … and {} (--format json lists all)", count(more as u64, "more element"));
    }
    let remarks: Vec<String> = report
        .coverage
        .parts
        .iter()
        .filter_map(|part| match part.state {
            PartState::Redundant => Some(format!("redundant: {} (removing it changes no route)", name(&part.part))),
            PartState::Unknown => Some(format!("unknown: {} (topo cannot simulate its exchange)", name(&part.part))),
            PartState::Covered | PartState::Exercised | PartState::NotExercised | PartState::Unreachable => None,
        })
        .collect();
    for sentence in remarks.iter().take(MAX_LISTED) {
        let folded = fold(sentence, width.saturating_sub(2));
        let _ = writeln!(text, "  {}", Painted(DIM, folded.replace('\n', "\n  ")));
    }
    let more = remarks.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        let _ = writeln!(text, "  … and {} (--format json lists all)", count(more as u64, "more element"));
    }
    text
}

/// Renders the covered share, such as `Coverage of topology.yaml · vhost shop: 7 of 10 routing elements (70%)`.
pub(super) fn heading(report: &CoverageReport) -> String {
    let (covered, all) = report.coverage.counts();
    let ignored = match report.coverage.ignored {
        0 => String::new(),
        number => format!(" · {} ignored", count(number as u64, "failed case")),
    };
    format!(
        "Coverage of {} · vhost {}: {} of {} ({:.0}%){ignored}",
        clean(&report.specs),
        clean(report.vhost.as_str()),
        number(covered as u64),
        count(all as u64, "routing element"),
        report.coverage.percent().floor()
    )
}

/// Returns the parts that cases could cover but do not.
pub(super) fn uncovered(report: &CoverageReport) -> impl Iterator<Item = &PartCoverage> {
    report.coverage.parts.iter().filter(|part| matches!(part.state, PartState::Exercised | PartState::NotExercised))
}

/// Names a part of the routing.
pub(super) fn name(part: &RoutingPart) -> String {
    match part {
        RoutingPart::Binding(binding) => format!("binding {}", full_binding(binding)),
        RoutingPart::Alternate(exchange) => format!("alternate exchange of {}", clean(exchange.as_str())),
        RoutingPart::DeadLettering(queue, reason) => {
            format!("dead-lettering from {} ({reason})", clean(queue.as_str()))
        }
    }
}

/// Describes why a part is not covered.
pub(super) fn state(part: &PartCoverage) -> String {
    let first = part.cases.first().map(|name| clean(name)).unwrap_or_default();
    match (part.state, part.cases.len()) {
        (PartState::Exercised, 1) => format!("case `{first}` exercises it, but passes without it"),
        (PartState::Exercised, more) => {
            format!("{}, such as `{first}`, exercise it, but all pass without it", count(more as u64, "case"))
        }
        (
            PartState::Covered
            | PartState::NotExercised
            | PartState::Redundant
            | PartState::Unreachable
            | PartState::Unknown,
            _,
        ) => "no case exercises it".to_owned(),
    }
}

/// Returns the position of a part in the spec.
fn position(report: &CoverageReport, part: &PartCoverage) -> Option<Source> {
    let at = part.at?;
    let file = report.spec_files.get(at.file)?.clone();
    Some(Source { file, line: at.line, column: at.column, part_of: None, places: Places::new() })
}

/// Returns the coverage for the JSON document.
pub(super) fn document(report: &CoverageReport) -> Coverage {
    let (covered, total) = report.coverage.counts();
    let element = |it: &PartCoverage| Element {
        kind: match it.part.clone() {
            RoutingPart::Binding(binding) => ElementKind::Binding { binding },
            RoutingPart::Alternate(exchange) => ElementKind::AlternateExchange { exchange },
            RoutingPart::DeadLettering(queue, reason) => ElementKind::DeadLettering { queue, reason: reason.as_str() },
        },
        state: it.state.as_str(),
        cases: it.cases.iter().cloned().collect(),
        source: position(report, it).map(|at| Position { file: at.file, line: at.line }),
    };
    Coverage {
        spec: report.specs.clone(),
        vhost: report.vhost.clone(),
        broker_version: report.version,
        covered,
        total,
        percent: report.coverage.percent(),
        elements: report.coverage.parts.iter().map(element).collect(),
    }
}

/// Renders a notice for each part that is not covered, at its position in the spec.
pub(super) fn github(text: &mut String, report: &CoverageReport) {
    for part in uncovered(report) {
        let message = format!("{}: {}", name(&part.part), state(part));
        let at = position(report, part);
        annotate(text, "notice", at.as_ref().map(|at| (at, None)), "topo test: not covered", &message);
    }
}

/// Renders the covered share and the parts that are not covered as Markdown.
pub(super) fn markdown(out: &mut String, report: &CoverageReport) {
    let _ = writeln!(out, "\n**{}**\n", inline(&heading(report)));
    for part in uncovered(report) {
        let _ = writeln!(out, "- {}", inline(&format!("{}: {}", name(&part.part), state(part))));
    }
}
