//! Lints a spec and its expansion: settings that a broker of a version refuses or ignores, and probable mistakes. Offline
//! and pure: `plan` reports the hazards of applying the spec now.
//!
//! A rule is a file in `rules` with a page of the same name; the examples on the page are the tests of the rule.

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

/// The levels of rules that flags set, by name.
pub type Levels = BTreeMap<String, Level>;

/// Returns all findings in the order of the files and lines. `levels` take precedence over the levels of the spec.
///
/// Findings of one line about many objects are merged into one. If a specific rule explains a refusal, the generic refusal
/// is left out. Findings that a comment allows are left out too, and a comment that allows nothing is a finding.
pub fn lint(subject: &Subject<'_>, levels: &Levels) -> Vec<Finding> {
    let enabled: Vec<&Rule> = enabled_rules(subject, levels).collect();
    let level = |rule: &Rule| level(rule, subject, levels);
    let (allowed, mut found) = findings_of(&enabled, subject, levels);
    let is_used = |allow: &Allow| allowed.iter().any(|finding| is_allowed_by(finding, allow));
    let is_enabled = |allow: &Allow| enabled.iter().any(|rule| rule.name == allow.rule);
    let unused = subject.spec.allows.iter().filter(|allow| is_enabled(allow) && !is_used(allow));
    let unused = rules::unused(subject, unused);
    found.extend(at_level(level(&rules::UNUSED_ALLOW), unused));
    merged(found, &allowed)
}

/// Returns the rules that are not off.
fn enabled_rules(subject: &Subject<'_>, levels: &Levels) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| level(rule, subject, levels) != Some(Level::Off))
}

/// Returns the findings of these rules: first those that a comment allows, then the others.
fn findings_of(rules: &[&Rule], subject: &Subject<'_>, levels: &Levels) -> (Vec<Finding>, Vec<Finding>) {
    let all = rules.iter().flat_map(|rule| at_level(level(rule, subject, levels), (rule.check)(subject)));
    let all = all.map(|finding| with_reservation(finding, subject));
    let is_allowed = |finding: &Finding| subject.spec.allows.iter().any(|allow| is_allowed_by(finding, allow));
    all.partition(is_allowed)
}

/// Adds a reservation to a finding that may be wrong.
fn with_reservation(mut finding: Finding, subject: &Subject<'_>) -> Finding {
    if subject.lacks_transient_queues() && rules::OF_ALL_QUEUES.contains(&finding.rule) {
        finding.text.push_str(" (a definitions file does not contain exclusive and transient queues)");
    }
    finding
}

/// Sorts the findings, removes refusals that another rule explains, and merges findings of one line about many objects.
fn merged(mut found: Vec<Finding>, allowed: &[Finding]) -> Vec<Finding> {
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

/// Returns the level of a rule that is set, or `Off` for an optional rule. `None` keeps the severity of each finding.
fn level(rule: &Rule, subject: &Subject<'_>, levels: &Levels) -> Option<Level> {
    let level = levels.get(rule.name).copied().or_else(|| subject.spec.lint.get(rule.name).map(|it| it.value));
    level.or(rule.is_optional.then_some(Level::Off))
}

/// Returns true if a comment allows a finding.
fn is_allowed_by(finding: &Finding, allow: &Allow) -> bool {
    allow.rule == finding.rule && (allow.at.file, allow.line) == (finding.at.file, finding.at.line)
}

/// Sets the severity of findings to a level; `Off` removes them.
fn at_level(level: Option<Level>, found: Vec<Finding>) -> Vec<Finding> {
    match level.map(Level::severity) {
        None => found,
        Some(None) => Vec::new(),
        Some(Some(severity)) => found.into_iter().map(|finding| finding.severity(severity)).collect(),
    }
}
