//! Reports internal exchanges to which no exchange or queue routes messages. Publishers cannot use such an exchange, so
//! it receives no messages.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, Destination, ObjectId};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unreachable-exchange",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "the exchange is internal, and no other exchange or queue routes to it",
    check,
    page: include_str!("unreachable_exchange.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let route_targets = route_targets(subject);
    let mut findings = Vec::new();
    for (name, exchange) in &subject.spec.exchanges {
        if exchange.internal && !route_targets.contains(name.as_str()) {
            let text = "it is internal, and no exchange or queue routes to it: it never receives a message";
            let finding = RULE.finding(subject, &ObjectId::Exchange(name.clone()), "name", text);
            findings.push(finding.hint(
                "bind it to another exchange, use it as an alternate or dead-letter exchange, or remove `internal`",
            ));
        }
    }
    findings
}

/// Returns the names of the exchanges to which other exchanges and queues route messages: by bindings, as alternate
/// exchanges or by dead-lettering. Considers every policy, because a policy can apply to objects that clients declare.
pub(super) fn route_targets<'a>(subject: &Subject<'a>) -> BTreeSet<&'a str> {
    let topology = subject.routing().topology();
    let bound = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Exchange(name) => Some(name.as_str()),
        Destination::Queue(_) => None,
    });
    let text = |value: Option<&'a ArgumentValue>| value.and_then(ArgumentValue::as_text);
    let alternates = topology.exchanges.values().filter_map(|it| text(it.arguments.get("alternate-exchange")));
    let dead_letters = topology.queues.values().filter_map(|it| text(it.arguments.get("x-dead-letter-exchange")));
    let by_policies = topology.policies.values().flat_map(|policy| {
        ["alternate-exchange", "dead-letter-exchange"].into_iter().filter_map(|key| text(policy.definition.get(key)))
    });
    bound.chain(alternates).chain(dead_letters).chain(by_policies).collect()
}
