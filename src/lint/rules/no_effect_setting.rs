//! Settings that a broker takes and then does nothing with.

use crate::lint::{Finding, Rule, Subject};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, KnownExchangeArgument};
use crate::model::{ApplyTo, ArgumentValue, BrokerVersion, ObjectId, Queue, QueueName, QueueType};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "no-effect-setting",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "the broker accepts the setting but ignores it",
    check,
    page: include_str!("no_effect_setting.md"),
};

/// Why it does nothing, and what to do about it.
type Reason = (String, String);

const OUT: &str = "remove it; keep it on an existing queue that has it as an argument";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let topology = &subject.expansion.topology;
    let mut findings = Vec::new();
    for (name, queue) in &topology.queues {
        let id = ObjectId::Queue(name.clone());
        for (argument, (text, hint)) in of_queue(subject, name, queue) {
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
            let nobody_reads = || of_key(key, &it.value, subject.profile.version);
            if let Some((text, hint)) = of_others(key, policy.apply_to.value).or_else(nobody_reads) {
                findings.push(RULE.finding(subject, &id, key, text).hint(hint));
            }
        }
    }
    findings
}

fn of_queue<'a>(subject: &Subject<'_>, name: &QueueName, queue: &'a Queue) -> Vec<(&'a str, Reason)> {
    let Some(kind) = queue.queue_type() else { return Vec::new() };
    let refused = subject.refusals_of(name);
    let is_refused = |argument: &str| refused.iter().any(|refusal| refusal.subject == argument);
    if is_refused("x-queue-type") {
        // There is no queue that could read anything.
        return Vec::new();
    }
    let taken = queue.arguments.iter().filter(|(argument, _)| !is_refused(argument));
    taken
        .filter_map(|(argument, value)| Some((argument.as_str(), of_argument(subject, kind, argument, value, queue)?)))
        .collect()
}

fn of_argument(
    subject: &Subject<'_>,
    kind: QueueType,
    argument: &str,
    value: &ArgumentValue,
    queue: &Queue,
) -> Option<Reason> {
    let version = subject.profile.version;
    let known = KnownArgument::named(argument)?;
    match argument {
        // A rule of its own.
        "x-queue-mode" => None,
        "x-queue-version" if version.is_at_least(4, 0) => of_key("queue-version", value, version),
        _ if known.is_idle(kind, version) => Some(idle(known, kind, version)),
        // `rabbit_quorum_queue:overflow/3` warns in its log, and drops from the head (3.8 to 4.3).
        "x-overflow" if kind == QueueType::Quorum && value.as_text() == Some("reject-publish-dlx") => Some((
            "quorum queues do not support `reject-publish-dlx` and silently drop the oldest message instead".to_owned(),
            "use `overflow: reject-publish`, or `drop-head` to make this explicit".to_owned(),
        )),
        // `disabled` is the type that holds when none is said.
        "x-delayed-retry-min" | "x-delayed-retry-max" if !has(subject, queue, "delayed-retry-type") => Some((
            format!("`{argument}` has no effect without `delayedRetryType`"),
            "add a type: `delayedRetryType: failed`".to_owned(),
        )),
        // `rabbit_quorum_queue:dlh/5` says so in the broker's log.
        "x-dead-letter-strategy" if !has(subject, queue, "dead-letter-exchange") => Some((
            "the strategy has no effect: the queue has no dead-letter exchange".to_owned(),
            "add a dead-letter target: `deadLetter: …`".to_owned(),
        )),
        _ => None,
    }
}

/// Of an argument that the version keeps and does not look at.
fn idle(known: &KnownArgument, kind: QueueType, version: BrokerVersion) -> Reason {
    let (name, key) = (known.name, known.key);
    let Some(support) = known.support_for(kind) else {
        let text = format!("{kind} queues do not read `{name}`: RabbitMQ {version} stores it and ignores it");
        return (text, format!("remove `{key}`"));
    };
    match support.no_effect_since.filter(|since| version >= *since) {
        Some(since) => (
            format!("`{name}` has no effect since RabbitMQ {}, the broker is {version}", since.series()),
            OUT.to_owned(),
        ),
        None if version < support.taken.since => {
            let since = support.taken.since.series();
            let text =
                format!("{kind} queues read `{name}` since RabbitMQ {since}: {version} stores it and ignores it");
            (text, format!("remove `{key}` until the broker is {since}"))
        }
        None => (format!("RabbitMQ {version} no longer reads `{name}`"), OUT.to_owned()),
    }
}

/// Of a policy's key that is for queues, in a policy for exchanges, or the other way around.
fn of_others(key: &str, apply_to: ApplyTo) -> Option<Reason> {
    let is_of_queues = || key.starts_with("ha-") || KNOWN_ARGUMENTS.iter().any(|known| known.policy_key == Some(key));
    let (not_read_by, read_by) = match apply_to {
        ApplyTo::All => return None,
        ApplyTo::Exchanges if is_of_queues() => ("exchanges", "queues"),
        ApplyTo::Queues | ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams
            if key == "alternate-exchange" =>
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

/// Of a policy's key, which may be for several types of queues.
fn of_key(key: &str, value: &ArgumentValue, version: BrokerVersion) -> Option<Reason> {
    match key {
        // `rabbit_variable_queue:set_queue_version/2`: "Queue version now ignored; only v2 is available".
        "queue-version" if version.is_at_least(4, 0) => (value.as_integer() == Some(1)).then(|| {
            let text = format!(
                "RabbitMQ 4.0 removed version 1 of classic queues, the broker is {version}: the queue uses version 2"
            );
            (text, OUT.to_owned())
        }),
        // Lazy mode has a rule of its own.
        "queue-mode" => None,
        _ => {
            let of_key = KNOWN_ARGUMENTS.iter().filter(|known| known.policy_key == Some(key));
            // Of all types that ever read it, as a policy may be for any of them.
            let gone = |known: &&KnownArgument| {
                known.support.iter().all(|it| it.no_effect_since.is_some_and(|since| version >= since))
            };
            let known = of_key.filter(gone).find(|known| !known.support.is_empty())?;
            let since = known.support.iter().filter_map(|it| it.no_effect_since).max()?;
            Some((
                format!("`{key}` has no effect since RabbitMQ {}, the broker is {version}", since.series()),
                "remove it from the policy".to_owned(),
            ))
        }
    }
}

/// Whether the queue sets that, or any policy, which may be the one that governs it.
fn has(subject: &Subject<'_>, queue: &Queue, key: &str) -> bool {
    queue.arguments.contains_key(&format!("x-{key}"))
        || subject.expansion.topology.policies.values().any(|policy| policy.definition.contains_key(key))
}
