//! Reports streams without a retention limit. The broker never deletes messages from such a stream.

use crate::lint::{Finding, Rule, Subject};
use crate::model::QueueType;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "unbounded-stream",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the stream grows without limit",
    check,
    page: include_str!("unbounded_stream.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues() {
        let is_stream = queue.queue_type == Some(QueueType::Stream);
        if is_stream && queue.settings.get("max-age").is_none() && queue.settings.get("max-length-bytes").is_none() {
            let text = "this stream has no retention limit: it grows until the disk is full";
            let finding = RULE.finding(subject, &queue.id, "name", text);
            findings.push(finding.hint("add a retention limit: `maxAge: 7D`, `maxLengthBytes: 20GiB`, or both"));
        }
    }
    findings
}
