//! Reports retries that count only rejected or republished messages, on queues without a delivery limit. A worker that
//! crashes neither rejects nor republishes its message, so the broker redelivers the message without limit.

use crate::expand::Retry;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "crash-loop-not-counted",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "a message that crashes its worker is redelivered without limit",
    check,
    page: include_str!("crash_loop_not_counted.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues() {
        let Some(retry) = subject.expansion.retries.get(queue.name) else { continue };
        let strategy = match retry {
            Retry::Ladder(_) | Retry::Republish(_) => retry.strategy(),
            // With these strategies, the queue counts all deliveries.
            Retry::Redeliver(_) | Retry::Delayed(_) => continue,
        };
        if queue.delivery_limit().is_some() {
            continue;
        }
        let (why, hint) = if !queue.is_quorum() {
            ("a classic queue does not count deliveries", "use `type: quorum`, which has a delivery limit")
        } else if subject.is_at_least(4, 0) {
            ("this queue has no delivery limit", "remove `deliveryLimit: -1`")
        } else {
            (
                "quorum queues have no default delivery limit before RabbitMQ 4.0",
                "set a `deliveryLimit`, if the strategy supports it",
            )
        };
        let text = format!(
            "a message that crashes its worker is redelivered without limit and not counted by `{strategy}`: {why}"
        );
        let at = queue.declaration.and_then(|it| it.retry.as_ref()).map(|retry| retry.at());
        findings.extend(at.map(|at| RULE.queue_finding_at(subject, queue, at, text).hint(hint)));
    }
    findings
}
