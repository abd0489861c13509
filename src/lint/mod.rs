//! Lints a spec and its expansion: finds settings that a broker version refuses or ignores, and probable mistakes.
//! Rules are pure functions and do not require a broker. `plan` reports the hazards of applying a spec to a broker.
//!
//! Each rule is a file in `rules`, with a documentation page of the same name. The examples on the page are the
//! rule's tests.

mod effective;
mod finding;
mod partial_spec;
mod policy_targets;
mod position;
pub mod reference;
mod rules;
mod subject;
#[cfg(test)]
mod tests;

pub use finding::Finding;
pub use finding::Rule;
pub use partial_spec::PartialSpec;
pub use rules::RULES;
pub use subject::Subject;

use crate::spec::{Allow, Level, Severity};
use std::collections::BTreeMap;

/// The levels that flags set, by rule name.
pub type Levels = BTreeMap<String, Level>;

/// Returns all findings, sorted by file and line. `levels` take precedence over the levels in the spec.
///
/// Findings with the same rule, position and message are merged. If a specific rule explains a refusal, the finding of
/// the generic `refused-by-broker` rule is omitted. Findings that a comment allows are also omitted. A comment that
/// does not match any finding is itself reported as a finding.
pub fn lint(subject: &Subject<'_>, levels: &Levels) -> Vec<Finding> {
    let enabled: Vec<&Rule> = enabled_rules(subject, levels).collect();
    let level = |rule: &Rule| level(rule, subject, levels);
    let (allowed, mut found) = run_rules(&enabled, subject, levels);
    let is_used = |allow: &Allow| allowed.iter().any(|finding| is_allowed_by(finding, allow));
    let is_enabled = |allow: &Allow| enabled.iter().any(|rule| rule.name == allow.rule);
    let unused = subject.spec.allows.iter().filter(|allow| is_enabled(allow) && !is_used(allow));
    let unused = rules::report_unused(subject, unused);
    found.extend(set_level(level(&rules::UNUSED_ALLOW), unused));
    merge_findings(found, &allowed)
}

/// Returns the rules that are not off.
fn enabled_rules(subject: &Subject<'_>, levels: &Levels) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| level(rule, subject, levels) != Some(Level::Off))
}

/// Runs rules and returns two lists: the findings that a comment allows, and all other findings.
fn run_rules(rules: &[&Rule], subject: &Subject<'_>, levels: &Levels) -> (Vec<Finding>, Vec<Finding>) {
    let all = rules.iter().flat_map(|rule| set_level(level(rule, subject, levels), (rule.check)(subject)));
    let all = all.map(|finding| add_caveat(finding, subject));
    let is_allowed = |finding: &Finding| subject.spec.allows.iter().any(|allow| is_allowed_by(finding, allow));
    all.partition(is_allowed)
}

/// Adds a caveat to the message of a finding that may be wrong because the current topology is incomplete.
fn add_caveat(mut finding: Finding, subject: &Subject<'_>) -> Finding {
    if subject.lacks_transient_queues() && rules::NEED_ALL_QUEUES.contains(&finding.rule) {
        finding.text.push_str(" (a definitions file does not contain exclusive or transient queues)");
    }
    finding
}

/// Sorts the findings, removes refusals that a different rule explains, and merges findings with the same rule,
/// position and message. A finding in `allowed` can explain a refusal, but is not returned.
fn merge_findings(mut found: Vec<Finding>, allowed: &[Finding]) -> Vec<Finding> {
    let is_explained = |finding: &Finding| {
        finding.rule == rules::REFUSED_BY_BROKER
            && found.iter().chain(allowed).any(|other| {
                other.rule != finding.rule
                    && other.severity == Severity::Error
                    && other.at == finding.at
                    && other.objects == finding.objects
            })
    };
    let mut explained = found.iter().map(is_explained).collect::<Vec<bool>>().into_iter();
    found.retain(|_| explained.next() != Some(true));
    let order =
        |one: &Finding, other: &Finding| (one.at, one.rule, &one.text).cmp(&(other.at, other.rule, &other.text));
    found.sort_by(order);
    found.dedup_by(|later, first| {
        let is_same = order(later, first).is_eq();
        if is_same {
            first.merge(later);
        }
        is_same
    });
    found
}

/// Returns the level of a rule from the flags or the spec, otherwise `Off` for an optional rule. `None` means that each
/// finding keeps its severity.
fn level(rule: &Rule, subject: &Subject<'_>, levels: &Levels) -> Option<Level> {
    let level = levels.get(rule.name).copied().or_else(|| subject.spec.lint.get(rule.name).map(|it| it.value));
    level.or(rule.is_optional.then_some(Level::Off))
}

/// Returns true if a comment allows a finding.
fn is_allowed_by(finding: &Finding, allow: &Allow) -> bool {
    allow.rule == finding.rule && (allow.at.file, allow.line) == (finding.at.file, finding.at.line)
}

/// Sets the severity of findings according to a level. `Off` removes the findings. `None` keeps their severities.
fn set_level(level: Option<Level>, found: Vec<Finding>) -> Vec<Finding> {
    match level.map(Level::severity) {
        None => found,
        Some(None) => Vec::new(),
        Some(Some(severity)) => found.into_iter().map(|finding| finding.severity(severity)).collect(),
    }
}
