//! Durations below a second that are written as bare numbers: RabbitMQ's milliseconds, where seconds or minutes were meant.

use crate::lint::said::said;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "duration-looks-like-seconds",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "a duration of less than a second without a unit",
    check,
    page: include_str!("duration_looks_like_seconds.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let bare = &subject.spec.notation.bare;
    if bare.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for said in said(subject.spec).filter(|said| bare.contains(&said.at)) {
        let Some(number) = said.value.as_integer() else { continue };
        let text = format!("`{}: {number}` means {number} milliseconds, because it has no unit", said.known.key);
        let hint = format!("write `{number}s` for seconds, or `{number}ms` if this is intended");
        findings.push(RULE.finding(subject, &said.id, said.setting, text).hint(hint));
    }
    findings
}
