//! Reports `at-least-once` dead-lettering that is effectively `at-most-once`. The broker falls back to `at-most-once`,
//! and logs the fallback, unless the queue has `overflow: reject-publish` (`rabbit_quorum_queue:dlh/5`, 3.10 to 4.3).

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, ObjectId, QueueType};
use crate::rabbitmq::{Governed, Policies};
use crate::spec::{PolicySpec, Severity};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "at-least-once-without-reject-publish",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "at-least-once dead-lettering falls back to at-most-once without `overflow: reject-publish`",
    check,
    page: include_str!("at_least_once_without_reject_publish.md"),
};

const TEXT: &str = "without `overflow: reject-publish`, the broker falls back to at-most-once dead-lettering";
const HINT: &str = "add `overflow: reject-publish` and a `maxLength`, or remove the strategy";

fn is_text(value: Option<&ArgumentValue>, text: &str) -> bool {
    value.and_then(ArgumentValue::as_text) == Some(text)
}

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !subject.is_at_least(3, 10) {
        // Earlier versions do not support dead-letter strategies.
        return findings;
    }
    for queue in subject.effective_queues().iter().filter(|queue| queue.is_quorum()) {
        if queue.settings.text("dead-letter-strategy") == Some("at-least-once") && !queue.rejects_when_full() {
            findings.push(RULE.effective_finding(subject, queue, "dead-letter-strategy", TEXT).hint(HINT));
        }
    }
    let falls_back = |policy: &PolicySpec| {
        let set = |key: &str| policy.definition.get(key).map(|it| &it.value);
        is_text(set("dead-letter-strategy"), "at-least-once") && !is_text(set("overflow"), "reject-publish")
    };
    let policies: Vec<ObjectId> =
        subject.policies().filter(|(_, policy)| falls_back(policy)).map(|(id, _)| id).collect();
    if policies.is_empty() {
        return findings;
    }
    // Skips policies that govern a quorum queue in the spec. A queue can set `overflow` itself, so the loop above checks
    // the queues instead.
    let in_use = subject.policies_on_quorum_queues();
    for id in policies.iter().filter(|id| !in_use.contains(id)) {
        findings.push(RULE.finding(subject, id, "dead-letter-strategy", TEXT).hint(HINT));
    }
    findings
}

impl Subject<'_> {
    /// Returns the policies that govern or may govern a quorum queue in the spec.
    fn policies_on_quorum_queues(&self) -> BTreeSet<ObjectId> {
        let policies = Policies::new(&self.expansion.topology.policies, self.profile.version);
        let mut found = BTreeSet::new();
        for (id, queue) in self.queues_of(QueueType::Quorum) {
            let governing = policies.governing(id.name().unwrap_or_default(), Governed::from(queue));
            found.extend(governing.possible().iter().flatten().map(|named| ObjectId::Policy(named.name.clone())));
        }
        found
    }
}
