//! Reports whitespace and invisible characters, which are easy to overlook, in names and routing keys.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "name-with-whitespace",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "a name contains whitespace that is easy to overlook",
    check,
    page: include_str!("name_with_whitespace.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let queues = spec.queues.iter().filter(|(_, it)| !it.is_external).map(|(name, _)| ObjectId::Queue(name.clone()));
    let dead_letter_queues = spec.dead_letter_queues.iter().filter(|(_, it)| !it.queue.is_external);
    let dead_letter_queues = dead_letter_queues.map(|(name, _)| ObjectId::Queue(name.clone()));
    let exchanges = spec.exchanges.iter().filter(|(_, it)| !it.is_external);
    let exchanges = exchanges.map(|(name, _)| ObjectId::Exchange(name.clone()));
    let policies = spec.policies.keys().map(|name| ObjectId::Policy(name.clone()));
    let named = queues.chain(dead_letter_queues).chain(exchanges).chain(policies);
    let mut findings = Vec::new();
    for id in named {
        let Some((problem, severity)) = id.name().and_then(problem) else { continue };
        let text = format!("its name {problem}");
        findings.push(RULE.finding(subject, &id, "name", text).severity(severity).hint(HINT));
    }
    for binding in spec.bindings.keys() {
        // A space inside a key is visible and has no special meaning, so it is not reported.
        if let Some((problem, Severity::Warning)) = problem(&binding.routing_key) {
            let id = ObjectId::Binding(binding.clone());
            let finding = RULE.finding(subject, &id, "routing_key", format!("its key {problem}"));
            findings.push(finding.hint("correct the key, unless publishers use exactly this key"));
        }
    }
    findings
}

const HINT: &str = "correct the name; if an object with this name exists, keep the name, or create an object with the correct name and delete the old one";

/// Describes whitespace or an invisible character in a name, with a severity; `None` if the name contains neither.
fn problem(name: &str) -> Option<(String, Severity)> {
    if name.starts_with(char::is_whitespace) {
        return Some(("begins with whitespace".to_owned(), Severity::Warning));
    }
    if name.ends_with(char::is_whitespace) {
        return Some(("ends with whitespace".to_owned(), Severity::Warning));
    }
    if let Some(hidden) = name.chars().find(|c| is_hidden(*c)) {
        return Some((format!("contains an invisible character (U+{:04X})", u32::from(hidden)), Severity::Warning));
    }
    name.contains(' ')
        .then(|| ("contains a space, so it must be quoted in shells and `rabbitmqctl`".to_owned(), Severity::Info))
}

/// Returns true for an invisible character, and for whitespace other than a space.
fn is_hidden(c: char) -> bool {
    crate::model::printable::is_hidden(c) || c.is_whitespace() && c != ' '
}
