//! The policies that wire dead letters, as they must be beside what is live: a spec does not know the policies of others,
//! and one of those may go before a generated one, or be displaced by it. So each is worked out again whenever it is
//! planned, from its own keys alone: the same live policies give the same one, and when they change or go, it changes.

use super::document::{Desired, Options};
use crate::model::{ObjectId, ObjectKind, Policy, PolicyName, Queue, QueueName, Topology, naming};
use crate::rabbitmq::wiring::WIRING_KEYS;
use crate::rabbitmq::{BrokerProfile, Governed, Policies, as_stored, wiring_policy};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A desired policy that wires a queue of the spec.
pub(super) struct Wired<'a> {
    pub(super) name: &'a PolicyName,
    pub(super) policy: &'a Policy,
    pub(super) queue_name: QueueName,
    pub(super) queue: &'a Queue,
}

/// All of them.
pub(super) fn wired(desired: &Topology) -> impl Iterator<Item = Wired<'_>> {
    desired.policies.iter().filter_map(|(name, policy)| {
        let queue_name = naming::queue_of_dead_letter_policy(name)?;
        let queue = desired.queues.get(&queue_name)?;
        Some(Wired { name, policy, queue_name, queue })
    })
}

/// What is desired, with these policies as they must be.
pub(super) fn adapted<'a>(
    desired: &'a Desired,
    current: &Topology,
    profile: &BrokerProfile,
    options: &Options,
) -> Cow<'a, Desired> {
    let topology = &desired.topology;
    if wired(topology).next().is_none() {
        return Cow::Borrowed(desired);
    }
    let others = others(desired, current, options);
    let policies = Policies::new(others.iter().map(|(name, policy)| (*name, *policy)), profile.version);
    let mut fitted: BTreeMap<PolicyName, Policy> = BTreeMap::new();
    for Wired { name, policy, queue_name, queue } in wired(topology) {
        let fitting = policies.fitting(queue_name.as_str(), Governed::from(&*as_stored(queue, profile)));
        let mut wires = policy.definition.clone();
        wires.retain(|key, _| WIRING_KEYS.contains(&key.as_str()));
        let mut fit = wiring_policy(&queue_name, &fitting, wires);
        // High enough is high enough: lowered beside a policy that goes in the same plan, it would leave the queue to
        // that one for a moment, and what is rejected then is lost.
        if let Some(live) = current.policies.get(name) {
            fit.priority = fit.priority.max(live.priority);
        }
        fitted.insert(name.clone(), fit);
    }
    if fitted.iter().all(|(name, policy)| topology.policies.get(name) == Some(policy)) {
        return Cow::Borrowed(desired);
    }
    let mut desired = desired.clone();
    desired.topology.policies.extend(fitted);
    Cow::Owned(desired)
}

/// The policies that there are beside those after the plan: the spec's as it wants them, and what is live and stays.
fn others<'a>(desired: &'a Desired, current: &'a Topology, options: &Options) -> BTreeMap<&'a PolicyName, &'a Policy> {
    let Desired { topology, scope, .. } = desired;
    let goes = |name: &PolicyName| {
        let is_pruned = || scope.owns(name.as_str()) && options.prune.contains(&ObjectKind::Policy);
        let is_kept = scope.protects(name.as_str()) || scope.ignores(name.as_str());
        !is_kept && (scope.removed.contains(&ObjectId::Policy(name.clone())) || is_pruned())
    };
    let mut others: BTreeMap<_, _> = current.policies.iter().filter(|(name, _)| !goes(name)).collect();
    others.extend(&topology.policies);
    for wired in wired(topology) {
        others.remove(wired.name);
    }
    others
}
