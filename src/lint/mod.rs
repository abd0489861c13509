//! A spec and what it stands for into findings: what a broker of a version refuses of it, what it ignores, what nobody
//! can have meant. Offline and pure: what it would cost to do it now is `plan`'s to say.
//!
//! A rule is a file below `rules` with its page beside it; the page's examples are the rule's tests.

mod finding;
mod place;
pub mod reference;
mod rule;
mod ruled;
mod rules;
mod settled;
mod subject;
#[cfg(test)]
mod tests;

pub use finding::Finding;
pub use rule::Rule;
pub use rules::RULES;
pub use subject::Subject;

use crate::spec::{Level, Location, Severity};
use std::collections::BTreeMap;

/// The levels that somebody gave to rules, by name.
pub type Levels = BTreeMap<String, Level>;

/// All that the rules find, in the order of the files and the lines; `levels` go before what the spec says of a rule.
///
/// What one line says of many objects is one finding. Where a rule of its own explains a refusal, the plain refusal is left
/// out.
pub fn lint(subject: &Subject<'_>, levels: &Levels) -> Vec<Finding> {
    let found: Vec<Finding> = RULES.iter().flat_map(|rule| checked(rule, subject, levels)).collect();
    let is_explained = |finding: &Finding| {
        finding.rule == rules::REFUSED_BY_BROKER
            && found.iter().any(|other| {
                other.rule != finding.rule
                    && other.severity == Severity::Error
                    && other.at == finding.at
                    && other.objects == finding.objects
            })
    };
    let mut findings: BTreeMap<(Location, &str, String), Finding> = BTreeMap::new();
    for finding in found.iter().filter(|finding| !is_explained(finding)) {
        let key = (finding.at, finding.rule, finding.text.clone());
        match findings.get_mut(&key) {
            Some(first) => first.merge(finding),
            None => {
                findings.insert(key, finding.clone());
            }
        }
    }
    findings.into_values().collect()
}

/// What one rule finds, at its level.
fn checked(rule: &Rule, subject: &Subject<'_>, levels: &Levels) -> Vec<Finding> {
    match levels.get(rule.name) {
        None if rule.is_optional => Vec::new(),
        None => (rule.check)(subject),
        Some(level) => match level.severity() {
            None => Vec::new(),
            Some(severity) => (rule.check)(subject).into_iter().map(|finding| finding.severity(severity)).collect(),
        },
    }
}
