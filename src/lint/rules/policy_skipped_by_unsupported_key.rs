//! Reports policies that the broker ignores completely for a queue, because the queue type does not support one of the
//! keys (`rabbit_queue_type:is_policy_applicable`).

use crate::lint::policy_targets::Kind;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, QueueName, QueueType};
use crate::rabbitmq::precedence;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "policy-skipped-by-unsupported-key",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the broker skips the policy for a queue type that does not support one of its keys",
    check,
    page: include_str!("policy_skipped_by_unsupported_key.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for it in subject.policy_targets() {
        let Kind::Queue(queue) = it.kind else { continue };
        let Some(kind) = queue.queue_type() else { continue };
        let is_declared = subject.spec.queues.contains_key(&QueueName::new(it.name));
        for matching in it.matching_policies.iter().take_while(|matching| matching.is_certain && is_declared) {
            // The first policy that is not skipped governs the queue, so policies with a lower priority have no effect.
            let Some(unsupported_key) = matching.unsupported_key else { break };
            let has_effect = |key: &String| precedence(key, kind, subject.profile).is_some();
            let Some(valid_key) = matching.named.policy.definition.keys().find(|key| has_effect(key)) else { continue };
            let policy = ObjectId::Policy(matching.named.name.clone());
            let text = format!(
                "the broker skips the whole policy `{}`, including `{valid_key}`: {kind} queues do not support `{unsupported_key}` in a policy",
                matching.named.name
            );
            let at = subject.position(&policy, unsupported_key).at;
            let queue_at = subject.position(&it.id, "name").at;
            let finding = RULE.finding_at(it.id.clone(), at, text).also(queue_at, "matches this queue");
            findings.push(finding.hint(hint(subject, kind, unsupported_key)));
        }
    }
    findings
}

fn hint(subject: &Subject<'_>, kind: QueueType, unsupported_key: &str) -> String {
    let by_type = if subject.is_at_least(3, 12) {
        let words = match kind {
            QueueType::Classic => "`applyTo: classic_queues`",
            QueueType::Quorum => "`applyTo: quorum_queues`",
            QueueType::Stream => "`applyTo: streams`",
        };
        format!("with {words}")
    } else {
        "with a separate pattern".to_owned()
    };
    format!("add a policy without `{unsupported_key}` for {kind} queues, {by_type} and a higher priority")
}
