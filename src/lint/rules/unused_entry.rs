//! Reports entries in `deadLetterQueues` to which no queue dead-letters messages, and entries in `retryPolicies` that
//! no queue uses. Such an entry is usually a leftover, or part of an incomplete change.

use super::unreachable_exchange::route_targets;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{Destination, ObjectId, QueueName};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unused-entry",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "an entry in `deadLetterQueues` or `retryPolicies` is not used",
    check,
    page: include_str!("unused_entry.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    // If a spec has no queues of its own, the entries are probably for other specs or applications.
    if spec.queues.values().all(|queue| queue.is_external) {
        return Vec::new();
    }
    let used = reachable_dead_letter_queues(subject);
    let mut findings = Vec::new();
    for (name, it) in &spec.dead_letter_queues {
        if !it.queue.is_external && !used.contains(name.as_str()) {
            let text = "no queue dead-letters messages to it";
            let finding = RULE.finding(subject, &ObjectId::Queue(name.clone()), "name", text);
            findings.push(
                finding.hint(format!(
                    "use it with `deadLetter: {name}`, or remove it if no queue outside this spec uses it"
                )),
            );
        }
    }
    let used_policies: BTreeSet<&str> = spec.retry_uses.iter().map(|used| used.value.as_str()).collect();
    for (name, policy) in spec.retry_policies.iter().filter(|(name, _)| !used_policies.contains(name.as_str())) {
        let text = format!("retry policy `{name}` is not used by any queue");
        let finding = RULE.finding_at(ObjectId::Vhost, policy.at, text);
        let hint = format!("use it with `retry: {name}`, or remove it");
        findings.push(Finding { objects: Vec::new(), ..finding }.hint(hint));
    }
    findings
}

/// Returns the names of the dead-letter queues that messages can reach, by dead-lettering or publishing.
fn reachable_dead_letter_queues<'a>(subject: &Subject<'a>) -> BTreeSet<&'a str> {
    let (spec, topology) = (subject.spec, &subject.expansion.topology);
    let routing = subject.routing();
    let route_targets = route_targets(subject);
    // Publishers can reach every exchange that the spec declares.
    let is_source =
        |name: &str| route_targets.contains(name) || spec.exchanges.keys().any(|known| known.as_str() == name);
    let bound = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Queue(name) => Some((binding, name)),
        Destination::Exchange(_) => None,
    });
    let bound = bound.filter(|(_, name)| spec.dead_letter_queues.contains_key(*name));
    let mut used: BTreeSet<&str> =
        bound.filter(|(binding, _)| is_source(binding.source.as_str())).map(|(_, name)| name.as_str()).collect();
    for to in topology.queues.keys().flat_map(|name| routing.dead_lettering(name)).flatten() {
        let by_name = to.routing_key.as_deref().filter(|_| to.exchange.as_str().is_empty());
        let entry = by_name.and_then(|key| spec.dead_letter_queues.get_key_value(&QueueName::new(key)));
        used.extend(entry.map(|(name, _)| name.as_str()));
    }
    used
}
