//! Policies that reach further than they were meant to: onto tiers, which keep a message for their own time and no other,
//! and onto dead-letter queues.

use crate::lint::effective::EffectiveQueue;
use crate::lint::narrower::narrower;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, PolicyName};
use crate::rabbitmq::{Effective, Governed};
use crate::spec::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: Rule = Rule {
    name: "policy-on-generated-queue",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "a policy changes the behavior of a delayed retry queue or dead-letter queue",
    check,
    page: include_str!("policy_on_generated_queue.md"),
};

const KEYS: [&str; 6] = ["message-ttl", "expires", "max-length", "max-length-bytes", "overflow", "delivery-limit"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let settled = subject.settled();
    let beyond = beyond_dead_letters(settled);
    let mut findings = Vec::new();
    // By policy, and not by finding: there may be as many as tiers.
    let mut hints: BTreeMap<PolicyName, String> = BTreeMap::new();
    for queue in settled {
        let is_tier = queue.retries_of.is_some();
        if !is_tier && !queue.is_dead_letter_queue {
            continue;
        }
        for key in KEYS {
            let Some((name, holds)) = queue.by_policy(key) else { continue };
            let what = if is_tier { on_tier(queue, key, holds) } else { on_dead_letter_queue(queue, key) };
            // A policy that is for dead-letter queues alone is meant for them.
            if let Some(what) = what.filter(|_| is_tier || beyond.contains(name)) {
                let hint = hints.entry(name.clone()).or_insert_with(|| hint(subject, name));
                findings.push(finding(subject, queue, name, key, is_tier, what).hint(hint.clone()));
            }
        }
    }
    findings
}

/// The policies that also hold for queues which are neither tiers nor dead-letter queues.
pub(super) fn beyond_dead_letters(settled: &[EffectiveQueue<'_>]) -> BTreeSet<PolicyName> {
    let mut names = BTreeSet::new();
    for queue in settled.iter().filter(|queue| !queue.is_dead_letter_queue && queue.retries_of.is_none()) {
        names.extend(KEYS.iter().filter_map(|key| queue.by_policy(key)).map(|(name, _)| name.clone()));
    }
    names
}

fn on_tier(queue: &EffectiveQueue<'_>, key: &str, holds: &Effective) -> Option<&'static str> {
    match key {
        "message-ttl" => Some("it shortens the delay"),
        "expires" => Some("it deletes the queue with all waiting messages, because it has no consumers"),
        "max-length" | "max-length-bytes" => Some("a full retry queue returns messages too early or rejects them"),
        // A quorum tier refuses so that nothing is lost on the way back; without a limit it is never full.
        "overflow" if queue.is_quorum() && holds.value.as_text() != Some("reject-publish") => {
            Some("returning messages can then be lost")
        }
        _ => None,
    }
}

fn on_dead_letter_queue(queue: &EffectiveQueue<'_>, key: &str) -> Option<&'static str> {
    match key {
        "message-ttl" => Some("messages are deleted after that time"),
        "expires" => Some("the queue is deleted with all its messages, because it usually has no consumers"),
        "max-length" | "max-length-bytes" => Some("messages are lost when it is full"),
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
    what: &str,
) -> Finding {
    let kind = if is_tier { "delayed retry queue" } else { "dead-letter queue" };
    let text = format!("policy `{policy}` sets `{key}` on this {kind}: {what}");
    let mut finding = RULE.about(subject, queue, key, text);
    if is_tier && queue.written.is_none() {
        let retries = subject.place(&queue.id, key);
        finding.also = vec![(retries.at, "the retries that use it".to_owned())];
    }
    finding
}

/// The pattern to write instead: it leaves out the tiers and dead-letter queues, and still matches all else that the policy
/// governs today.
fn hint(subject: &Subject<'_>, policy: &PolicyName) -> String {
    let policies = subject.routing().policies();
    let is_governed = |name: &str, governed: Governed| {
        policies.governing(name, governed).possible().iter().flatten().any(|it| it.name == policy)
    };
    let (mut kept, mut avoided) = (BTreeSet::new(), BTreeSet::new());
    for topology in subject.topologies() {
        for (name, queue) in &topology.queues {
            if is_governed(name.as_str(), Governed::from(queue)) {
                let is_tier = subject.retries_of(&ObjectId::Queue(name.clone())).is_some();
                let is_generated = is_tier || subject.spec.dead_letter_queues.contains_key(name);
                if is_generated { &mut avoided } else { &mut kept }.insert(name.as_str());
            }
        }
        let exchanges = topology.exchanges.keys().map(|name| name.as_str());
        kept.extend(exchanges.filter(|name| is_governed(name, Governed::Exchange)));
    }
    let pattern = subject.spec.policies.get(policy).map_or("", |it| it.pattern.value.as_str());
    match narrower(pattern, &kept, &avoided).filter(|_| !pattern.is_empty()) {
        Some(better) => format!("give policy `{policy}` a pattern that excludes it: `{better}`"),
        None => format!("use a pattern for {} that does not match it", ObjectId::Policy(policy.clone())),
    }
}
