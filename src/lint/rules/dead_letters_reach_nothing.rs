//! Reports dead-lettered messages that the dead-letter exchange does not route to any queue. The broker drops such
//! messages or, with at-least-once dead-lettering, keeps them in their queue. The rule simulates the routing for every
//! routing key that messages in the queue can have, and does not report uncertain routes. The keys in the CC and BCC
//! headers that publishers set are unknown. If such a key could invalidate a finding, the finding has severity info.

use crate::lint::effective::EffectiveQueue;
use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::routing::{DeadLettering, Keys};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dead-letters-reach-nothing",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the dead-letter exchange does not route to any queue",
    check,
    page: include_str!("dead_letters_reach_nothing.md"),
};

/// The maximum number of routing keys that a finding's message lists.
const MAX_KEYS: usize = 3;

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut findings = Vec::new();
    for queue in subject.effective_queues() {
        let [Some(to)] = routing.dead_lettering(queue.name) else { continue };
        if queue.retry_owner.is_some() {
            continue;
        }
        let keys = subject.dead_lettered_keys(queue.name, to);
        // A filter on the death reason is intentional, so a key is lost only if messages with the key reach no queue,
        // whatever the death reason.
        let lost = routing.fate_with(queue.name, |_, _| keys.clone()).lost;
        if !lost.is_empty() {
            let is_all = lost.len() == keys.len();
            findings.push(finding(subject, queue, to, &lost.iter().collect::<Vec<_>>(), is_all));
        }
    }
    findings
}

/// Returns the finding about a generated retry exchange; `None` for other exchanges. The hint names the exchange that
/// receives messages after the last retry, because a queue that is bound to the generated exchange would receive
/// messages that must be retried.
fn retry_finding(
    subject: &Subject<'_>,
    queue: &EffectiveQueue<'_>,
    to: &DeadLettering,
    lost: &[&Keys],
) -> Option<Finding> {
    let of = subject.retry_owner(&ObjectId::Exchange(to.exchange.clone()))?;
    let end = &subject.expansion.retries.get(of)?.final_target()?.exchange;
    let text = format!(
        "messages with no retries left reach exchange `{end}`, which has no route to a queue for {} {}: {}",
        if lost.len() == 1 { "the key" } else { "the keys" },
        join_keys(lost),
        fate(queue)
    );
    let hint = format!("bind a queue to `{end}` for all keys; or use an entry in `deadLetterQueues`");
    Some(RULE.effective_finding(subject, queue, "dead-letter-exchange", text).hint(hint))
}

/// Describes the fate of dead-lettered messages that reach no queue.
fn fate(queue: &EffectiveQueue<'_>) -> &'static str {
    if queue.settings.is_at_least_once() {
        "they stay in the queue and are never delivered again"
    } else {
        "the broker drops them"
    }
}

fn finding(
    subject: &Subject<'_>,
    queue: &EffectiveQueue<'_>,
    to: &DeadLettering,
    lost: &[&Keys],
    is_all: bool,
) -> Finding {
    if let Some(finding) = retry_finding(subject, queue, to, lost) {
        return finding;
    }
    let exchange = match to.exchange.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange `{name}`"),
    };
    let fate = fate(queue);
    let which = match &to.routing_key {
        Some(key) => format!("dead-lettered messages have the key {key:?}, for which"),
        None if is_all && lost == [&Keys::any()] => "dead-lettered messages keep their own keys, for which".to_owned(),
        None => format!(
            "dead-lettered messages keep their own {} {}, for which",
            if lost.len() == 1 { "key" } else { "keys" },
            join_keys(lost)
        ),
    };
    let (severity, but) = match subject.routing().can_route_by_cc(queue.name, to.routing_key.as_deref()) {
        true => (
            Severity::Info,
            ", unless publishers set the `CC` or `BCC` header, which the broker also uses to route dead-lettered messages",
        ),
        false => (Severity::Warning, ""),
    };
    let text = format!("{which} {exchange} has no route to a queue: {fate}{but}");
    let kind = subject.expansion.topology.exchanges.get(&to.exchange).map(|it| it.kind.as_str());
    let is_wildcard = |key: &str| key.split('.').any(|word| word == "#" || word == "*");
    let bindings = &subject.expansion.topology.bindings;
    let has_wildcard = bindings.iter().any(|it| it.source == to.exchange && is_wildcard(&it.routing_key));
    let hint = match (kind, to.exchange.as_str()) {
        (Some("direct"), _) if has_wildcard => {
            "use a fanout or topic exchange: `#` and `*` are literal in a direct exchange".to_owned()
        }
        (_, "") => {
            "set `routingKey` to the name of a queue, because the default exchange routes by queue name; or use an \
             entry in `deadLetterQueues`"
                .to_owned()
        }
        _ => "bind a queue to the exchange for these keys; or use an entry in `deadLetterQueues`; or set \
              `deadLetter: none` if losing the messages is acceptable"
            .to_owned(),
    };
    RULE.effective_finding(subject, queue, "dead-letter-exchange", text).severity(severity).hint(hint)
}

/// Joins keys into a list such as ``"a", "b", `c.#` (pattern) and 2 more``.
fn join_keys(lost: &[&Keys]) -> String {
    let listed: Vec<String> = lost.iter().take(MAX_KEYS).map(|keys| format_keys(keys)).collect();
    let more = if lost.len() > MAX_KEYS { format!(" and {} more", lost.len() - MAX_KEYS) } else { String::new() };
    format!("{}{more}", listed.join(", "))
}

fn format_keys(keys: &Keys) -> String {
    match keys {
        Keys::One(key) => format!("{key:?}"),
        Keys::Like(pattern) => format!("`{pattern}` (pattern)"),
    }
}
