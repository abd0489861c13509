//! Adapts the generated dead-letter wiring policies to the current policies. An unmanaged policy, which no spec
//! contains, may take precedence over a generated policy or be displaced by it. Therefore, for every plan, topo
//! recomputes each generated policy from its wiring keys. The result depends only on these keys and on the policies.
//!
//! Also finds the exchanges that route dead-lettered messages. topo creates the bindings of these exchanges first, so
//! that messages that are rejected during an apply can be routed.

use super::document::{Desired, Options};
use crate::model::{
    Destination, Exchange, ExchangeName, Family, ObjectId, ObjectKind, Policy, PolicyName, Queue, QueueName, Topology,
    naming,
};
use crate::rabbitmq::WIRING_KEYS;
use crate::rabbitmq::{BrokerProfile, Governed, Policies, wiring_policy, with_default_type};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A desired policy that wires a queue in the spec.
pub(super) struct Wired<'a> {
    pub(super) name: &'a PolicyName,
    pub(super) policy: &'a Policy,
    pub(super) queue_name: QueueName,
    pub(super) queue: &'a Queue,
}

/// Returns the desired policies that wire a queue in the spec.
pub(super) fn wired_queues(desired: &Topology) -> impl Iterator<Item = Wired<'_>> {
    desired.policies.iter().filter_map(|(name, policy)| {
        let queue_name = naming::queue_of_dead_letter_policy(name)?;
        let queue = desired.queues.get(&queue_name)?;
        Some(Wired { name, policy, queue_name, queue })
    })
}

/// Returns the desired topology with wiring policies that are adapted to the current policies.
pub(super) fn adapt<'a>(
    desired: &'a Desired,
    current: &Topology,
    profile: &BrokerProfile,
    options: &Options,
) -> Cow<'a, Desired> {
    let topology = &desired.topology;
    if wired_queues(topology).next().is_none() {
        return Cow::Borrowed(desired);
    }
    let unwired = other_policies(desired, current, options);
    let policies = Policies::new(unwired.iter().map(|(name, policy)| (*name, *policy)), profile.version);
    let mut adapted: BTreeMap<PolicyName, Policy> = BTreeMap::new();
    for Wired { name, policy, queue_name, queue } in wired_queues(topology) {
        let candidates = policies.matching(queue_name.as_str(), Governed::from(&*with_default_type(queue, profile)));
        let mut wires = policy.definition.clone();
        wires.retain(|key, _| WIRING_KEYS.contains(&key.as_str()));
        let mut adapted_policy = wiring_policy(&queue_name, &candidates, wires);
        // Keeps the current priority if it is higher. If a plan lowered the priority and deleted a competing policy,
        // the competing policy could govern the queue between the two steps, and rejected messages would be lost.
        if let Some(live) = current.policies.get(name) {
            adapted_policy.priority = adapted_policy.priority.max(live.priority);
        }
        adapted.insert(name.clone(), adapted_policy);
    }
    if adapted.iter().all(|(name, policy)| topology.policies.get(name) == Some(policy)) {
        return Cow::Borrowed(desired);
    }
    let mut desired = desired.clone();
    desired.topology.policies.extend(adapted);
    Cow::Owned(desired)
}

/// Returns all policies after the plan, except the policies that wire queues: the policies in the spec, and the current
/// policies that the plan does not delete.
fn other_policies<'a>(
    desired: &'a Desired,
    current: &'a Topology,
    options: &Options,
) -> BTreeMap<&'a PolicyName, &'a Policy> {
    let Desired { topology, scope, .. } = desired;
    let is_deleted = |name: &PolicyName| {
        let is_pruned = || scope.owns(name.as_str()) && options.prune.contains(&ObjectKind::Policy);
        let is_kept = scope.protects(name.as_str()) || scope.ignores(name.as_str());
        !is_kept && (scope.removed.contains(&ObjectId::Policy(name.clone())) || is_pruned())
    };
    let mut policies: BTreeMap<_, _> = current.policies.iter().filter(|(name, _)| !is_deleted(name)).collect();
    policies.extend(&topology.policies);
    for wired in wired_queues(topology) {
        policies.remove(wired.name);
    }
    policies
}

/// Returns the exchanges that route dead-lettered messages: the dead-letter exchanges of queues and policies, the
/// exchanges of retries, and all exchanges to which these exchanges route through bindings or alternate exchanges.
pub(super) fn dead_letter_exchanges(desired: &Topology, families: &[Family]) -> BTreeSet<ExchangeName> {
    let by_queue = desired.queues.values().filter_map(|queue| queue.arguments.get("x-dead-letter-exchange"));
    let by_policy = desired.policies.values().filter_map(|policy| policy.definition.get("dead-letter-exchange"));
    let mut open: Vec<ExchangeName> =
        by_queue.chain(by_policy).filter_map(|name| name.as_text()).map(ExchangeName::from).collect();
    open.extend(families.iter().flat_map(|family| &family.members).filter_map(|id| match id {
        ObjectId::Exchange(name) => Some(name.clone()),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Binding(_) | ObjectId::Record(_) => None,
    }));
    let mut onward: BTreeMap<&ExchangeName, Vec<&ExchangeName>> = BTreeMap::new();
    for binding in &desired.bindings {
        if let Destination::Exchange(name) = &binding.destination {
            onward.entry(&binding.source).or_default().push(name);
        }
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.contains(&name) {
            continue;
        }
        let alternate = desired.exchanges.get(&name).and_then(Exchange::alternate_exchange);
        open.extend(alternate.map(ExchangeName::from));
        open.extend(onward.get(&name).into_iter().flatten().map(|name| (*name).clone()));
        found.insert(name);
    }
    found
}
