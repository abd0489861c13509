//! Which policy governs a queue: the highest priority of those that match and that its type can take as a whole.

use crate::model::known_arguments::KNOWN_ARGUMENTS;
use crate::model::{ApplyTo, BrokerVersion, Policy, PolicyName, Queue, QueueName, QueueType};
use fancy_regex::Regex;
use std::collections::BTreeMap;

/// A policy whose pattern has been read; `None` where it is not one that can be evaluated here.
pub(super) struct Matcher {
    pub(super) policy: Policy,
    pub(super) regex: Option<Regex>,
    version: BrokerVersion,
}

impl Matcher {
    /// Patterns are not anchored. One key that the queue's type does not take, and the whole policy is skipped for it
    /// (`rabbit_queue_type:is_policy_applicable`).
    pub(super) fn matches(&self, name: &QueueName, queue: &Queue) -> bool {
        applies(self.policy.apply_to, queue)
            && queue
                .queue_type()
                .is_none_or(|kind| self.policy.definition.keys().all(|key| takes(kind, key, self.version)))
            && self.regex.as_ref().is_some_and(|regex| regex.is_match(name.as_str()).unwrap_or(false))
    }
}

pub(super) struct Policies(pub(super) BTreeMap<PolicyName, Matcher>);

impl Policies {
    pub(super) fn new(policies: BTreeMap<PolicyName, Policy>, version: BrokerVersion) -> Self {
        let matcher = |policy: Policy| Matcher { regex: Regex::new(&policy.pattern).ok(), policy, version };
        Self(policies.into_iter().map(|(name, policy)| (name, matcher(policy))).collect())
    }

    /// The policy of the highest priority that matches.
    pub(super) fn governing(&self, name: &QueueName, queue: &Queue) -> Governing<'_> {
        self.0
            .iter()
            .filter(|(_, matcher)| matcher.matches(name, queue))
            .max_by_key(|(_, matcher)| matcher.policy.priority)
            .map(|(name, matcher)| (name, &matcher.policy))
    }
}

/// Whether a type of queue takes a policy key. What no table knows (a plugin's) is no obstacle.
fn takes(kind: QueueType, key: &str, version: BrokerVersion) -> bool {
    // It is a key for every type since 3.12, an argument of quorum queues only.
    if key == "consumer-timeout" {
        return true;
    }
    if key.starts_with("ha-") || key == "max-priority" {
        return kind == QueueType::Classic;
    }
    KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(key)).is_none_or(|known| known.is_taken(kind, version))
}

/// What governs a queue.
pub(super) type Governing<'a> = Option<(&'a PolicyName, &'a Policy)>;

fn applies(apply_to: ApplyTo, queue: &Queue) -> bool {
    match apply_to {
        ApplyTo::All | ApplyTo::Queues => true,
        ApplyTo::Exchanges => false,
        ApplyTo::ClassicQueues => queue.queue_type() == Some(QueueType::Classic),
        ApplyTo::QuorumQueues => queue.queue_type() == Some(QueueType::Quorum),
        ApplyTo::Streams => queue.queue_type() == Some(QueueType::Stream),
    }
}
