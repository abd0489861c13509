//! Patterns that are not anchored at the beginning, and match names that merely contain what was meant.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::Pattern;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "pattern-unanchored",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "the pattern also matches names that contain it",
    check,
    page: include_str!("pattern_unanchored.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let ruled = subject.ruled();
    let mut findings = Vec::new();
    for (name, policy) in &subject.spec.policies {
        let text = policy.pattern.value.as_str();
        // Who writes any of these knows where a pattern begins.
        let is_anchored = ["^", "\\A", "(?", "|", "*"].iter().any(|sign| text.contains(sign));
        if is_anchored || !text.starts_with(|c: char| c.is_alphanumeric()) {
            continue;
        }
        let anchored = Pattern::new(&format!("^{text}"));
        let matched = ruled.iter().filter(|it| it.fits.iter().any(|fit| fit.named.name == name && fit.is_certain));
        let (begin, inside): (Vec<_>, Vec<_>) = matched.partition(|it| anchored.matches(it.name) == Some(true));
        let finding = match (begin.first(), inside.first()) {
            // What ends so, or contains it, is meant; or nothing is matched at all.
            (None, _) => continue,
            (Some(begin), Some(inside)) => {
                let text = format!("it matches `{}`, and also `{}`, which only contains it", begin.name, inside.name);
                let finding = RULE.finding(subject, &ObjectId::Policy(name.clone()), "pattern", text);
                finding.also(subject.place(&inside.id, "name").at, "also matched")
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
