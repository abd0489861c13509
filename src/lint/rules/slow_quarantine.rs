//! Reports queues with many retries, which redeliver a poison message many times before it is dead-lettered.

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "slow-quarantine",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "a message that always fails is retried more than 20 times",
    check,
    page: include_str!("slow_quarantine.md"),
};

/// The maximum number of retries that the rule does not report: the default delivery limit as of RabbitMQ 4.0.
const MAX_RETRIES: u32 = 20;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues() {
        let Some((retries, at)) = queue.max_retries().filter(|(retries, _)| *retries > MAX_RETRIES) else { continue };
        let waits = subject.expansion.retries.get(queue.name).is_some_and(|retry| !retry.delays().is_empty());
        let (severity, text) = if waits {
            (
                Severity::Info,
                format!("a message that always fails is retried {retries} times before it is dead-lettered or dropped"),
            )
        } else {
            let text = format!(
                "a message that always fails is retried immediately {retries} times and takes worker time from other messages"
            );
            (Severity::Warning, text)
        };
        let hint = "use 3 to 5 retries, which are enough to detect a poison message; use longer delays to outlast longer outages";
        findings.push(RULE.queue_finding_at(subject, queue, at, text).severity(severity).hint(hint));
    }
    findings
}
