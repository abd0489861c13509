//! Reports user tags that differ from a RabbitMQ tag by a few characters or only in case. The broker accepts any tag,
//! and ignores the tags that it does not know.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, RecordKind};
use crate::spec::{Severity, closest};

pub(super) static RULE: Rule = Rule {
    name: "misspelled-tag",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a user tag looks like a misspelled RabbitMQ tag",
    check,
    page: include_str!("misspelled_tag.md"),
};

/// The tags that RabbitMQ knows (3.8 to 4.3).
const KNOWN: [&str; 5] = ["administrator", "impersonator", "management", "monitoring", "policymaker"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, user) in subject.spec.records.iter().filter(|(id, _)| id.kind == RecordKind::User) {
        for tag in user.record.tags().filter(|tag| !KNOWN.contains(tag)) {
            let Some(near) = closest(&tag.to_lowercase(), KNOWN) else { continue };
            let text = format!("`{tag}` is not a RabbitMQ tag, and grants no access");
            let finding = RULE.finding(subject, &ObjectId::Record(id.clone()), "tags", text);
            findings.push(finding.hint(format!("did you mean `{near}`?")));
        }
    }
    findings
}
