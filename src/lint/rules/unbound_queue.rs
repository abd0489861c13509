//! Queues that nothing is bound to, in a spec that binds its queues: with a binding that was forgotten, messages never come.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Destination, ObjectId, QueueName, QueueType};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unbound-queue",
    severity: Severity::Info,
    sometimes: &[],
    is_optional: false,
    summary: "the queue has no bindings, although other queues have",
    check,
    page: include_str!("unbound_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let bindings = spec.bindings.keys().chain(subject.other_bindings());
    let bound: BTreeSet<&QueueName> = bindings.filter_map(|it| of_queue(&it.destination)).collect();
    let named = named_by_dead_letters(subject);
    let is_forgotten = |name: &&QueueName| {
        let queue = subject.expansion.topology.queues.get(*name);
        // Streams are mostly written by name, with a client of their own.
        let is_stream = queue.and_then(|queue| queue.queue_type()) == Some(QueueType::Stream);
        queue.is_some() && !is_stream && !bound.contains(*name) && !named.contains(*name)
    };
    let finding = |name: &QueueName| {
        let text = "it has no bindings: it only gets messages that are published to the default exchange with its name";
        let finding = RULE.finding(subject, &ObjectId::Queue(name.clone()), "name", text);
        finding.hint("bind it, unless publishers use its name: `bindings: [{exchange: …, routingKey: …}]`")
    };
    let forgotten: Vec<&QueueName> = spec.queues.keys().filter(is_forgotten).collect();
    // Who binds no queue, or few, publishes to queues by name.
    if forgotten.len() > bound.len() {
        return Vec::new();
    }
    forgotten.into_iter().map(finding).collect()
}

fn of_queue(destination: &Destination) -> Option<&QueueName> {
    match destination {
        Destination::Queue(name) => Some(name),
        Destination::Exchange(_) => None,
    }
}

/// The queues to which dead letters go by name.
fn named_by_dead_letters(subject: &Subject<'_>) -> BTreeSet<QueueName> {
    let routing = subject.routing();
    let ways = routing.topology().queues.keys().flat_map(|name| routing.dead_lettering(name)).flatten();
    ways.filter(|to| to.exchange.as_str().is_empty())
        .filter_map(|to| to.routing_key.as_deref())
        .map(QueueName::new)
        .collect()
}
