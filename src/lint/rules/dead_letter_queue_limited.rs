//! Dead-letter queues with a limit: when one is full, it loses the oldest letters, or the newest.

use super::policy_on_generated_queue::beyond_dead_letters;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-queue-limited",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "a dead-letter queue loses messages when it is full",
    check,
    page: include_str!("dead_letter_queue_limited.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let settled = subject.settled();
    let beyond = beyond_dead_letters(settled);
    for queue in settled.iter().filter(|queue| queue.is_dead_letter_queue && queue.loses_in_silence()) {
        // Of a policy that reaches too far, its own rule speaks.
        let is_too_far = |key: &&str| queue.by_policy(key).is_some_and(|(name, _)| beyond.contains(name));
        let Some(key) = queue.limit().filter(|key| !is_too_far(key)) else { continue };
        let (severity, text) = if queue.rejects() {
            let text = "when the queue is full it rejects new messages, and their source queues drop them";
            (Severity::Warning, text)
        } else {
            (Severity::Info, "when the queue is full it drops the oldest message for each new one")
        };
        let hint = "if this is intended, set `deadLetter: none` here; otherwise monitor its length instead";
        findings.push(RULE.about(subject, queue, key, text).severity(severity).hint(hint));
    }
    findings
}
