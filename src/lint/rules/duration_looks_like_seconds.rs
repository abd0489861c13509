//! Reports durations of less than a second that have no unit. RabbitMQ reads them as milliseconds, but the author
//! probably meant seconds or minutes.

use crate::lint::effective::known_settings;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "duration-looks-like-seconds",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a duration without a unit is less than one second",
    check,
    page: include_str!("duration_looks_like_seconds.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let bare = &subject.spec.notation.bare;
    if bare.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for setting in known_settings(subject.spec).filter(|setting| bare.contains(&setting.at)) {
        let Some(number) = setting.value.as_integer() else { continue };
        let text = format!("`{}: {number}` means {number} milliseconds, because it has no unit", setting.known.key);
        let hint = format!("write `{number}s` for seconds, or `{number}ms` if this is intended");
        findings.push(RULE.finding(subject, &setting.id, setting.key, text).hint(hint));
    }
    findings
}
