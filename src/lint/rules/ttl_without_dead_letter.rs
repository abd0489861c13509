//! Queues whose messages expire and are gone.

use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "ttl-without-dead-letter",
    severity: Severity::Info,
    sometimes: &[],
    is_optional: false,
    summary: "messages that expire are deleted, and nobody says that this is meant",
    check,
    page: include_str!("ttl_without_dead_letter.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.settled().iter().filter(|queue| !queue.is_dead_letter_queue && queue.loses_in_silence()) {
        if let Some(ttl) = queue.integer("message-ttl") {
            let after = duration(ttl).map_or_else(|| "at once".to_owned(), |ttl| format!("after {ttl}"));
            let text = format!("what nobody consumes is deleted {after}");
            let hint = "if that is meant, say `deadLetter: none`; else name an entry of `deadLetterQueues`";
            findings.push(RULE.about(subject, queue, "message-ttl", text).hint(hint));
        }
    }
    findings
}
