//! Settings that a broker takes and then does nothing with.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, Arguments, QueueType};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "no-effect-setting",
    severity: Severity::Warning,
    summary: "the broker takes the setting and does nothing with it",
    check,
    page: include_str!("no_effect_setting.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, queue) in subject.queues() {
        let Some(queue_type) = queue.queue_type() else { continue };
        for (argument, value) in &queue.arguments {
            let Some(key) = argument.strip_prefix("x-") else { continue };
            if let Some((text, hint)) = without_effect(subject, Some(queue_type), key, value, &queue.arguments, "x-") {
                findings.push(RULE.finding(subject, &id, argument, text).hint(hint));
            }
        }
    }
    for (id, policy) in subject.policies() {
        let definition: Arguments = policy.definition.iter().map(|(key, it)| (key.clone(), it.value.clone())).collect();
        for (key, value) in &definition {
            if let Some((text, hint)) = without_effect(subject, None, key, value, &definition, "") {
                findings.push(RULE.finding(subject, &id, key, text).hint(hint));
            }
        }
    }
    findings
}

/// Why a setting does nothing, and what to do about it; by its key in policies. Without a type it is a policy's, which may
/// be for several types.
fn without_effect(
    subject: &Subject<'_>,
    queue_type: Option<QueueType>,
    key: &str,
    value: &ArgumentValue,
    beside: &Arguments,
    prefix: &str,
) -> Option<(String, String)> {
    let version = subject.dialect.version;
    let out = || "take it out; on a live queue that has it as an argument, keep it".to_owned();
    match key {
        // The queue keeps no message bodies in memory any more (`rabbit_quorum_queue:capabilities/0`: "not used").
        "max-in-memory-length" | "max-in-memory-bytes" if subject.is_at_least(3, 10) => {
            Some((format!("`{key}` has no effect since RabbitMQ 3.10, this is {version}"), out()))
        }
        // `rabbit_variable_queue:set_queue_version/2`: "Queue version now ignored; only v2 is available".
        "queue-version" if subject.is_at_least(4, 0) && value.as_integer() == Some(1) => Some((
            format!("version 1 of classic queues is gone since RabbitMQ 4.0, this is {version}: it is version 2"),
            out(),
        )),
        // `rabbit_quorum_queue:overflow/3` warns in its log, and drops from the head.
        "overflow" if queue_type == Some(QueueType::Quorum) && value.as_text() == Some("reject-publish-dlx") => {
            let text = "quorum queues do not know `reject-publish-dlx`, and silently drop the oldest message instead";
            Some((text.to_owned(), "use `overflow: reject-publish`, or `drop-head` to say what happens".to_owned()))
        }
        // Only `disabled` without a type (`rabbit_quorum_queue:delayed_retry/…`).
        "delayed-retry-min" | "delayed-retry-max"
            if queue_type.is_some() && !has(subject, beside, prefix, "delayed-retry-type") =>
        {
            let text = format!("`{key}` has no effect without a type of delayed retry");
            Some((text, "say which messages wait: `delayedRetryType: failed`".to_owned()))
        }
        "dead-letter-strategy" if queue_type.is_some() && !has(subject, beside, prefix, "dead-letter-exchange") => {
            let text = "the strategy has no effect: the queue has no dead-letter exchange";
            Some((text.to_owned(), "say where its dead letters go: `deadLetter: …`".to_owned()))
        }
        _ => None,
    }
}

/// Whether the same table sets that, or any policy, which may be the one that governs the queue.
fn has(subject: &Subject<'_>, beside: &Arguments, prefix: &str, key: &str) -> bool {
    let in_policy = subject.expansion.topology.policies.values().any(|policy| policy.definition.contains_key(key));
    beside.contains_key(&format!("{prefix}{key}")) || in_policy
}
