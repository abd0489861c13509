//! `at-least-once` dead-lettering that silently is `at-most-once`: `rabbit_quorum_queue:dlh/5` falls back to it, with a
//! line in the broker's log, unless the queue rejects what it has no room for (3.10 to 4.3).

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, QueueType};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "at-least-once-without-reject-publish",
    severity: Severity::Warning,
    summary: "dead letters are said to go at least once, and go at most once",
    check,
    page: include_str!("at_least_once_without_reject_publish.md"),
};

const TEXT: &str = "dead letters go at most once, not at least once: \
                    that needs `overflow: reject-publish`, and without it the broker falls back silently";
const HINT: &str = "add `overflow: reject-publish`, and a `maxLength`, or drop the strategy";

fn is(value: Option<&ArgumentValue>, word: &str) -> bool {
    value.and_then(ArgumentValue::as_text) == Some(word)
}

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !subject.is_at_least(3, 10) {
        // Before, there is no strategy at all.
        return findings;
    }
    let rejects = |value: Option<&ArgumentValue>| is(value, "reject-publish");
    // A policy goes before the argument here; any of them may be the one that governs.
    let policy_rejects =
        subject.expansion.topology.policies.values().any(|policy| rejects(policy.definition.get("overflow")));
    let mut queue_rejects = false;
    for (id, queue) in subject.queues_of(QueueType::Quorum) {
        let rejects = rejects(queue.arguments.get("x-overflow"));
        queue_rejects |= rejects;
        if is(queue.arguments.get("x-dead-letter-strategy"), "at-least-once") && !rejects && !policy_rejects {
            findings.push(RULE.finding(subject, &id, "x-dead-letter-strategy", TEXT).hint(HINT));
        }
    }
    for (id, policy) in subject.policies() {
        let set = |key: &str| policy.definition.get(key).map(|it| &it.value);
        let own = set("overflow");
        if is(set("dead-letter-strategy"), "at-least-once") && !rejects(own) && (own.is_some() || !queue_rejects) {
            findings.push(RULE.finding(subject, &id, "dead-letter-strategy", TEXT).hint(HINT));
        }
    }
    findings
}
