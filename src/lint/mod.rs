//! A spec and what it stands for into findings: what a broker of a version refuses of it, what it ignores, what nobody
//! can have meant. Offline and pure: what it would cost to do it now is `plan`'s to say.
//!
//! A rule is a file below `rules` with its page beside it; the page's examples are the rule's tests.

mod finding;
mod mistaken;
mod narrower;
mod place;
pub mod reference;
mod rule;
mod ruled;
mod rules;
mod said;
mod settled;
mod subject;
#[cfg(test)]
mod tests;

pub use finding::Finding;
pub use mistaken::Mistaken;
pub use rule::Rule;
pub use rules::RULES;
pub use subject::Subject;

use crate::spec::{Allow, Level, Severity};
use std::collections::BTreeMap;

/// The levels that somebody gave to rules, by name.
pub type Levels = BTreeMap<String, Level>;

/// All that the rules find, in the order of the files and the lines; `levels` go before those of the spec.
///
/// What one line says of many objects is one finding. Where a rule of its own explains a refusal, the plain refusal is left
/// out. What a comment allows is left out, too, and a comment that allows nothing is a finding.
pub fn lint(subject: &Subject<'_>, levels: &Levels) -> Vec<Finding> {
    let asked: Vec<&Rule> = asked(subject, levels).collect();
    let level = |rule: &Rule| level(rule, subject, levels);
    let (allowed, mut found) = found_by(&asked, subject, levels);
    let is_used = |allow: &Allow| allowed.iter().any(|finding| is_for(allow, finding));
    let is_asked = |allow: &Allow| asked.iter().any(|rule| rule.name == allow.rule);
    let unused = subject.spec.allows.iter().filter(|allow| is_asked(allow) && !is_used(allow));
    let unused = rules::unused(subject, unused);
    found.extend(at_level(level(&rules::UNUSED_ALLOW), unused));
    joined(found, &allowed)
}

/// The rules that nobody turned off.
fn asked(subject: &Subject<'_>, levels: &Levels) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| level(rule, subject, levels) != Some(Level::Off))
}

/// What these rules find: what a comment allows, and the rest.
fn found_by(rules: &[&Rule], subject: &Subject<'_>, levels: &Levels) -> (Vec<Finding>, Vec<Finding>) {
    let all = rules.iter().flat_map(|rule| at_level(level(rule, subject, levels), (rule.check)(subject)));
    let all = all.map(|finding| qualified(finding, subject));
    let is_allowed = |finding: &Finding| subject.spec.allows.iter().any(|allow| is_for(allow, finding));
    all.partition(is_allowed)
}

/// The finding, with the reason why it can be untrue.
fn qualified(mut finding: Finding, subject: &Subject<'_>) -> Finding {
    if subject.is_unsure(finding.rule) {
        finding.text.push_str(" (no definitions file holds exclusive and transient queues)");
    }
    finding
}

/// In order, without what another rule explains; what one line says of many objects is one.
fn joined(mut found: Vec<Finding>, allowed: &[Finding]) -> Vec<Finding> {
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

/// The level that somebody gave to a rule, or that it is silent by itself; `None` leaves each finding as it is.
fn level(rule: &Rule, subject: &Subject<'_>, levels: &Levels) -> Option<Level> {
    let said = levels.get(rule.name).copied().or_else(|| subject.spec.lint.get(rule.name).map(|it| it.value));
    said.or(rule.is_optional.then_some(Level::Off))
}

/// Whether a comment allows a finding.
fn is_for(allow: &Allow, finding: &Finding) -> bool {
    allow.rule == finding.rule && (allow.at.file, allow.line) == (finding.at.file, finding.at.line)
}

fn at_level(level: Option<Level>, found: Vec<Finding>) -> Vec<Finding> {
    match level.map(Level::severity) {
        None => found,
        Some(None) => Vec::new(),
        Some(Some(severity)) => found.into_iter().map(|finding| finding.severity(severity)).collect(),
    }
}
