//! Reports policy patterns that are not anchored at the beginning, so they match anywhere in a name.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::Pattern;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "pattern-unanchored",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the pattern is not anchored, so it also matches in the middle of names",
    check,
    page: include_str!("pattern_unanchored.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let policy_targets = subject.policy_targets();
    let mut findings = Vec::new();
    for (name, policy) in &subject.spec.policies {
        let text = policy.pattern.value.as_str();
        // Each of these strings indicates that the author chose the beginning of the pattern intentionally.
        let is_intentional = ["^", "\\A", "(?", "|", "*"].iter().any(|it| text.contains(it));
        if is_intentional || !text.starts_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        let anchored = Pattern::new(&format!("^{text}"));
        let matched = policy_targets.iter().filter(|it| {
            it.matching_policies.iter().any(|matching| matching.named.name == name && matching.is_certain)
        });
        let (begin, inside): (Vec<_>, Vec<_>) = matched.partition(|it| anchored.matches(it.name) == Some(true));
        let finding = match (begin.first(), inside.first()) {
            // The pattern matches nothing, or it is intended to match the end or the middle of names.
            (None, _) => continue,
            (Some(begin), Some(inside)) => {
                let text = format!(
                    "its pattern matches `{}`, but also `{}`, which does not begin with the pattern",
                    begin.name, inside.name
                );
                let finding = RULE.finding(subject, &ObjectId::Policy(name.clone()), "pattern", text);
                finding.also(subject.position(&inside.id, "name").at, "also matched")
            }
            (Some(_), None) => {
                let text = "its pattern matches anywhere in a name, not only at the beginning";
                RULE.finding(subject, &ObjectId::Policy(name.clone()), "pattern", text).severity(Severity::Info)
            }
        };
        findings.push(finding.hint(format!("start it with `^`: `pattern: '^{text}'`")));
    }
    findings
}
