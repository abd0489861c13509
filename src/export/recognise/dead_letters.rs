//! Dead-letter queues: an exchange that dead letters are sent to, and the queue behind it, that nothing comes back from.

use super::{GivenUp, Recognised, dead_lettering};
use crate::export::Live;
use crate::model::{
    Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName, QueueType, Topology,
};
use std::collections::{BTreeMap, BTreeSet};

/// The exchange of a dead-letter queue, and how it leads there.
#[derive(Clone, Debug)]
pub(in crate::export) struct DeadLetterQueue {
    /// The name of the exchange.
    pub(in crate::export) exchange: ExchangeName,
    /// Its type.
    pub(in crate::export) kind: String,
    /// Whether it is internal.
    pub(in crate::export) internal: bool,
    /// The key of the binding, where it is not the one that such an exchange is bound with anyway.
    pub(in crate::export) routing_key: Option<String>,
    /// Whether the queue has the delivery limit that a dead-letter queue gets anyway.
    pub(in crate::export) has_own_limit: bool,
}

impl DeadLetterQueue {
    /// The key that dead letters get which are sent to this queue; their own without it.
    pub(in crate::export) fn key_of_letters(&self, name: &QueueName) -> Option<String> {
        let by_type = || (self.kind == "direct").then(|| usual_key(&self.kind, name));
        self.routing_key.clone().or_else(by_type)
    }
}

/// Adds every exchange that dead letters are sent to, with the one queue behind it.
pub(super) fn find(recognised: &mut Recognised, live: &Live<'_>, kept: &Topology, given_up: &GivenUp) {
    let mut leading: BTreeMap<&ExchangeName, Vec<&Binding>> = BTreeMap::new();
    for binding in &kept.bindings {
        leading.entry(&binding.source).or_default().push(binding);
    }
    for exchange_name in sinks(recognised, live.topology) {
        let id = ObjectId::Exchange(exchange_name.clone());
        let Some(exchange) = kept.exchanges.get(&exchange_name).filter(|_| !recognised.made.contains_key(&id)) else { continue };
        if !can_be_generated(exchange) {
            continue;
        }
        let to_queues: Vec<(&QueueName, &Binding)> = leading
            .get(&exchange_name)
            .into_iter()
            .flatten()
            .filter(|binding| binding.arguments.is_empty() && !recognised.made.contains_key(&ObjectId::Binding((**binding).clone())))
            .filter_map(|binding| match &binding.destination {
                Destination::Queue(name) => Some((name, *binding)),
                Destination::Exchange(_) => None,
            })
            .collect();
        // With one behind it, it is that one's; with several, only a name can tell.
        let is_its_own = |(name, _): &&(&QueueName, &Binding)| {
            crate::model::naming::dead_letter_exchange(name) == exchange_name || name.as_str() == exchange_name.as_str()
        };
        let chosen = match &to_queues[..] {
            [only] => Some(only),
            several => several.iter().find(is_its_own),
        };
        let Some((name, binding)) = chosen else { continue };
        let Some(queue) = kept.queues.get(*name) else { continue };
        let is_taken = recognised.dead_letter_queues.contains_key(*name)
            || given_up.dead_letter_queues.contains(*name)
            || recognised.tiered.contains_key(*name)
            || recognised.made.contains_key(&ObjectId::Queue((*name).clone()));
        if is_taken || hands_back(queue) {
            continue;
        }
        let Some(has_own_limit) = own_limit(queue, live) else { continue };
        let is_usual = binding.routing_key == usual_key(&exchange.kind, name);
        let found = DeadLetterQueue {
            exchange: exchange_name.clone(),
            kind: exchange.kind.clone(),
            internal: exchange.internal,
            routing_key: (!is_usual).then(|| binding.routing_key.clone()),
            has_own_limit,
        };
        recognised.made.insert(id, (*name).clone());
        recognised.made.insert(ObjectId::Binding((*binding).clone()), (*name).clone());
        recognised.dead_letter_queues.insert((*name).clone(), found);
    }
}

/// Where dead letters go: of queues, of policies, and at the end of retries.
fn sinks(recognised: &Recognised, live: &Topology) -> BTreeSet<ExchangeName> {
    let of_queues = live.queues.iter().filter(|(_, queue)| !hands_back(queue));
    let by_queues = of_queues.filter_map(|(_, queue)| dead_lettering(&queue.arguments, "x-"));
    let by_policies = live.policies.values().filter_map(|policy| dead_lettering(&policy.definition, ""));
    let ends = recognised.tiered.values().filter_map(|tiered| tiered.end.clone());
    by_queues.chain(by_policies).chain(ends).map(|it| it.exchange).filter(|it| !it.is_predeclared()).collect()
}

/// Whether messages wait there and go on by themselves: no place where dead letters stay.
pub(super) fn hands_back(queue: &Queue) -> bool {
    queue.arguments.contains_key("x-message-ttl") && queue.arguments.contains_key("x-dead-letter-exchange")
}

/// Whether the expansion makes such an exchange for a dead-letter queue.
fn can_be_generated(exchange: &Exchange) -> bool {
    let kinds = ["fanout", "topic", "direct", "headers"];
    exchange.durable && !exchange.auto_delete && exchange.arguments == Arguments::new() && kinds.contains(&exchange.kind.as_str())
}

/// The key that binds a dead-letter queue to an exchange of that type, where none is said.
fn usual_key(kind: &str, name: &QueueName) -> String {
    match kind {
        "topic" => "#".to_owned(),
        "direct" => name.as_str().to_owned(),
        _ => String::new(),
    }
}

/// Whether it has the limit of dead-letter queues; `None` where it would get that and has none.
fn own_limit(queue: &Queue, live: &Live<'_>) -> Option<bool> {
    let would_get = queue.queue_type() == Some(QueueType::Quorum) && live.dialect.version.is_at_least(4, 0);
    match queue.arguments.get("x-delivery-limit") {
        Some(limit) => Some(would_get && limit.as_integer() == Some(-1)),
        None => (!would_get).then_some(false),
    }
}
