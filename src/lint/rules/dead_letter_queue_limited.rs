//! Reports dead-letter queues that have a length limit but no dead-letter exchange. When such a queue is full, it drops
//! its oldest messages or rejects new messages.

use super::policy_on_generated_queue::policies_on_other_queues;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-queue-limited",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "a dead-letter queue loses messages when it is full",
    check,
    page: include_str!("dead_letter_queue_limited.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let effective_queues = subject.effective_queues();
    let wide_policies = policies_on_other_queues(effective_queues);
    for queue in effective_queues.iter().filter(|queue| queue.is_dead_letter_queue && queue.drops_messages_silently()) {
        // `policy-on-generated-queue` reports policies that also apply to other queues.
        let is_from_wide_policy =
            |key: &&str| queue.setting_from_policy(key).is_some_and(|(name, _)| wide_policies.contains(name));
        let Some(key) = queue.length_limit_key().filter(|key| !is_from_wide_policy(key)) else { continue };
        let (severity, text) = if queue.rejects_when_full() {
            let text = "when the queue is full, it rejects new messages, and their source queues drop them";
            (Severity::Warning, text)
        } else {
            (Severity::Info, "when the queue is full, it drops the oldest message for each new message")
        };
        let hint =
            "if this is intended, set `deadLetter: none` here; otherwise, remove the limit and monitor the length";
        findings.push(RULE.effective_finding(subject, queue, key, text).severity(severity).hint(hint));
    }
    findings
}
