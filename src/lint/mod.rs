//! A spec and what it stands for into findings: what a broker of a version refuses of it, what it ignores, what nobody
//! can have meant. Offline and pure: what it would cost to do it now is `plan`'s to say.
//!
//! A rule is a file below `rules` with its page beside it; the page's examples are the rule's tests.

mod finding;
mod place;
pub mod reference;
mod rule;
mod rules;
mod settled;
mod subject;
#[cfg(test)]
mod tests;

pub use finding::Finding;
pub use rule::Rule;
pub use rules::RULES;
pub use subject::Subject;

use crate::spec::{Location, Severity};
use std::collections::BTreeMap;

/// All that the rules find, in the order of the files and the lines.
///
/// What one line says of many objects is one finding. Where a rule of its own explains a refusal, the plain refusal is left
/// out.
pub fn lint(subject: &Subject<'_>) -> Vec<Finding> {
    let found: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(subject)).collect();
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
