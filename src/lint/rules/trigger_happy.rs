//! Reports queues that dead-letter a message after its first failure. If a dependency of the worker has a short outage,
//! such a queue dead-letters valid messages.

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "trigger-happy",
    severity: Severity::Info,
    other_severities: &[Severity::Warning],
    is_optional: false,
    summary: "a message is dead-lettered after its first failure",
    check,
    page: include_str!("trigger_happy.md"),
};

const HINT: &str = "add retries that outlast a short outage: `retry: {delays: [5s, 30s, 5m]}`";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.has_dead_letter_exchange()) {
        let limit = queue.delivery_limit().map(|(limit, _)| limit);
        let finding = match (queue.max_retries(), limit) {
            // A delivery also counts if the consumer's connection is lost.
            (Some((0, at)), Some(0)) => {
                let text =
                    "a message is dead-lettered after one delivery, even if its consumer merely loses the connection";
                RULE.queue_finding_at(subject, queue, at, text).severity(Severity::Warning)
            }
            (None, Some(0)) => {
                let text =
                    "a message is dead-lettered after one delivery, even if its consumer merely loses the connection";
                RULE.effective_finding(subject, queue, "delivery-limit", text).severity(Severity::Warning)
            }
            (Some((0, at)), _) => RULE.queue_finding_at(
                subject,
                queue,
                at,
                "a message is dead-lettered after the first failure of a worker",
            ),
            (Some(_) | None, _) => continue,
        };
        findings.push(finding.hint(HINT));
    }
    findings
}
