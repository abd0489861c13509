//! Reports arguments of queues and exchanges, and policy keys, that no broker supports. Usually, these names are typos.
//! The broker stores such an argument and ignores it, but refuses a policy with such a key.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::model::known_arguments::{EXCHANGE_ARGUMENTS, KNOWN_ARGUMENTS, KnownArgument};
use crate::model::names::OWN_ARGUMENT_PREFIX;
use crate::rabbitmq::policy_keys;
use crate::spec::{Severity, closest};

pub(super) static RULE: Rule = Rule {
    name: "unknown-argument",
    severity: Severity::Warning,
    other_severities: &[Severity::Error],
    is_optional: false,
    summary: "no broker supports the argument or the policy key",
    check,
    page: include_str!("unknown_argument.md"),
};

/// The queue arguments that plugins use: rabbitmq-message-deduplication reads them, or federation sets them.
const PLUGIN_QUEUE_ARGUMENTS: &[&str] =
    &["x-message-deduplication", "x-cache-size", "x-cache-ttl", "x-cache-persistence", "x-internal-purpose"];

/// The exchange arguments that plugins use, in addition to [`EXCHANGE_ARGUMENTS`].
const PLUGIN_EXCHANGE_ARGUMENTS: &[&str] = &[
    "x-cache-size",
    "x-cache-ttl",
    "x-cache-persistence",
    "x-internal-purpose",
    "x-downstream-name",
    "x-downstream-vhost",
];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let of_queues = KNOWN_ARGUMENTS.iter().map(|known| known.name).chain(PLUGIN_QUEUE_ARGUMENTS.iter().copied());
    let of_queues: Vec<&str> = of_queues.collect();
    let of_exchanges = EXCHANGE_ARGUMENTS.iter().map(|known| known.name);
    let of_exchanges: Vec<&str> = of_exchanges.chain(PLUGIN_EXCHANGE_ARGUMENTS.iter().copied()).collect();
    for (id, queue) in subject.queues() {
        for name in queue.arguments.keys() {
            findings.extend(check_argument(subject, &id, name, &of_queues, true));
        }
    }
    for (name, exchange) in &subject.spec.exchanges {
        let id = ObjectId::Exchange(name.clone());
        for name in exchange.arguments.keys() {
            findings.extend(check_argument(subject, &id, name, &of_exchanges, false));
        }
    }
    for (id, policy) in subject.policies() {
        for key in policy.definition.keys() {
            findings.extend(check_policy_key(subject, &id, key));
        }
    }
    findings
}

/// Reports an unknown argument. A name without `x-` is a user-defined argument, unless it resembles a known argument.
fn check_argument(
    subject: &Subject<'_>,
    object: &ObjectId,
    name: &str,
    known: &[&'static str],
    is_queue: bool,
) -> Option<Finding> {
    if known.contains(&name) || name.starts_with(OWN_ARGUMENT_PREFIX) {
        return None;
    }
    let by_key = || {
        let keys = KNOWN_ARGUMENTS.iter().filter(|_| is_queue).map(|known| known.key);
        let key = closest(name, keys)?;
        KNOWN_ARGUMENTS.iter().find(|known| known.key == key).map(|known| known.name)
    };
    let near = closest(name, known.iter().copied())
        .or_else(|| closest(&format!("x-{name}"), known.iter().copied()))
        .or_else(by_key);
    if near.is_none() && !name.starts_with("x-") {
        return None;
    }
    let text = format!("no broker supports the argument `{name}`: it is stored and has no effect");
    let hint = match (near, near.and_then(KnownArgument::named)) {
        (_, Some(known)) => format!("did you mean `{}`? In a spec, write `{}`", known.name, known.key),
        (Some("alternate-exchange"), None) => {
            "did you mean `alternate-exchange`? In a spec, write `alternateExchange`".to_owned()
        }
        (Some(near), None) => format!("did you mean `{near}`?"),
        (None, None) if name == "x-ha-policy" => {
            "use `type: quorum`; mirroring was an argument before RabbitMQ 3.0".to_owned()
        }
        (None, None) => "remove it, or use a name without `x-` for your own argument".to_owned(),
    };
    Some(RULE.finding(subject, object, name, text).hint(hint))
}

/// Reports an unknown policy key.
fn check_policy_key(subject: &Subject<'_>, object: &ObjectId, key: &str) -> Option<Finding> {
    if policy_keys().any(|known| known == key) {
        return None;
    }
    let text =
        format!("no broker supports the policy key `{key}`: the policy is refused unless a plugin registers the key");
    let finding = RULE.finding(subject, object, key, text).severity(Severity::Error);
    Some(match closest(key, policy_keys()) {
        Some(near) => finding.hint(format!("did you mean `{near}`?")),
        None => finding.hint("remove it, or enable the plugin"),
    })
}
