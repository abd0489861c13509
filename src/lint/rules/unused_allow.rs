//! Reports comments that allow a finding that does not occur. `lint` calls [`report_unused`] after all other rules,
//! because it requires their findings.

use crate::lint::{Finding, Rule, Subject};
use crate::spec::{Allow, Severity};

pub(in crate::lint) static RULE: Rule = Rule {
    name: "unused-allow",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a comment allows a finding that does not occur",
    check: |_| Vec::new(),
    page: include_str!("unused_allow.md"),
};

/// Returns a finding for each comment in `allows`. All these comments must be unused.
pub(in crate::lint) fn report_unused<'a>(
    subject: &Subject<'_>,
    allows: impl Iterator<Item = &'a Allow>,
) -> Vec<Finding> {
    let finding = |allow: &Allow| Finding {
        rule: RULE.name,
        severity: RULE.severity,
        objects: Vec::new(),
        text: format!("rule `{}` has no finding here for RabbitMQ {}", allow.rule, subject.profile.version),
        at: allow.at,
        also: Vec::new(),
        hint: Some("remove the comment, or move it to the line of the finding".to_owned()),
    };
    allows.map(finding).collect()
}
