//! Reports queues without a length limit or a message TTL. Most queues do not need a limit, so the rule is optional.

use crate::lint::{Finding, Rule, Subject};
use crate::model::QueueType;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "unbounded-queue",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: true,
    summary: "the queue has no limit",
    check,
    page: include_str!("unbounded_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Dead-letter queues and tiers should not have a limit: a full dead-letter queue loses messages, and a full tier
    // returns messages too early.
    for queue in subject.effective_queues().iter().filter(|it| !it.is_dead_letter_queue && it.declaration.is_some()) {
        let is_stream = queue.queue_type == Some(QueueType::Stream);
        if !is_stream && queue.length_limit_key().is_none() && queue.settings.get("message-ttl").is_none() {
            let text =
                "without consumers, it grows until the broker runs out of memory or disk and blocks all publishers";
            let finding = RULE.finding(subject, &queue.id, "name", text);
            findings.push(finding.hint("add a limit that only an outage reaches: `maxLengthBytes: 1GiB`"));
        }
    }
    findings
}
