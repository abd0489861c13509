//! Recognizes dead-letter queues. A dead-letter queue is bound to a dead-letter exchange, and no message returns from
//! the queue.

use super::patterns::{DeadLetterQueue, GivenUp, Recognized, default_key};
use super::waits::has_waiting_name;
use crate::export::CurrentVhost;
use crate::export::choice::reason_for_queue;
use crate::model::naming::{dead_letter_exchange, queue_of_exhausted_exchange};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue,
    QueueName, QueueType, Topology,
};
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{Routing, dead_lettering, has_dead_letter_name};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A source of dead-lettered messages.
enum Sender {
    /// The retries of a queue, after the last attempt.
    Retries,
    /// A queue. If the queue has a TTL, its expired messages may be delayed work.
    Queue { name: QueueName, has_ttl: bool },
    /// The queues that a policy matches.
    Policy { pattern: String, has_ttl: bool },
}

impl Sender {
    /// Returns true if the sender dead-letters rejected messages to the queue, and does not delay messages for it.
    ///
    /// A retry queue can lack a TTL, because its publishers set a TTL for each message. Only the name distinguishes
    /// such a queue from a work queue.
    fn rejects_to(&self, queue: &QueueName) -> bool {
        match self {
            Self::Retries => true,
            Self::Queue { name, has_ttl } => {
                !has_ttl && !has_waiting_name(name.as_str()) && !is_named_after(name, queue)
            }
            Self::Policy { pattern, has_ttl } => !has_ttl && !has_waiting_name(pattern),
        }
    }
}

/// A dead-letter exchange.
#[derive(Default)]
struct DeadLetterExchange {
    /// The queues and policies that dead-letter to the exchange.
    senders: Vec<Sender>,
    /// The dead-letter routing keys.
    keys: BTreeSet<String>,
}

/// Detects work queues that receive dead-lettered messages.
struct WorkQueues<'a> {
    live: &'a CurrentVhost<'a>,
    /// The source exchanges of the bindings to each queue.
    sources: BTreeMap<&'a QueueName, BTreeSet<&'a ExchangeName>>,
    /// The routing of the vhost, computed on first use.
    routing: OnceCell<Routing<'a>>,
    operator_policies: BTreeMap<PolicyName, Policy>,
    none: BTreeSet<ObjectId>,
}

impl<'a> WorkQueues<'a> {
    fn new(live: &'a CurrentVhost<'a>, kept: &'a Topology) -> Self {
        let mut sources: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for binding in &kept.bindings {
            if let Destination::Queue(name) = &binding.destination {
                sources.entry(name).or_default().insert(&binding.source);
            }
        }
        let operator_policies = live.topology.operator_policies();
        Self { live, sources, routing: OnceCell::new(), operator_policies, none: BTreeSet::new() }
    }

    /// Returns true if the queue is bound to an exchange that is not a dead-letter exchange. Only the name can identify
    /// such a queue as a dead-letter queue.
    fn is_bound_elsewhere(
        &self,
        queue: &QueueName,
        dead_letter_exchanges: &BTreeMap<ExchangeName, DeadLetterExchange>,
    ) -> bool {
        self.sources.get(queue).into_iter().flatten().any(|source| !dead_letter_exchanges.contains_key(*source))
    }

    /// Returns true if a policy makes the queue dead-letter messages to a queue that dead-letters back to it. Such a
    /// pair is a manual retry. The caller excludes queues that dead-letter messages because of an argument.
    fn returns_messages(&'a self, queue: &QueueName, dlx: &DeadLetterExchange) -> bool {
        let policies = self.live.topology.policies.values();
        if policies.filter_map(|policy| dead_lettering(&policy.definition, "")).next().is_none() {
            return false;
        }
        let CurrentVhost { topology, profile, .. } = self.live;
        let routing = self.routing.get_or_init(|| Routing::new(topology, &self.operator_policies, &self.none, profile));
        let leads_to = |target: &DeadLettering, to: &QueueName| match target.exchange.as_str() {
            "" => target.routing_key.as_deref().is_none_or(|key| key == to.as_str()),
            _ => routing.bindings_to(&Destination::Queue(to.clone())).iter().any(|it| it.source == target.exchange),
        };
        routing.dead_lettering(queue).iter().flatten().any(|target| {
            dlx.senders.iter().any(|sender| match sender {
                Sender::Queue { name, .. } => leads_to(target, name),
                Sender::Retries | Sender::Policy { .. } => false,
            })
        })
    }
}

/// Returns true if the name of a queue consists of the name of a different queue and a suffix. For example, `orders.5s`
/// is named after `orders`.
fn is_named_after(name: &QueueName, other: &QueueName) -> bool {
    let rest = name.as_str().strip_prefix(other.as_str());
    rest.is_some_and(|rest| rest.starts_with(['.', '-', '_', ':', '/']))
}

/// Adds the recognized dead-letter queues. A dead-letter exchange must route to one queue, or distinguish several
/// queues by the routing keys of dead-lettered messages. Otherwise, only a queue whose name matches the exchange is
/// recognized.
pub(super) fn find(recognized: &mut Recognized, live: &CurrentVhost<'_>, kept: &Topology, given_up: &GivenUp) {
    let mut bindings_by_source: BTreeMap<&ExchangeName, Vec<&Binding>> = BTreeMap::new();
    for binding in &kept.bindings {
        bindings_by_source.entry(&binding.source).or_default().push(binding);
    }
    let (dead_letter_exchanges, shared, work) =
        (dead_letter_exchanges(recognized, live), shared_exchanges(kept), WorkQueues::new(live, kept));
    for (exchange_name, dlx) in &dead_letter_exchanges {
        let id = ObjectId::Exchange(exchange_name.clone());
        let Some(exchange) = kept.exchanges.get(exchange_name).filter(|_| !recognized.generated.contains_key(&id))
        else {
            continue;
        };
        if !can_be_generated(exchange) {
            continue;
        }
        let to_queues: Vec<(&QueueName, &Binding)> = bindings_by_source
            .get(exchange_name)
            .into_iter()
            .flatten()
            .filter(|binding| {
                binding.arguments.is_empty()
                    && !recognized.generated.contains_key(&ObjectId::Binding((**binding).clone()))
            })
            .filter_map(|binding| match &binding.destination {
                Destination::Queue(name) => Some((name, *binding)),
                Destination::Exchange(_) => None,
            })
            .collect();
        let candidates: Vec<_> = match &to_queues[..] {
            [only] => vec![only],
            several => {
                let distinguished = queues_with_distinct_keys(&exchange.kind, &dlx.keys, several);
                // Without distinguishing keys, only a name can identify the queue.
                let has_matching_name = |(name, _): &&(&QueueName, &Binding)| {
                    dead_letter_exchange(name) == *exchange_name || name.as_str() == exchange_name.as_str()
                };
                let by_name = || several.iter().find(has_matching_name).into_iter().collect();
                if distinguished.len() > 1 { distinguished } else { by_name() }
            }
        };
        for (name, binding) in candidates {
            let is_generated = dead_letter_exchange(name) == *exchange_name;
            if work.is_bound_elsewhere(name, &dead_letter_exchanges)
                && !is_generated
                && !has_dead_letter_name(name.as_str())
            {
                continue;
            }
            if !dlx.senders.iter().any(|sender| sender.rejects_to(name))
                && !has_dead_letter_name(exchange_name.as_str())
                && !has_dead_letter_name(name.as_str())
            {
                continue;
            }
            // An exchange that can also receive other messages stays a plain exchange, unless it has a generated name.
            if shared.contains(exchange_name) && !is_generated {
                continue;
            }
            let Some(queue) = kept.queues.get(*name) else { continue };
            let is_excluded = recognized.dead_letter_queues.contains_key(*name)
                || given_up.dead_letter_queues.contains(*name)
                || recognized.tiered.contains_key(*name)
                || recognized.generated.contains_key(&ObjectId::Queue((*name).clone()));
            if is_excluded || queue.arguments.contains_key("x-dead-letter-exchange") || work.returns_messages(name, dlx)
            {
                continue;
            }
            let Some(has_default_limit) = has_default_limit(queue, live) else { continue };
            let is_usual = binding.routing_key == default_key(&exchange.kind, name);
            let found = DeadLetterQueue {
                exchange: exchange_name.clone(),
                kind: exchange.kind.clone(),
                internal: exchange.internal,
                routing_key: (!is_usual).then(|| binding.routing_key.clone()),
                has_default_limit,
            };
            // If several queues share the exchange, the first queue owns the exchange, as in the expansion.
            recognized.generated.entry(id.clone()).or_insert_with(|| (*name).clone());
            recognized.generated.insert(ObjectId::Binding((*binding).clone()), (*name).clone());
            recognized.dead_letter_queues.insert((*name).clone(), found);
        }
    }
}

/// Returns the queues that a direct or topic exchange distinguishes by routing key. Such a queue has exactly one
/// binding. The key of the binding is a dead-letter routing key without wildcards that no other binding uses.
fn queues_with_distinct_keys<'a>(
    kind: &str,
    keys: &BTreeSet<String>,
    several: &'a [(&'a QueueName, &'a Binding)],
) -> Vec<&'a (&'a QueueName, &'a Binding)> {
    let (mut by_key, mut by_queue): (BTreeMap<&str, usize>, BTreeMap<&QueueName, usize>) = Default::default();
    for (name, binding) in several {
        *by_key.entry(&binding.routing_key).or_default() += 1;
        *by_queue.entry(name).or_default() += 1;
    }
    let is_distinct = |(name, binding): &&(&QueueName, &Binding)| {
        let key = binding.routing_key.as_str();
        keys.contains(key) && !key.contains(['*', '#']) && by_key.get(key) == Some(&1) && by_queue.get(name) == Some(&1)
    };
    if ["direct", "topic"].contains(&kind) { several.iter().filter(is_distinct).collect() } else { Vec::new() }
}

/// Returns the dead-letter exchanges of queues, policies and retries. Ignores temporary queues, so that the export does
/// not depend on their presence.
fn dead_letter_exchanges(
    recognized: &Recognized,
    live: &CurrentVhost<'_>,
) -> BTreeMap<ExchangeName, DeadLetterExchange> {
    let CurrentVhost { topology, .. } = live;
    let lasting = topology.queues.iter().filter(|(name, queue)| reason_for_queue(live, name, queue).is_none());
    let by_queues = lasting.filter_map(|(name, queue)| {
        let has_ttl = queue.arguments.contains_key("x-message-ttl");
        dead_lettering(&queue.arguments, "x-").map(|it| (it, Sender::Queue { name: name.clone(), has_ttl }))
    });
    let by_policies = topology.policies.values().filter_map(|policy| {
        let (pattern, has_ttl) = (policy.pattern.clone(), policy.definition.contains_key("message-ttl"));
        dead_lettering(&policy.definition, "").map(|it| (it, Sender::Policy { pattern, has_ttl }))
    });
    let ends = recognized.tiered.values().filter_map(|tiered| tiered.end.clone());
    // Includes the retries of queues that the filter does not select.
    let ends_of_retries = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Exchange(name) => queue_of_exhausted_exchange(&binding.source)
            .map(|_| DeadLettering { exchange: name.clone(), routing_key: None }),
        Destination::Queue(_) => None,
    });
    let mut dead_letter_exchanges: BTreeMap<ExchangeName, DeadLetterExchange> = BTreeMap::new();
    let retries = ends.chain(ends_of_retries).map(|it| (it, Sender::Retries));
    for (DeadLettering { exchange, routing_key }, sender) in by_queues.chain(by_policies).chain(retries) {
        let dlx = dead_letter_exchanges.entry(exchange).or_default();
        dlx.senders.push(sender);
        dlx.keys.extend(routing_key);
    }
    dead_letter_exchanges
}

/// Returns the exchanges that can also receive messages that are not dead-lettered: destinations of bindings, and
/// alternate exchanges. Ignores objects that are not exported, so that the export does not depend on them.
fn shared_exchanges(topology: &Topology) -> BTreeSet<ExchangeName> {
    let bound = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Exchange(name) => queue_of_exhausted_exchange(&binding.source).is_none().then(|| name.clone()),
        Destination::Queue(_) => None,
    });
    let alternates = topology.exchanges.values().filter_map(|it| it.alternate_exchange().map(ExchangeName::from));
    let by_policies = topology.policies.values().filter_map(|policy| {
        policy.definition.get("alternate-exchange").and_then(ArgumentValue::as_text).map(ExchangeName::from)
    });
    bound.chain(alternates).chain(by_policies).collect()
}

/// Returns true if the expansion of a dead-letter queue can generate this exchange.
fn can_be_generated(exchange: &Exchange) -> bool {
    let kinds = ["fanout", "topic", "direct", "headers"];
    exchange.durable
        && !exchange.auto_delete
        && exchange.arguments == Arguments::new()
        && kinds.contains(&exchange.kind.as_str())
}

/// Returns true if a queue has the delivery limit that topo sets on dead-letter queues by default. Returns `None` if
/// the queue has no limit, but topo would set one.
fn has_default_limit(queue: &Queue, live: &CurrentVhost<'_>) -> Option<bool> {
    let gets_default = queue.queue_type() == Some(QueueType::Quorum) && live.profile.version.is_at_least(4, 0);
    match queue.arguments.get("x-delivery-limit") {
        Some(limit) => Some(gets_default && limit.as_integer() == Some(-1)),
        None => (!gets_default).then_some(false),
    }
}
