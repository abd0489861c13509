//! Reports queues whose messages expire and are deleted, because the queues have no dead-letter target.

use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "ttl-without-dead-letter",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "expired messages are deleted, and the spec does not state that this is intended",
    check,
    page: include_str!("ttl_without_dead_letter.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in
        subject.effective_queues().iter().filter(|queue| !queue.is_dead_letter_queue && queue.drops_messages_silently())
    {
        if let Some(ttl) = queue.settings.integer("message-ttl") {
            let after = duration(ttl).map_or_else(|| "immediately".to_owned(), |ttl| format!("after {ttl}"));
            let text = format!("messages that are not consumed are deleted {after}");
            let hint = "if this is intended, set `deadLetter: none`; otherwise use an entry in `deadLetterQueues`";
            findings.push(RULE.effective_finding(subject, queue, "message-ttl", text).hint(hint));
        }
    }
    findings
}
