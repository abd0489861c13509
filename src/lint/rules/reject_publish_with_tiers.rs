//! Reports retries that return to a quorum queue that rejects messages when it is full. After a rejection, the tier
//! waits three minutes before it tries again (`dead_letter_worker_publisher_confirm_timeout`; measured: 179 s, although
//! the queue had free space).

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "reject-publish-with-tiers",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "a retry that returns to a full queue waits up to three minutes",
    check,
    page: include_str!("reject_publish_with_tiers.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.is_quorum() && queue.rejects_when_full()) {
        let Some(retry) = subject.expansion.retries.get(queue.name) else { continue };
        let Some(limit) = queue.length_limit_key().filter(|_| !retry.objects(subject.profile).queues.is_empty()) else {
            continue;
        };
        let text = format!(
            "a retry that returns while the queue is full (`{limit}`) waits up to 3 more minutes, even if the queue \
             has room sooner"
        );
        let hint = "increase the limit, or remove it";
        findings.push(RULE.effective_finding(subject, queue, "overflow", text).hint(hint));
    }
    findings
}
