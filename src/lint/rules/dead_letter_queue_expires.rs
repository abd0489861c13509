//! Reports dead-letter queues that expire, or whose messages expire and are deleted. A dead-letter queue usually has no
//! consumers.

use super::policy_on_generated_queue::policies_on_other_queues;
use crate::lint::effective::EffectiveQueue;
use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-queue-expires",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a TTL or `expires` deletes dead-lettered messages",
    check,
    page: include_str!("dead_letter_queue_expires.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let effective_queues = subject.effective_queues();
    let wide_policies = policies_on_other_queues(effective_queues);
    // `policy-on-generated-queue` reports policies that also apply to other queues.
    let is_set = |queue: &EffectiveQueue<'_>, key: &str| {
        queue.settings.get(key).is_some()
            && !queue.setting_from_policy(key).is_some_and(|(name, _)| wide_policies.contains(name))
    };
    for queue in effective_queues.iter().filter(|queue| queue.is_dead_letter_queue) {
        let format_duration =
            |key| queue.settings.integer(key).and_then(duration).unwrap_or_else(|| "that time".to_owned());
        if is_set(queue, "expires") {
            let text = format!(
                "the queue is deleted with all its messages after {} without consumers",
                format_duration("expires")
            );
            let hint = "remove `expires`: a dead-letter queue usually has no consumers";
            findings.push(RULE.effective_finding(subject, queue, "expires", text).hint(hint));
        }
        if is_set(queue, "message-ttl") && queue.drops_messages_silently() {
            let text = format!(
                "dead-lettered messages are deleted after {}, even if they have not been inspected",
                format_duration("message-ttl")
            );
            let hint = "if this is intended, set `deadLetter: none` here; otherwise remove the TTL, or set a dead-letter target";
            findings.push(RULE.effective_finding(subject, queue, "message-ttl", text).hint(hint));
        }
    }
    findings
}
