//! Reports retries that return to a quorum queue that rejects messages when it is full. The tier tries again only every
//! three minutes (`dead_letter_worker_publisher_confirm_timeout`; measured: 179 s, with free space all that time).

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "reject-publish-with-tiers",
    severity: Severity::Info,
    sometimes: &[],
    is_optional: false,
    summary: "a retry that returns to a full queue waits up to three minutes",
    check,
    page: include_str!("reject_publish_with_tiers.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.is_quorum() && queue.rejects_when_full()) {
        let Some(retry) = subject.expansion.retries.get(queue.name) else { continue };
        let Some(limit) = queue.limit().filter(|_| !retry.objects(subject.profile).queues.is_empty()) else { continue };
        let text = format!(
            "a retry that returns while the queue is full (`{limit}`) waits up to 3 minutes more, even if there is \
             room sooner"
        );
        let hint = "increase the limit, or remove it";
        findings.push(RULE.about(subject, queue, "overflow", text).hint(hint));
    }
    findings
}
