//! Reports ladders whose number of retries is close to the delivery limit of the queue. On 4.3 and later, a message
//! keeps its delivery count when it is dead-lettered, and the broker compares the count with the limit (`rabbit_fifo`,
//! measured on 4.3.6). A worker that calls `basic.reject` therefore uses up the limit. Before 4.3, the count restarts
//! in each queue.

use crate::expand::Retry;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "ladder-near-delivery-limit",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the delivery limit can end a ladder before its last retry",
    check,
    page: include_str!("ladder_near_delivery_limit.md"),
};

/// The number of worker crashes that the limit should still allow on the last attempt.
const SPARE: i64 = 3;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|_| subject.is_at_least(4, 3)) {
        let Some(Retry::Ladder(ladder)) = subject.expansion.retries.get(queue.name) else { continue };
        let Some((limit, _)) = queue.delivery_limit() else { continue };
        let retries = i64::from(ladder.tiers.last());
        if retries + SPARE <= limit {
            continue;
        }
        let Some((_, at)) = queue.max_retries() else { continue };
        let text = format!(
            "{retries} retries, but a delivery limit of {limit}: a worker that calls `basic.reject` instead of `basic.nack` \
             uses up the limit, and a crash then dead-letters a message before its last retry"
        );
        let hint = format!("set `deliveryLimit: {}` or more, or use fewer retries", retries + 20);
        findings.push(RULE.queue_finding_at(subject, queue, at, text).hint(hint));
    }
    findings
}
