//! Reports settings that the broker accepts but ignores.

use crate::lint::effective::EffectiveQueue;
use crate::lint::{Finding, Rule, Subject};
use crate::model::known_arguments::{KnownArgument, KnownExchangeArgument};
use crate::model::{ApplyTo, ArgumentValue, BrokerVersion, ObjectId, PolicyName, Queue, QueueName};
use crate::rabbitmq::no_effect::no_effect_in_policy;
use crate::rabbitmq::policy_keys::{PolicyKey, Scope};
use crate::rabbitmq::{ActivePolicies, NoEffect};
use crate::spec::Severity;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "no-effect-setting",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the broker accepts the setting but ignores it",
    check,
    page: include_str!("no_effect_setting.md"),
};

/// The reason why a setting has no effect, and a hint.
type Reason = (String, String);

const REMOVE: &str =
    "remove the setting, unless an existing queue has it as an argument: removing an argument causes a conflict";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let topology = &subject.expansion.topology;
    let mut findings = Vec::new();
    for (name, queue) in &topology.queues {
        let id = ObjectId::Queue(name.clone());
        for (argument, (text, hint)) in ineffective_arguments(subject, name, queue) {
            findings.push(RULE.finding(subject, &id, argument, text).hint(hint));
        }
    }
    for (name, exchange) in &topology.exchanges {
        let id = ObjectId::Exchange(name.clone());
        for known in exchange.arguments.keys().filter_map(|name| KnownExchangeArgument::named(name)) {
            if !known.is_read_by(&exchange.kind) {
                let text = format!("exchanges of type {} do not read `{}`", exchange.kind, known.name);
                let hint = format!("remove it: only exchanges of type {} read it", known.exchange_types.join(", "));
                findings.push(RULE.finding(subject, &id, known.name, text).hint(hint));
            }
        }
    }
    for (id, policy) in subject.policies() {
        for (key, it) in &policy.definition {
            let without_effect = || {
                let why = no_effect_in_policy(key, &it.value, subject.profile.version)?;
                explain_policy_key(key, why, subject.profile.version)
            };
            if let Some((text, hint)) = explain_wrong_scope(key, policy.apply_to.value).or_else(without_effect) {
                findings.push(RULE.finding(subject, &id, key, text).hint(hint));
            }
        }
    }
    findings.extend(ineffective_policy_keys(subject));
    findings
}

/// Returns the queue's arguments that have no effect, each with the reason.
fn ineffective_arguments<'a>(subject: &Subject<'_>, name: &QueueName, queue: &'a Queue) -> Vec<(&'a str, Reason)> {
    let refusals = subject.refusals_of(name);
    let is_refused = |argument: &str| refusals.iter().any(|refusal| refusal.subject == argument);
    if is_refused("x-queue-type") {
        // The broker refuses the queue, so it reads none of the other arguments.
        return Vec::new();
    }
    // The effective settings for each policy that may govern the queue.
    let possible = ActivePolicies::of(subject.routing().policies(), subject.profile).possible(name, queue);
    let reason = |argument: &str, value: &ArgumentValue| {
        let known = KnownArgument::named(argument)?;
        let each: Option<Vec<NoEffect>> =
            possible.iter().map(|(_, settings)| settings.no_effect(known, value)).collect();
        explain_argument(known, each?.into_iter().next()?, subject.profile.version)
    };
    let accepted = queue.arguments.iter().filter(|(argument, _)| !is_refused(argument));
    accepted.filter_map(|(argument, value)| Some((argument.as_str(), reason(argument, value)?))).collect()
}

/// Explains why an argument has no effect, and how to fix it. Returns `None` for lazy mode and for at-least-once
/// dead-lettering without `reject-publish`, which have separate rules.
fn explain_argument(known: &KnownArgument, why: NoEffect, version: BrokerVersion) -> Option<Reason> {
    let (name, key) = (known.name, known.key);
    Some(match why {
        NoEffect::Since(_) if name == "x-queue-mode" => return None,
        NoEffect::WithoutRejectPublish => return None,
        NoEffect::Type(kind) => (
            format!("{kind} queues do not read `{name}`: RabbitMQ {version} stores but ignores it"),
            format!("remove `{key}`"),
        ),
        NoEffect::NotYet(kind, since) => {
            let since = since.series();
            let text = format!(
                "{kind} queues read `{name}` only on RabbitMQ {since} and later: {version} stores but ignores it"
            );
            (text, format!("remove `{key}` until the broker runs RabbitMQ {since} or later"))
        }
        NoEffect::Since(since) => (
            format!("`{name}` has had no effect since RabbitMQ {} (the broker runs {version})", since.series()),
            REMOVE.to_owned(),
        ),
        NoEffect::NoLonger => (format!("RabbitMQ {version} no longer reads `{name}`"), REMOVE.to_owned()),
        NoEffect::RemovedQueueVersion => {
            let text = format!(
                "RabbitMQ 4.0 removed version 1 of classic queues (the broker runs {version}): the queue uses version 2"
            );
            (text, REMOVE.to_owned())
        }
        NoEffect::DropsOldest => (
            "quorum queues do not support `reject-publish-dlx` and drop the oldest message instead".to_owned(),
            "use `overflow: reject-publish`, or `drop-head` to make this explicit".to_owned(),
        ),
        NoEffect::WithoutDelayedRetryType => (
            format!("`{name}` has no effect without `delayedRetryType`"),
            "add a type: `delayedRetryType: failed`".to_owned(),
        ),
        NoEffect::WithoutDeadLetterExchange => (
            "`deadLetterStrategy` has no effect, because the queue has no dead-letter exchange".to_owned(),
            "add a dead-letter target: `deadLetter: …`".to_owned(),
        ),
    })
}

/// Explains why a policy key has no effect, and how to fix it. Returns `None` if the key is unknown, or if
/// [`explain_argument`] returns `None`.
fn explain_policy_key(key: &str, why: NoEffect, version: BrokerVersion) -> Option<Reason> {
    let known = KnownArgument::of_policy_key(key)?;
    let (text, hint) = explain_argument(known, why, version)?;
    match why {
        NoEffect::Since(_) => Some((text.replace(known.name, key), "remove it from the policy".to_owned())),
        NoEffect::WithoutDelayedRetryType => Some((text.replace(known.name, key), hint)),
        NoEffect::Type(_)
        | NoEffect::NotYet(..)
        | NoEffect::NoLonger
        | NoEffect::RemovedQueueVersion
        | NoEffect::DropsOldest
        | NoEffect::WithoutDeadLetterExchange
        | NoEffect::WithoutRejectPublish => Some((text, hint)),
    }
}

/// Reports policy keys that have no effect on any queue that the policy governs.
fn ineffective_policy_keys(subject: &Subject<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<(&PolicyName, &str), Option<(&EffectiveQueue<'_>, NoEffect)>> = BTreeMap::new();
    for queue in subject.effective_queues() {
        for (policy, key, effective) in queue.settings_from_policies() {
            let known = KnownArgument::of_policy_key(key);
            let why = known.and_then(|known| queue.settings.no_effect(known, &effective.value));
            let is_reported = no_effect_in_policy(key, &effective.value, subject.profile.version).is_some();
            let why = why.filter(|_| !is_reported).map(|why| (queue, why));
            let first = found.entry((policy, key)).or_insert(why);
            if why.is_none() {
                *first = None;
            }
        }
    }
    let findings = found.into_iter().filter_map(|((policy, key), first)| {
        let (queue, why) = first.filter(|_| subject.spec.policies.contains_key(policy))?;
        let (text, hint) = explain_policy_key(key, why, subject.profile.version)?;
        Some(RULE.effective_finding(subject, queue, key, text).hint(hint))
    });
    findings.collect()
}

/// Explains that a queue key has no effect in a policy for exchanges, or an exchange key in a policy for queues; `None`
/// for other keys.
fn explain_wrong_scope(key: &str, apply_to: ApplyTo) -> Option<Reason> {
    let known = PolicyKey::named(key)?;
    let (not_read_by, read_by) = match apply_to {
        ApplyTo::All => return None,
        ApplyTo::Exchanges if known.is_read_by_queues() => ("exchanges", "queues"),
        ApplyTo::Queues | ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams
            if known.scope == Scope::Exchanges =>
        {
            ("queues", "exchanges")
        }
        ApplyTo::Exchanges | ApplyTo::Queues | ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams => {
            return None;
        }
    };
    let text = format!("{not_read_by} do not read `{key}`, and the policy applies only to {not_read_by}");
    Some((text, format!("move it to a policy with `applyTo: {read_by}`")))
}
