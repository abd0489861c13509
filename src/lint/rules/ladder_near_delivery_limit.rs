//! Ladders with nearly as many retries as the queue's delivery limit. From 4.3 on the delivery count travels with a message
//! through dead-lettering, and the limit is compared with it (`rabbit_fifo`, measured on 4.3.6): a worker that calls
//! `basic.reject` uses it up on the ladder. Before, each visit to the queue counts anew.

use crate::expand::Retry;
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "ladder-near-delivery-limit",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "the delivery limit can end a ladder before its last retry",
    check,
    page: include_str!("ladder_near_delivery_limit.md"),
};

/// So many crashes of a worker should be left for the last try.
const SPARE: i64 = 3;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.settled().iter().filter(|_| subject.is_at_least(4, 3)) {
        let Some(Retry::Ladder(ladder)) = subject.expansion.retries.get(queue.name) else { continue };
        let Some((limit, _)) = queue.delivery_limit() else { continue };
        let retries = i64::from(ladder.tiers.last());
        if retries + SPARE <= limit {
            continue;
        }
        let Some((_, at)) = queue.max_retries() else { continue };
        let text = format!(
            "{retries} retries and a delivery limit of {limit}: a worker that calls `basic.reject` instead of `basic.nack` uses \
             up the limit, and then a crash dead-letters a message before its last retry"
        );
        let hint = format!("set `deliveryLimit: {}` or more, or use fewer retries", retries + 20);
        findings.push(RULE.at(subject, queue, at, text).hint(hint));
    }
    findings
}
