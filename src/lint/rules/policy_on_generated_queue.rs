//! Reports policies that apply to delayed retry queues or, along with other queues, to dead-letter queues.

use crate::lint::effective::EffectiveQueue;
use crate::lint::policy_targets::narrow_pattern;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, PolicyName};
use crate::rabbitmq::{Effective, Governed};
use crate::spec::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: Rule = Rule {
    name: "policy-on-generated-queue",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a policy changes the behavior of a delayed retry queue or dead-letter queue",
    check,
    page: include_str!("policy_on_generated_queue.md"),
};

/// The policy keys that can change the behavior of a delayed retry queue or a dead-letter queue.
const KEYS: [&str; 6] = ["message-ttl", "expires", "max-length", "max-length-bytes", "overflow", "delivery-limit"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let effective_queues = subject.effective_queues();
    let wide_policies = policies_on_other_queues(effective_queues);
    let mut findings = Vec::new();
    // The hint is computed once for each policy, because each tier can have a finding.
    let mut hints: BTreeMap<PolicyName, String> = BTreeMap::new();
    for queue in effective_queues {
        let is_tier = queue.retry_owner.is_some();
        if !is_tier && !queue.is_dead_letter_queue {
            continue;
        }
        for key in KEYS {
            let Some((name, effective)) = queue.setting_from_policy(key) else { continue };
            let consequence = if is_tier {
                tier_consequence(queue, key, effective)
            } else {
                dead_letter_queue_consequence(queue, key)
            };
            // A policy that applies to dead-letter queues, but to no other queues, is intentional.
            if let Some(consequence) = consequence.filter(|_| is_tier || wide_policies.contains(name)) {
                let hint = hints.entry(name.clone()).or_insert_with(|| hint(subject, name));
                findings.push(finding(subject, queue, name, key, is_tier, consequence).hint(hint.clone()));
            }
        }
    }
    findings
}

/// Returns the policies that set any of [`KEYS`] on queues that are neither tiers nor dead-letter queues.
pub(super) fn policies_on_other_queues(effective_queues: &[EffectiveQueue<'_>]) -> BTreeSet<PolicyName> {
    let mut names = BTreeSet::new();
    for queue in effective_queues.iter().filter(|queue| !queue.is_dead_letter_queue && queue.retry_owner.is_none()) {
        names.extend(KEYS.iter().filter_map(|key| queue.setting_from_policy(key)).map(|(name, _)| name.clone()));
    }
    names
}

/// Describes the consequence of a policy key on a delayed retry queue; `None` if the key is harmless.
fn tier_consequence(queue: &EffectiveQueue<'_>, key: &str, effective: &Effective) -> Option<&'static str> {
    match key {
        "message-ttl" => Some("it shortens the delay"),
        "expires" => Some("the queue is deleted with all waiting messages, because it has no consumers"),
        "max-length" | "max-length-bytes" => Some("a full retry queue returns messages too early or rejects them"),
        // A quorum tier sets `reject-publish`, because at-least-once dead-lettering requires it.
        "overflow" if queue.is_quorum() && effective.value.as_text() != Some("reject-publish") => {
            Some("this disables at-least-once dead-lettering, so returning messages can be lost")
        }
        _ => None,
    }
}

/// Describes the consequence of a policy key on a dead-letter queue; `None` if the key is harmless.
fn dead_letter_queue_consequence(queue: &EffectiveQueue<'_>, key: &str) -> Option<&'static str> {
    match key {
        "message-ttl" => Some("messages are deleted after that time"),
        "expires" => Some("the queue is deleted with all its messages, because it usually has no consumers"),
        "max-length" | "max-length-bytes" => Some("messages are lost when the queue is full"),
        "delivery-limit" if queue.delivery_limit().is_some() => {
            Some("a message that is inspected too often is deleted")
        }
        _ => None,
    }
}

fn finding(
    subject: &Subject<'_>,
    queue: &EffectiveQueue<'_>,
    policy: &PolicyName,
    key: &str,
    is_tier: bool,
    consequence: &str,
) -> Finding {
    let kind = if is_tier { "delayed retry queue" } else { "dead-letter queue" };
    let text = format!("policy `{policy}` sets `{key}` on this {kind}: {consequence}");
    let mut finding = RULE.effective_finding(subject, queue, key, text);
    if is_tier && queue.declaration.is_none() {
        let retries = subject.position(&queue.id, key);
        finding.also = vec![(retries.at, "the retries that use this queue".to_owned())];
    }
    finding
}

/// Suggests a pattern that excludes tiers and dead-letter queues, but still matches all other objects that the policy
/// currently governs.
fn hint(subject: &Subject<'_>, policy: &PolicyName) -> String {
    let policies = subject.routing().policies();
    let is_governed = |name: &str, governed: Governed| {
        policies.governing(name, governed).possible().iter().flatten().any(|it| it.name == policy)
    };
    let (mut kept, mut avoided) = (BTreeSet::new(), BTreeSet::new());
    for topology in subject.topologies() {
        for (name, queue) in &topology.queues {
            if is_governed(name.as_str(), Governed::from(queue)) {
                let is_tier = subject.retry_owner(&ObjectId::Queue(name.clone())).is_some();
                let is_generated = is_tier || subject.spec.dead_letter_queues.contains_key(name);
                if is_generated { &mut avoided } else { &mut kept }.insert(name.as_str());
            }
        }
        let exchanges = topology.exchanges.keys().map(|name| name.as_str());
        kept.extend(exchanges.filter(|name| is_governed(name, Governed::Exchange)));
    }
    let pattern = subject.spec.policies.get(policy).map_or("", |it| it.pattern.value.as_str());
    match narrow_pattern(pattern, &kept, &avoided).filter(|_| !pattern.is_empty()) {
        Some(better) => format!("change the pattern of policy `{policy}` so that it excludes this queue: `{better}`"),
        None => format!("change the pattern of {} so that it excludes this queue", ObjectId::Policy(policy.clone())),
    }
}
