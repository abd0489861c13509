//! Reports queues without bindings, unless most queues in the spec have none. If a binding was forgotten, no messages
//! reach the queue.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Destination, ObjectId, QueueName, QueueType};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unbound-queue",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "the queue has no bindings, although other queues do",
    check,
    page: include_str!("unbound_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let bindings = spec.bindings.keys().chain(subject.unmanaged_bindings());
    let bound: BTreeSet<&QueueName> = bindings.filter_map(|it| queue_name(&it.destination)).collect();
    let targets = dead_letter_targets_by_name(subject);
    let is_forgotten = |name: &&QueueName| {
        let queue = subject.expansion.topology.queues.get(*name);
        // Stream clients usually publish to a stream by its name.
        let is_stream = queue.and_then(|queue| queue.queue_type()) == Some(QueueType::Stream);
        queue.is_some() && !is_stream && !bound.contains(*name) && !targets.contains(*name)
    };
    let finding = |name: &QueueName| {
        let text = "it has no bindings: it receives only messages that are published to the default exchange with its name \
                    as the routing key";
        let finding = RULE.finding(subject, &ObjectId::Queue(name.clone()), "name", text);
        finding.hint("bind it, unless publishers use its name: `bindings: [{exchange: …, routingKey: …}]`")
    };
    let forgotten: Vec<&QueueName> = spec.queues.keys().filter(is_forgotten).collect();
    // If most queues have no bindings, publishers probably use the names of the queues.
    if forgotten.len() > bound.len() {
        return Vec::new();
    }
    forgotten.into_iter().map(finding).collect()
}

fn queue_name(destination: &Destination) -> Option<&QueueName> {
    match destination {
        Destination::Queue(name) => Some(name),
        Destination::Exchange(_) => None,
    }
}

/// Returns the queues to which other queues dead-letter messages through the default exchange.
fn dead_letter_targets_by_name(subject: &Subject<'_>) -> BTreeSet<QueueName> {
    let routing = subject.routing();
    let targets = routing.topology().queues.keys().flat_map(|name| routing.dead_lettering(name)).flatten();
    targets
        .filter(|to| to.exchange.as_str().is_empty())
        .filter_map(|to| to.routing_key.as_deref())
        .map(QueueName::new)
        .collect()
}
