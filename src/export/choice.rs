//! Selects the objects of a vhost to export: all permanent objects that were created on purpose, within the requested
//! filter.

use super::Live;
use super::left_out::{LeftOut, Reason};
use crate::model::naming::{self, TierName};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, Glob, ObjectId, PolicyName, Queue,
    QueueName, RecordId, Topology, has_cut,
};
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

/// Returns the objects that are left out because of their properties. Objects that a spec cannot represent are found
/// later, by the check.
pub(super) fn left_out(live: &Live<'_>, globs: &[Glob]) -> LeftOut {
    let mut left_out = LeftOut::default();
    for (name, queue) in live.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name)) {
        if let Some(why) = reason_for_queue(live, name, queue).or_else(|| too_large(&queue.arguments)) {
            left_out.add(ObjectId::Queue(name.clone()), why);
        }
    }
    for (name, exchange) in live.topology.exchanges.iter().filter(|(name, _)| is_chosen_exchange(globs, name)) {
        let id = ObjectId::Exchange(name.clone());
        if let Some(why) = reason_for_exchange(exchange).or_else(|| too_large(&exchange.arguments)) {
            left_out.add(id, why);
        }
    }
    for (name, policy) in live.topology.policies.iter().filter(|(name, _)| is_chosen_policy(globs, name)) {
        if let Some(why) = too_large(&policy.definition) {
            left_out.add(ObjectId::Policy(name.clone()), why);
        }
    }
    for binding in &live.topology.bindings {
        let has_destination = match &binding.destination {
            Destination::Queue(name) => live.topology.queues.contains_key(name),
            Destination::Exchange(name) => name.is_predeclared() || live.topology.exchanges.contains_key(name),
        };
        let has_source = binding.source.is_predeclared() || live.topology.exchanges.contains_key(&binding.source);
        let is_chosen = is_chosen(globs, binding.destination.name()) || is_chosen_exchange(globs, &binding.source);
        if !(has_destination && has_source) && is_chosen {
            let why = if has_destination { Reason::MissingSource } else { Reason::MissingDestination };
            left_out.add(ObjectId::Binding(binding.clone()), why);
        } else if let Some(why) = too_large(&binding.arguments).filter(|_| is_chosen) {
            left_out.add(ObjectId::Binding(binding.clone()), why);
        }
    }
    if globs.is_empty() {
        left_out.other_objects = live.unsupported_objects.clone();
        let settings = live.topology.settings.iter();
        let tags: Vec<String> = settings.flat_map(|settings| settings.tags.clone()).collect();
        if !tags.is_empty() {
            left_out.other_objects.insert("vhost tag".to_owned(), tags);
        }
    }
    for (id, record) in live.topology.records.iter().filter(|(id, _)| is_chosen_record(globs, id)) {
        if !live.with.contains(&id.kind) {
            let value = record.fields.get("value").filter(|_| id.setting().is_some());
            let value = value.map_or_else(String::new, |value| format!(" {value}"));
            left_out.records.entry(id.kind).or_default().push(format!("{}{value}", id.key.join(" ")));
        } else if let Some(why) = too_large(&record.fields) {
            left_out.add(ObjectId::Record(id.clone()), why);
        }
    }
    left_out.governing = governing(live, globs, &left_out);
    left_out
}

/// Returns true if a record is within the filter. A filter never selects records without a name of their own.
fn is_chosen_record(globs: &[Glob], id: &RecordId) -> bool {
    id.name().map_or(globs.is_empty(), |name| is_chosen(globs, name))
}

/// Returns a reason if an argument exceeds the size up to which topo reads arguments.
fn too_large(arguments: &Arguments) -> Option<Reason> {
    has_cut(arguments).then(|| Reason::NotRepresentable(format!("an argument has {}", ArgumentValue::too_large())))
}

/// Returns the policies that apply to exported objects and that the filter does not select. Without them, the spec does
/// not define the behavior of its queues. topo reports them instead of exporting them, because a policy applies by its
/// pattern, also to future queues. A policy with a different name may belong to a different team.
fn governing(live: &Live<'_>, globs: &[Glob], left_out: &LeftOut) -> BTreeMap<PolicyName, Vec<String>> {
    let mut governing: BTreeMap<PolicyName, Vec<String>> = BTreeMap::new();
    if live.topology.policies.keys().all(|name| is_chosen_policy(globs, name)) {
        return governing;
    }
    let policies = Policies::new(&live.topology.policies, live.profile.version);
    let mut add = |name: &str, governed: Governed| {
        for named in policies.governing(name, governed).possible().iter().flatten() {
            if !is_chosen_policy(globs, named.name) && !left_out.contains(&ObjectId::Policy(named.name.clone())) {
                governing.entry(named.name.clone()).or_default().push(name.to_owned());
            }
        }
    };
    for (name, queue) in live.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name)) {
        if !left_out.contains(&ObjectId::Queue(name.clone())) {
            add(name.as_str(), Governed::from(queue));
        }
    }
    for name in live.topology.exchanges.keys().filter(|name| is_chosen_exchange(globs, name)) {
        if !left_out.contains(&ObjectId::Exchange(name.clone())) {
            add(name.as_str(), Governed::Exchange);
        }
    }
    governing
}

/// Returns the reason why a queue is not exported because of its properties.
pub(super) fn reason_for_queue(live: &Live<'_>, name: &QueueName, queue: &Queue) -> Option<Reason> {
    match queue {
        _ if queue.is_created_by_topo() => Some(Reason::OwnedByTopo),
        _ if name.is_server_named() => Some(Reason::ServerNamed),
        _ if queue.exclusive => Some(Reason::Exclusive),
        _ if queue.auto_delete => Some(Reason::AutoDelete),
        _ if !queue.durable => Some(Reason::Transient),
        _ => live.untouchable.contains(&ObjectId::Queue(name.clone())).then_some(Reason::OwnedByPlugin),
    }
}

fn reason_for_exchange(exchange: &Exchange) -> Option<Reason> {
    match exchange {
        _ if exchange.is_created_by_topo() => Some(Reason::OwnedByTopo),
        _ if exchange.auto_delete => Some(Reason::AutoDelete),
        _ => (!exchange.durable).then_some(Reason::Transient),
    }
}

/// Returns the exported objects. A binding is exported with its destination; topo reports a binding if only its source
/// is left out.
pub(super) fn kept(live: &Live<'_>, globs: &[Glob], left_out: &mut LeftOut) -> Topology {
    let mut kept =
        Topology { settings: live.topology.settings.clone(), ..Topology::missing(live.topology.vhost.clone()) };
    let is_in = |id: &ObjectId| !left_out.contains(id);
    let queues = live.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name));
    kept.queues = queues
        .filter(|(name, _)| is_in(&ObjectId::Queue((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let exchanges = live.topology.exchanges.iter().filter(|(name, _)| is_chosen_exchange(globs, name));
    kept.exchanges = exchanges
        .filter(|(name, _)| is_in(&ObjectId::Exchange((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let policies = live.topology.policies.iter().filter(|(name, _)| is_chosen_policy(globs, name));
    kept.policies = policies
        .filter(|(name, _)| is_in(&ObjectId::Policy((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let records = live.topology.records.iter().filter(|(id, _)| is_chosen_record(globs, id));
    kept.records = records
        .filter(|(id, _)| live.with.contains(&id.kind) && is_in(&ObjectId::Record((*id).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let mut without_source = Vec::new();
    for binding in &live.topology.bindings {
        if !is_in(&ObjectId::Binding(binding.clone())) || !has_destination(&kept, globs, binding) {
            continue;
        }
        // Retries of a queue outside of the filter may end at a selected queue.
        let is_chosen = is_chosen_exchange(globs, &binding.source);
        if !is_chosen && owner_queues(&binding.source).any(|queue| live.topology.queues.contains_key(&queue)) {
            continue;
        }
        if is_in(&ObjectId::Exchange(binding.source.clone())) {
            kept.bindings.insert(binding.clone());
        } else {
            without_source.push(binding.clone());
        }
    }
    for binding in without_source {
        left_out.add(ObjectId::Binding(binding), Reason::SourceLeftOut);
    }
    kept
}

/// Returns true if the destination of a binding is exported. For a predeclared destination, the source must be
/// selected.
fn has_destination(kept: &Topology, globs: &[Glob], binding: &Binding) -> bool {
    match &binding.destination {
        Destination::Queue(name) => kept.queues.contains_key(name),
        Destination::Exchange(name) if name.is_predeclared() => is_chosen_exchange(globs, &binding.source),
        // The end of retries may be an exchange that is not exported.
        Destination::Exchange(name) => {
            kept.exchanges.contains_key(name)
                || kept.exchanges.contains_key(&binding.source) && owner_queues(&binding.source).next().is_some()
        }
    }
}

fn is_chosen(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

/// Returns true if the filter selects the queue, or the main queue of a tier.
fn is_chosen_queue(globs: &[Glob], name: &QueueName) -> bool {
    let stem = || TierName::parse(name).map(|tier| tier.queue);
    is_chosen(globs, name.as_str()) || stem().is_some_and(|queue| is_chosen(globs, queue.as_str()))
}

/// Returns true if the filter selects the exchange, or the queue that it is generated for.
fn is_chosen_exchange(globs: &[Glob], name: &ExchangeName) -> bool {
    is_chosen(globs, name.as_str()) || owner_queues(name).any(|queue| is_chosen(globs, queue.as_str()))
}

/// Returns the queues that an exchange may be generated for, by its name.
fn owner_queues(name: &ExchangeName) -> impl Iterator<Item = QueueName> {
    let of = |name: &ExchangeName| {
        [
            naming::queue_of_dead_letter_exchange(name),
            naming::queue_of_retry_exchange(name),
            naming::queue_of_over_exchange(name),
            naming::queue_of_first_exchange(name),
            naming::queue_of_return_exchange(name),
        ]
    };
    let switched = naming::switched_by(name);
    of(name).into_iter().chain(switched.into_iter().flat_map(move |name| of(&name))).flatten()
}

fn is_chosen_policy(globs: &[Glob], name: &PolicyName) -> bool {
    let stem = || naming::queue_of_dead_letter_policy(name);
    is_chosen(globs, name.as_str()) || stem().is_some_and(|queue| is_chosen(globs, queue.as_str()))
}
