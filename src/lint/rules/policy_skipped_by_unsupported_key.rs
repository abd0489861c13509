//! Reports policies that the broker ignores completely for a queue, because the queue type does not support one of their keys
//! (`rabbit_queue_type:is_policy_applicable`).

use crate::lint::policy_targets::Kind;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, QueueName, QueueType};
use crate::rabbitmq::precedence;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "policy-skipped-by-unsupported-key",
    severity: Severity::Warning,
    sometimes: &[],
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
        for fit in it.fits.iter().take_while(|fit| fit.is_certain && is_declared) {
            // The first policy that is not skipped governs the queue, so lower ones do not matter.
            let Some(obstacle) = fit.obstacle else { break };
            let has_effect = |key: &String| precedence(key, kind, subject.profile).is_some();
            let Some(lost) = fit.named.policy.definition.keys().find(|key| has_effect(key)) else { continue };
            let policy = ObjectId::Policy(fit.named.name.clone());
            let text = format!(
                "policy `{}` is skipped as a whole, with its `{lost}`: {kind} queues do not support `{obstacle}` in a policy",
                fit.named.name
            );
            let at = subject.position(&policy, obstacle).at;
            let own = subject.position(&it.id, "name").at;
            let finding = RULE.found(it.id.clone(), at, text).also(own, "matches this queue");
            findings.push(finding.hint(hint(subject, kind, obstacle)));
        }
    }
    findings
}

fn hint(subject: &Subject<'_>, kind: QueueType, obstacle: &str) -> String {
    let by_type = if subject.is_at_least(3, 12) {
        let words = match kind {
            QueueType::Classic => "`applyTo: classic_queues`",
            QueueType::Quorum => "`applyTo: quorum_queues`",
            QueueType::Stream => "`applyTo: streams`",
        };
        format!("with {words}")
    } else {
        "with its own pattern".to_owned()
    };
    format!("add a policy without `{obstacle}` for {kind} queues, {by_type} and a higher priority")
}
