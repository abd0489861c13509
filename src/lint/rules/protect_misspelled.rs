//! Reports names in `protect` that are neither declared nor removed, but differ from a declared or removed name by one
//! character or by two swapped characters. `ignore` requires no such rule, because it cannot list a declared name.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "protect-misspelled",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "`protect` lists a name that is not declared but resembles a declared name",
    check,
    page: include_str!("protect_misspelled.md"),
};

/// The minimum length of a name to compare. If a shorter name differs by one character, it is often a different word.
const MIN_LENGTH: usize = 5;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = names(subject);
    for glob in &subject.spec.protect {
        let text = glob.value.as_str();
        if text.contains(['*', '?']) || names.contains(text) {
            continue;
        }
        if let Some(near) = names.iter().find(|name| is_near(name, text)) {
            let message = format!("`protect: [{text:?}]` does not protect any object that is declared or removed here");
            findings.push(RULE.finding_at(ObjectId::Vhost, glob.at, message).hint(format!("did you mean `{near}`?")));
        }
    }
    findings
}

/// Returns the names of all queues, exchanges and policies in the spec and its expansion, and of all objects that the
/// spec removes.
pub(super) fn names<'a>(subject: &Subject<'a>) -> BTreeSet<&'a str> {
    let spec = subject.spec;
    let topology = &subject.expansion.topology;
    let declared = spec.queues.keys().chain(spec.dead_letter_queues.keys()).map(|name| name.as_str());
    let declared = declared.chain(spec.exchanges.keys().map(|name| name.as_str()));
    let generated = topology.queues.keys().map(|name| name.as_str());
    let generated = generated.chain(topology.exchanges.keys().map(|name| name.as_str()));
    let policies = topology.policies.keys().map(|name| name.as_str());
    let removed = spec.removed.iter().filter_map(|removed| removed.value.name());
    declared.chain(generated).chain(policies).chain(removed).collect()
}

/// Returns true if the names differ by one inserted, removed, replaced or transposed character. Returns false if `text`
/// is too short to compare, or if the names differ only in digits, such as `orders.1` and `orders.2`.
fn is_near(name: &str, text: &str) -> bool {
    let without_digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    name.len().abs_diff(text.len()) <= 1
        && text.len() >= MIN_LENGTH
        && strsim::damerau_levenshtein(name, text) == 1
        && without_digits(name) != without_digits(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_one_different_character_are_near() {
        for (name, text, expected) in [
            ("orders.audit", "orders.adit", true),
            ("orders.audit", "orders.auidt", true),
            ("orders.audit", "orders.audits", true),
            ("orders.audit", "orders.adt", false),
            ("orders.1", "orders.2", false),
            ("orders.1", "orders.12", false),
            ("mail", "mails", true),
            ("mail", "main", false),
        ] {
            assert_eq!(is_near(name, text), expected, "{name} and {text}");
        }
    }
}
