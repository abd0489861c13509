//! Recognizes dead-letter queues: an exchange that messages are dead-lettered to, and the queue behind it, from which
//! no message returns.

use super::waits::is_called_waiting;
use super::{GivenUp, Recognized};
use crate::export::Live;
use crate::export::choice::why_queue;
use crate::model::naming::{dead_letter_exchange, queue_of_over_exchange};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Policy, PolicyName, Queue,
    QueueName, QueueType, Topology,
};
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{Routing, dead_lettering};
use std::cell::OnceCell;
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
    /// Whether an exchange and a key lead to this queue; without a key, messages keep their own.
    pub(in crate::export) fn leads(&self, name: &QueueName, end: &DeadLettering) -> bool {
        let by_type = || (self.kind == "direct").then(|| usual_key(&self.kind, name));
        self.exchange == end.exchange && self.routing_key.clone().or_else(by_type) == end.routing_key
    }
}

/// A sender of dead letters.
enum Sender {
    /// Retries, after the last one.
    Retries,
    /// A queue. If all its messages expire, they may be work that was delayed.
    Queue { name: QueueName, has_ttl: bool },
    /// The queues that a policy matches.
    Policy { pattern: String, has_ttl: bool },
}

impl Sender {
    /// Whether its messages were rejected, and did not wait to be processed later by that queue. A retry queue may have no
    /// TTL: then publishers set one for each message, and only names tell it from a work queue.
    fn rejects_to(&self, queue: &QueueName) -> bool {
        match self {
            Self::Retries => true,
            Self::Queue { name, has_ttl } => {
                !has_ttl && !is_called_waiting(name.as_str()) && !is_named_after(name, queue)
            }
            Self::Policy { pattern, has_ttl } => !has_ttl && !is_called_waiting(pattern),
        }
    }
}

/// An exchange that dead letters are sent to.
#[derive(Default)]
struct Sink {
    /// The queues and policies that name it.
    senders: Vec<Sender>,
    /// The keys that dead letters get on their way there.
    keys: BTreeSet<String>,
}

/// Finds queues that are processed, although messages are dead-lettered to them.
struct Work<'a> {
    live: &'a Live<'a>,
    /// By queue, the exchanges that it is bound to.
    sources: BTreeMap<&'a QueueName, BTreeSet<&'a ExchangeName>>,
    /// Built when the first queue is looked at that a policy may dead-letter.
    routing: OnceCell<Routing<'a>>,
    operator_policies: BTreeMap<PolicyName, Policy>,
    none: BTreeSet<ObjectId>,
}

impl<'a> Work<'a> {
    fn new(live: &'a Live<'a>, kept: &'a Topology) -> Self {
        let mut sources: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for binding in &kept.bindings {
            if let Destination::Queue(name) = &binding.destination {
                sources.entry(name).or_default().insert(&binding.source);
            }
        }
        let operator_policies = live.topology.operator_policies();
        Self { live, sources, routing: OnceCell::new(), operator_policies, none: BTreeSet::new() }
    }

    /// Whether an exchange that no dead letters are sent to is bound to the queue. Nothing but its name then tells that
    /// it is a dead-letter queue.
    fn is_bound_elsewhere(&self, queue: &QueueName, sinks: &BTreeMap<ExchangeName, Sink>) -> bool {
        self.sources.get(queue).into_iter().flatten().any(|source| !sinks.contains_key(*source))
    }

    /// Whether its own dead letters return to a queue that dead-letters to it: such a pair is a manual retry.
    fn returns(&'a self, queue: &QueueName, sink: &Sink) -> bool {
        let policies = self.live.topology.policies.values();
        if policies.filter_map(|policy| dead_lettering(&policy.definition, "")).next().is_none() {
            return false;
        }
        let Live { topology, profile, .. } = self.live;
        let routing = self.routing.get_or_init(|| Routing::new(topology, &self.operator_policies, &self.none, profile));
        let leads_to = |on: &DeadLettering, to: &QueueName| match on.exchange.as_str() {
            "" => on.routing_key.as_deref().is_none_or(|key| key == to.as_str()),
            _ => routing.bindings_to(&Destination::Queue(to.clone())).iter().any(|it| it.source == on.exchange),
        };
        routing.dead_lettering(queue).iter().flatten().any(|on| {
            sink.senders.iter().any(|sender| match sender {
                Sender::Queue { name, .. } => leads_to(on, name),
                Sender::Retries | Sender::Policy { .. } => false,
            })
        })
    }
}

/// Whether the name of a queue continues that of another one, as in `orders.5s` and `orders`.
fn is_named_after(name: &QueueName, other: &QueueName) -> bool {
    let rest = name.as_str().strip_prefix(other.as_str());
    rest.is_some_and(|rest| rest.starts_with(['.', '-', '_', ':', '/']))
}

/// Adds every exchange that dead letters are sent to, with the one queue behind it; or with several that it tells apart by
/// the keys that the letters get.
pub(super) fn find(recognized: &mut Recognized, live: &Live<'_>, kept: &Topology, given_up: &GivenUp) {
    let mut leading: BTreeMap<&ExchangeName, Vec<&Binding>> = BTreeMap::new();
    for binding in &kept.bindings {
        leading.entry(&binding.source).or_default().push(binding);
    }
    let (sinks, for_more, work) = (sinks(recognized, live), for_more(kept), Work::new(live, kept));
    for (exchange_name, sink) in &sinks {
        let id = ObjectId::Exchange(exchange_name.clone());
        let Some(exchange) = kept.exchanges.get(exchange_name).filter(|_| !recognized.made.contains_key(&id)) else {
            continue;
        };
        if !can_be_generated(exchange) {
            continue;
        }
        let to_queues: Vec<(&QueueName, &Binding)> = leading
            .get(exchange_name)
            .into_iter()
            .flatten()
            .filter(|binding| {
                binding.arguments.is_empty() && !recognized.made.contains_key(&ObjectId::Binding((**binding).clone()))
            })
            .filter_map(|binding| match &binding.destination {
                Destination::Queue(name) => Some((name, *binding)),
                Destination::Exchange(_) => None,
            })
            .collect();
        let chosen: Vec<_> = match &to_queues[..] {
            [only] => vec![only],
            several => {
                let told_apart = told_apart(&exchange.kind, &sink.keys, several);
                // Where no keys tell, only a name can.
                let is_its_own = |(name, _): &&(&QueueName, &Binding)| {
                    dead_letter_exchange(name) == *exchange_name || name.as_str() == exchange_name.as_str()
                };
                let its_own = || several.iter().find(is_its_own).into_iter().collect();
                if told_apart.len() > 1 { told_apart } else { its_own() }
            }
        };
        for (name, binding) in chosen {
            let is_generated = dead_letter_exchange(name) == *exchange_name;
            if work.is_bound_elsewhere(name, &sinks) && !is_generated && !is_called_so(name.as_str()) {
                continue;
            }
            if !sink.senders.iter().any(|sender| sender.rejects_to(name))
                && !is_called_so(exchange_name.as_str())
                && !is_called_so(name.as_str())
            {
                continue;
            }
            // What also takes what was published is seen best as what it is, if its name does not say otherwise.
            if for_more.contains(exchange_name) && !is_generated {
                continue;
            }
            let Some(queue) = kept.queues.get(*name) else { continue };
            let is_taken = recognized.dead_letter_queues.contains_key(*name)
                || given_up.dead_letter_queues.contains(*name)
                || recognized.tiered.contains_key(*name)
                || recognized.made.contains_key(&ObjectId::Queue((*name).clone()));
            if is_taken || queue.arguments.contains_key("x-dead-letter-exchange") || work.returns(name, sink) {
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
            // The first of several is who makes it, as in the expansion.
            recognized.made.entry(id.clone()).or_insert_with(|| (*name).clone());
            recognized.made.insert(ObjectId::Binding((*binding).clone()), (*name).clone());
            recognized.dead_letter_queues.insert((*name).clone(), found);
        }
    }
}

/// Those behind an exchange that are bound once, with a key that letters get and that no other is bound with.
fn told_apart<'a>(
    kind: &str,
    keys: &BTreeSet<String>,
    several: &'a [(&'a QueueName, &'a Binding)],
) -> Vec<&'a (&'a QueueName, &'a Binding)> {
    let (mut by_key, mut by_queue): (BTreeMap<&str, usize>, BTreeMap<&QueueName, usize>) = Default::default();
    for (name, binding) in several {
        *by_key.entry(&binding.routing_key).or_default() += 1;
        *by_queue.entry(name).or_default() += 1;
    }
    let is_one = |(name, binding): &&(&QueueName, &Binding)| {
        let key = binding.routing_key.as_str();
        keys.contains(key) && !key.contains(['*', '#']) && by_key.get(key) == Some(&1) && by_queue.get(name) == Some(&1)
    };
    if ["direct", "topic"].contains(&kind) { several.iter().filter(is_one).collect() } else { Vec::new() }
}

/// Where dead letters go, of queues, of policies and at the end of retries. Queues that come and go say nothing: a spec is
/// the same whether one is there just now or not.
fn sinks(recognized: &Recognized, live: &Live<'_>) -> BTreeMap<ExchangeName, Sink> {
    let Live { topology, .. } = live;
    let lasting = topology.queues.iter().filter(|(name, queue)| why_queue(live, name, queue).is_none());
    let by_queues = lasting.filter_map(|(name, queue)| {
        let has_ttl = queue.arguments.contains_key("x-message-ttl");
        dead_lettering(&queue.arguments, "x-").map(|it| (it, Sender::Queue { name: name.clone(), has_ttl }))
    });
    let by_policies = topology.policies.values().filter_map(|policy| {
        let (pattern, has_ttl) = (policy.pattern.clone(), policy.definition.contains_key("message-ttl"));
        dead_lettering(&policy.definition, "").map(|it| (it, Sender::Policy { pattern, has_ttl }))
    });
    let ends = recognized.tiered.values().filter_map(|tiered| tiered.end.clone());
    // Also those of queues that were not asked for.
    let ends_of_retries = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Exchange(name) => {
            queue_of_over_exchange(&binding.source).map(|_| DeadLettering { exchange: name.clone(), routing_key: None })
        }
        Destination::Queue(_) => None,
    });
    let mut sinks: BTreeMap<ExchangeName, Sink> = BTreeMap::new();
    let retries = ends.chain(ends_of_retries).map(|it| (it, Sender::Retries));
    for (DeadLettering { exchange, routing_key }, sender) in by_queues.chain(by_policies).chain(retries) {
        let sink = sinks.entry(exchange).or_default();
        sink.senders.push(sender);
        sink.keys.extend(routing_key);
    }
    sinks
}

/// The exchanges to which messages may come that are no dead letters: bound to another one, or its alternate. What is not
/// in the spec says nothing: where it is gone, the spec is the same.
fn for_more(topology: &Topology) -> BTreeSet<ExchangeName> {
    let bound = topology.bindings.iter().filter_map(|binding| match &binding.destination {
        Destination::Exchange(name) => queue_of_over_exchange(&binding.source).is_none().then(|| name.clone()),
        Destination::Queue(_) => None,
    });
    let alternates = topology.exchanges.values().filter_map(|it| it.alternate_exchange().map(ExchangeName::from));
    let by_policies = topology.policies.values().filter_map(|policy| {
        policy.definition.get("alternate-exchange").and_then(ArgumentValue::as_text).map(ExchangeName::from)
    });
    bound.chain(alternates).chain(by_policies).collect()
}

/// Whether a name says that dead letters are meant.
fn is_called_so(name: &str) -> bool {
    let words =
        ["dead", "dlx", "dlq", "dlt", "fail", "error", "poison", "quarantine", "reject", "parking", "undeliver"];
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// Whether the expansion makes such an exchange for a dead-letter queue.
fn can_be_generated(exchange: &Exchange) -> bool {
    let kinds = ["fanout", "topic", "direct", "headers"];
    exchange.durable
        && !exchange.auto_delete
        && exchange.arguments == Arguments::new()
        && kinds.contains(&exchange.kind.as_str())
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
    let would_get = queue.queue_type() == Some(QueueType::Quorum) && live.profile.version.is_at_least(4, 0);
    match queue.arguments.get("x-delivery-limit") {
        Some(limit) => Some(would_get && limit.as_integer() == Some(-1)),
        None => (!would_get).then_some(false),
    }
}
