//! Selects the objects to export from a vhost. These are all permanent objects that match the filter, except objects
//! that a client, a plugin or topo created for its own use.

use super::CurrentVhost;
use super::left_out::{LeftOut, Reason};
use super::links::reason_for_link;
use super::transient;
use crate::model::naming::{self, TierName};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, Glob, ObjectId, PolicyName, Queue,
    QueueName, RecordId, Topology, Vhost, has_truncated_value,
};
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

/// Collects the objects that are left out, with the reasons, and the governing policies that the filter does not
/// select. `convergence` later adds the objects that the exported spec does not reproduce.
pub(super) fn find_left_out(current: &CurrentVhost<'_>, globs: &[Glob]) -> LeftOut {
    let mut left_out = LeftOut::default();
    for (name, queue) in current.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name)) {
        if let Some(why) = reason_for_queue(current, name, queue).or_else(|| reason_for_size(&queue.arguments)) {
            left_out.add(ObjectId::Queue(name.clone()), why);
        }
    }
    for (name, exchange) in current.topology.exchanges.iter().filter(|(name, _)| is_chosen_exchange(globs, name)) {
        let id = ObjectId::Exchange(name.clone());
        if let Some(why) = reason_for_exchange(name, exchange).or_else(|| reason_for_size(&exchange.arguments)) {
            left_out.add(id, why);
        }
    }
    for (name, policy) in current.topology.policies.iter().filter(|(name, _)| is_chosen_policy(globs, name)) {
        if let Some(why) = reason_for_size(&policy.definition) {
            left_out.add(ObjectId::Policy(name.clone()), why);
        }
    }
    for binding in &current.topology.bindings {
        let has_destination = match &binding.destination {
            Destination::Queue(name) => current.topology.queues.contains_key(name),
            Destination::Exchange(name) => name.is_predeclared() || current.topology.exchanges.contains_key(name),
        };
        let has_source = binding.source.is_predeclared() || current.topology.exchanges.contains_key(&binding.source);
        let is_chosen = is_chosen(globs, binding.destination.name()) || is_chosen_exchange(globs, &binding.source);
        if !(has_destination && has_source) && is_chosen {
            let why = if has_destination { Reason::MissingSource } else { Reason::MissingDestination };
            left_out.add(ObjectId::Binding(binding.clone()), why);
        } else if let Some(why) = reason_for_size(&binding.arguments).filter(|_| is_chosen) {
            left_out.add(ObjectId::Binding(binding.clone()), why);
        }
    }
    if globs.is_empty() {
        left_out.other_objects = current.unsupported_objects.clone();
        let tags = current.topology.settings.iter().flat_map(|settings| settings.tags.iter().flatten());
        let tags: Vec<String> = tags.cloned().collect();
        if !tags.iter().all(|tag| Vhost::is_valid_tag(tag)) {
            left_out.other_objects.insert("vhost tag".to_owned(), tags);
        }
    }
    for (id, record) in current.topology.records.iter().filter(|(id, _)| is_chosen_record(globs, id)) {
        if !current.record_kinds.contains(&id.kind) {
            let value = record.fields.get("value").filter(|_| id.setting().is_some());
            let value = value.map_or_else(String::new, |value| format!(" {value}"));
            left_out.records.entry(id.kind).or_default().push(format!("{}{value}", id.key.join(" ")));
        } else if let Some(why) = reason_for_size(&record.fields) {
            left_out.add(ObjectId::Record(id.clone()), why);
        } else if let Some(why) = reason_for_link(record) {
            left_out.add(ObjectId::Record(id.clone()), Reason::NotRepresentable(why));
        }
    }
    let is_left_out = |id: ObjectId| match &id {
        ObjectId::Record(record) => !current.record_kinds.contains(&record.kind) || left_out.contains(&id),
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Queue(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => {
            left_out.contains(&id)
        }
    };
    for name in transient::temporary_queues(current.topology, is_left_out) {
        let id = ObjectId::Queue(name.clone());
        if is_chosen_queue(globs, &name) && !left_out.contains(&id) {
            left_out.add(id, Reason::Expires);
        }
    }
    left_out.governing = governing_policies(current, globs, &left_out);
    left_out
}

/// Returns true if the filter selects a record. A filter with globs never selects records without a name. A filter
/// without globs selects every record.
fn is_chosen_record(globs: &[Glob], id: &RecordId) -> bool {
    id.name().map_or(globs.is_empty(), |name| is_chosen(globs, name))
}

/// Returns the reason to leave out an object if topo could not read a value completely because the value is too large.
/// The values are arguments, the definition of a policy, or the fields of a record.
fn reason_for_size(arguments: &Arguments) -> Option<Reason> {
    has_truncated_value(arguments)
        .then(|| Reason::NotRepresentable(format!("a value has {}", ArgumentValue::too_large())))
}

/// Returns the policies that can apply to exported objects and that the filter does not select, each with the names of
/// these objects.
///
/// Without these policies, the spec does not completely define the behavior of its objects. topo only reports them,
/// because a policy also applies to future queues that match its pattern, and may belong to a different team.
fn governing_policies(
    current: &CurrentVhost<'_>,
    globs: &[Glob],
    left_out: &LeftOut,
) -> BTreeMap<PolicyName, Vec<String>> {
    let mut governing: BTreeMap<PolicyName, Vec<String>> = BTreeMap::new();
    if current.topology.policies.keys().all(|name| is_chosen_policy(globs, name)) {
        return governing;
    }
    let policies = Policies::new(&current.topology.policies, current.profile.version);
    let mut add = |name: &str, governed: Governed| {
        for named in policies.governing(name, governed).possible().iter().flatten() {
            if !is_chosen_policy(globs, named.name) && !left_out.contains(&ObjectId::Policy(named.name.clone())) {
                governing.entry(named.name.clone()).or_default().push(name.to_owned());
            }
        }
    };
    for (name, queue) in current.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name)) {
        if !left_out.contains(&ObjectId::Queue(name.clone())) {
            add(name.as_str(), Governed::from(queue));
        }
    }
    for name in current.topology.exchanges.keys().filter(|name| is_chosen_exchange(globs, name)) {
        if !left_out.contains(&ObjectId::Exchange(name.clone())) {
            add(name.as_str(), Governed::Exchange);
        }
    }
    governing
}

/// Returns the reason why a queue is not exported; `None` if no property of the queue prevents the export. Does not
/// check the size of the arguments.
pub(super) fn reason_for_queue(current: &CurrentVhost<'_>, name: &QueueName, queue: &Queue) -> Option<Reason> {
    let by_owner = match queue {
        _ if queue.is_created_by_topo() => Some(Reason::OwnedByTopo),
        _ if name.is_server_named() => Some(Reason::ServerNamed),
        _ if queue.exclusive => Some(Reason::Exclusive),
        _ => transient::reason_for_name(name.as_str(), queue.expires()),
    };
    by_owner.or_else(|| match queue {
        _ if queue.auto_delete => Some(Reason::AutoDelete),
        _ if !queue.durable => Some(Reason::Transient),
        _ => current.untouchable.contains(&ObjectId::Queue(name.clone())).then_some(Reason::OwnedByPlugin),
    })
}

fn reason_for_exchange(name: &ExchangeName, exchange: &Exchange) -> Option<Reason> {
    match exchange {
        _ if exchange.is_created_by_topo() => Some(Reason::OwnedByTopo),
        _ => transient::reason_for_name(name.as_str(), false).or_else(|| match exchange {
            _ if exchange.auto_delete => Some(Reason::AutoDelete),
            _ => (!exchange.durable).then_some(Reason::Transient),
        }),
    }
}

/// Returns the objects to export. A binding is exported with its destination. If only the source of a binding is left
/// out, topo reports the binding as left out.
pub(super) fn select_kept(current: &CurrentVhost<'_>, globs: &[Glob], left_out: &mut LeftOut) -> Topology {
    let mut kept =
        Topology { settings: current.topology.settings.clone(), ..Topology::missing(current.topology.vhost.clone()) };
    let is_in = |id: &ObjectId| !left_out.contains(id);
    let queues = current.topology.queues.iter().filter(|(name, _)| is_chosen_queue(globs, name));
    kept.queues = queues
        .filter(|(name, _)| is_in(&ObjectId::Queue((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let exchanges = current.topology.exchanges.iter().filter(|(name, _)| is_chosen_exchange(globs, name));
    kept.exchanges = exchanges
        .filter(|(name, _)| is_in(&ObjectId::Exchange((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let policies = current.topology.policies.iter().filter(|(name, _)| is_chosen_policy(globs, name));
    kept.policies = policies
        .filter(|(name, _)| is_in(&ObjectId::Policy((*name).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let records = current.topology.records.iter().filter(|(id, _)| is_chosen_record(globs, id));
    kept.records = records
        .filter(|(id, _)| current.record_kinds.contains(&id.kind) && is_in(&ObjectId::Record((*id).clone())))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let mut without_source = Vec::new();
    for binding in &current.topology.bindings {
        if !is_in(&ObjectId::Binding(binding.clone())) || !can_export_with_destination(&kept, globs, binding) {
            continue;
        }
        // This binding belongs to the retries of a queue that the filter does not select. Such retries can end at a
        // selected queue, such as a shared dead-letter queue.
        let is_chosen = is_chosen_exchange(globs, &binding.source);
        if !is_chosen && owner_queues(&binding.source).any(|queue| current.topology.queues.contains_key(&queue)) {
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

/// Returns true if the destination of a binding permits the export of the binding. The destination must be exported. If
/// it is a predeclared exchange, the filter must select the source instead. If the source is an exported exchange that
/// belongs to retries, the destination can be any exchange.
fn can_export_with_destination(kept: &Topology, globs: &[Glob], binding: &Binding) -> bool {
    match &binding.destination {
        Destination::Queue(name) => kept.queues.contains_key(name),
        Destination::Exchange(name) if name.is_predeclared() => is_chosen_exchange(globs, &binding.source),
        // Retries can end at an exchange that is not exported.
        Destination::Exchange(name) => {
            kept.exchanges.contains_key(name)
                || kept.exchanges.contains_key(&binding.source) && owner_queues(&binding.source).next().is_some()
        }
    }
}

/// Returns true if the filter selects a name. A filter without globs selects every name.
fn is_chosen(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

/// Returns true if the filter selects a queue or, for a tier, its main queue.
fn is_chosen_queue(globs: &[Glob], name: &QueueName) -> bool {
    let stem = || TierName::parse(name).map(|tier| tier.queue);
    is_chosen(globs, name.as_str()) || stem().is_some_and(|queue| is_chosen(globs, queue.as_str()))
}

/// Returns true if the filter selects an exchange, or a queue for which topo may have generated the exchange.
fn is_chosen_exchange(globs: &[Glob], name: &ExchangeName) -> bool {
    is_chosen(globs, name.as_str()) || owner_queues(name).any(|queue| is_chosen(globs, queue.as_str()))
}

/// Returns the queues for which topo may have generated an exchange, according to the exchange's name.
fn owner_queues(name: &ExchangeName) -> impl Iterator<Item = QueueName> {
    let of = |name: &ExchangeName| {
        [
            naming::queue_of_dead_letter_exchange(name),
            naming::queue_of_retry_exchange(name),
            naming::queue_of_exhausted_exchange(name),
            naming::queue_of_first_exchange(name),
            naming::queue_of_return_exchange(name),
        ]
    };
    let switched = naming::exchange_of_switch(name);
    of(name).into_iter().chain(switched.into_iter().flat_map(move |name| of(&name))).flatten()
}

fn is_chosen_policy(globs: &[Glob], name: &PolicyName) -> bool {
    let stem = || naming::queue_of_dead_letter_policy(name);
    is_chosen(globs, name.as_str()) || stem().is_some_and(|queue| is_chosen(globs, queue.as_str()))
}
