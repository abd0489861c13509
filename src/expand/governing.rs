//! Which policy of the spec governs a queue, as the broker would decide it.

use crate::model::known_arguments::KNOWN_ARGUMENTS;
use crate::model::{ApplyTo, Arguments, Policy, PolicyName, Priority, QueueName, QueueType};
use fancy_regex::Regex;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a queue's own policy has to take over.
pub(super) struct Governing {
    /// The highest priority of all policies that match, also of those that do not apply.
    pub(super) highest: Priority,
    /// What the policy that governs sets.
    pub(super) definition: Arguments,
}

/// The policies of a spec with their patterns, compiled once.
pub(super) struct Patterns(Vec<(PolicyName, Policy, Option<Regex>)>);

impl Patterns {
    /// Of these policies. The broker's patterns are PCRE: what the engine here cannot follow is kept as `None`.
    pub(super) fn of(policies: &BTreeMap<PolicyName, Policy>) -> Self {
        let compiled = policies.iter().map(|(name, policy)| {
            let regex = Regex::new(&policy.pattern).ok();
            (name.clone(), policy.clone(), regex)
        });
        Self(compiled.collect())
    }

    /// What governs a queue; or the policy whose pattern cannot be evaluated here.
    pub(super) fn governing(
        &self,
        queue: &QueueName,
        queue_type: Option<QueueType>,
    ) -> Result<Option<Governing>, PolicyName> {
        let mut matching = Vec::new();
        for (name, policy, regex) in self.0.iter().filter(|(_, policy, _)| is_for(policy.apply_to, queue_type)) {
            let matches = regex.as_ref().and_then(|regex| regex.is_match(queue.as_str()).ok());
            if matches.ok_or_else(|| name.clone())? {
                matching.push(policy);
            }
        }
        // Equal priorities are decided by the broker's listing order: here, by name.
        matching.sort_by_key(|policy| Reverse(policy.priority));
        let Some(highest) = matching.first().map(|policy| policy.priority) else { return Ok(None) };
        let governing = matching.iter().find(|policy| is_taken(policy, queue_type));
        Ok(Some(Governing { highest, definition: governing.map_or_else(Arguments::new, |it| it.definition.clone()) }))
    }
}

fn is_for(apply_to: ApplyTo, queue_type: Option<QueueType>) -> bool {
    match apply_to {
        ApplyTo::All | ApplyTo::Queues => true,
        ApplyTo::Exchanges => false,
        ApplyTo::ClassicQueues => queue_type == Some(QueueType::Classic),
        ApplyTo::QuorumQueues => queue_type == Some(QueueType::Quorum),
        ApplyTo::Streams => queue_type == Some(QueueType::Stream),
    }
}

/// The broker skips a policy as a whole when the queue's type does not take one of its keys (`rabbit_queue_type`).
fn is_taken(policy: &Policy, queue_type: Option<QueueType>) -> bool {
    let Some(queue_type) = queue_type else { return true };
    policy.definition.keys().all(|key| {
        let known = KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(key));
        known.is_none_or(|known| known.support_for(queue_type).is_some())
    })
}
