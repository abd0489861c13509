//! Computes effective settings: the values that the broker uses after it combines arguments, policies and operator
//! policies.

use super::governing::{Governing, Named, Policies};
use super::policy_keys::{operator_wins, policy_wins, precedence};
use super::profile::BrokerProfile;
use super::wiring::DeadLettering;
use crate::model::known_arguments::KnownArgument;
use crate::model::{
    ArgumentValue, Arguments, BrokerVersion, Exchange, ExchangeName, PolicyName, Queue, QueueName, QueueType,
};
use std::collections::BTreeMap;
use std::fmt;

/// Returns the default delivery limit of a quorum queue (`rabbit_quorum_queue:DEFAULT_DELIVERY_LIMIT`); `None` before
/// 4.0.
pub fn default_delivery_limit(version: BrokerVersion) -> Option<i64> {
    version.is_at_least(4, 0).then_some(20)
}

/// Returns the delay before each redelivery from a queue with delayed retries, in milliseconds. The broker delays the
/// k-th redelivery by k times `min_delay`, up to `max_delay` (measured on 4.3.6).
pub fn redelivery_delays(min_delay: i64, max_delay: i64, redeliveries: i64) -> impl Iterator<Item = i64> {
    (1..=redeliveries).map(move |number| min_delay.saturating_mul(number).min(max_delay))
}

/// The origin of an effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A broker default.
    Default,
    /// An argument of the object.
    Argument,
    /// The policy with this name.
    Policy(PolicyName),
    /// The operator policy with this name.
    OperatorPolicy(PolicyName),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Argument => f.write_str("argument"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::OperatorPolicy(name) => write!(f, "operator policy {name}"),
        }
    }
}

/// An effective value with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The value.
    pub value: ArgumentValue,
    /// The origin.
    pub source: Source,
}

/// Merges a policy and an operator policy, and records the origin of each value
/// (`rabbit_policy:merge_operator_definitions`). The broker reports the result as `effective_policy_definition`.
pub fn effective_definition(policy: Option<Named<'_>>, operator: Option<Named<'_>>) -> BTreeMap<String, Effective> {
    let mut merged = BTreeMap::new();
    if let Some(Named { name, policy }) = policy {
        let value = |value: &ArgumentValue| Effective { value: value.clone(), source: Source::Policy(name.clone()) };
        merged.extend(policy.definition.iter().map(|(key, setting)| (key.clone(), value(setting))));
    }
    if let Some(Named { name, policy }) = operator {
        for (key, operator_value) in &policy.definition {
            let takes_precedence = merged
                .get(key)
                .is_none_or(|user_value: &Effective| operator_wins(key, &user_value.value, operator_value));
            if takes_precedence {
                let source = Source::OperatorPolicy(name.clone());
                merged.insert(key.clone(), Effective { value: operator_value.clone(), source });
            }
        }
    }
    merged
}

/// The effective settings of a queue, by policy key. Contains only keys that an existing queue of this type reads.
/// Empty if a plugin provides the queue type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSettings {
    kind: Option<QueueType>,
    version: BrokerVersion,
    /// The values, sorted by key. A slice uses less memory than a map, which matters because there are many queues with
    /// few keys each.
    values: Box<[(String, Effective)]>,
}

impl EffectiveSettings {
    /// Combines the arguments of a queue with the policy and the operator policy that govern it, as the broker does.
    pub fn of(queue: &Queue, policy: Option<Named<'_>>, operator: Option<Named<'_>>, profile: &BrokerProfile) -> Self {
        let version = profile.version;
        let Some(kind) = queue.queue_type() else { return Self { kind: None, version, values: Box::default() } };
        let mut values = effective_definition(policy, operator);
        values.retain(|key, _| precedence(key, kind, profile).is_some());
        for (name, argument) in &queue.arguments {
            let Some(key) = KnownArgument::named(name).and_then(|known| known.policy_key) else { continue };
            let Some(precedence) = precedence(key, kind, profile) else { continue };
            if !values.get(key).is_some_and(|policy| policy_wins(precedence, &policy.value, argument)) {
                values.insert(key.to_owned(), Effective { value: argument.clone(), source: Source::Argument });
            }
        }
        if let Some(limit) = default_delivery_limit(version).filter(|_| kind == QueueType::Quorum) {
            let default = || Effective { value: limit.into(), source: Source::Default };
            values.entry("delivery-limit".to_owned()).or_insert_with(default);
        }
        Self { kind: Some(kind), version, values: values.into_iter().collect() }
    }

    /// Returns all settings, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Effective)> {
        self.values.iter().map(|(key, effective)| (key.as_str(), effective))
    }

    /// Returns the effective value of a key with its origin; `None` if the key is unset.
    pub fn get(&self, key: &str) -> Option<&Effective> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, effective)| effective)
    }

    /// Returns true if a key has an effective value.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the effective value of a key; `None` if the value is unset or not an integer.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key)?.value.as_integer()
    }

    /// Returns the effective value of a key; `None` if the value is unset or not a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.value.as_text()
    }

    /// Returns the type of the queue; `None` if a plugin provides the type.
    pub fn kind(&self) -> Option<QueueType> {
        self.kind
    }

    /// Returns the version of the broker.
    pub fn version(&self) -> BrokerVersion {
        self.version
    }

    /// Returns the behavior of the queue when it is full.
    pub fn overflow_behavior(&self) -> OverflowBehavior {
        self.overflow_behavior_with(self.text("overflow"))
    }

    /// Returns the behavior of the queue when it is full, with a different `overflow` value.
    pub(super) fn overflow_behavior_with(&self, overflow: Option<&str>) -> OverflowBehavior {
        OverflowBehavior::of(overflow, self.kind)
    }

    /// Returns the number of redeliveries that the queue allows; `None` if the queue has no delivery limit.
    ///
    /// As of 4.0, a negative limit means no limit. Before 4.0, a negative limit allows a single delivery, like 0.
    pub fn delivery_limit(&self) -> Option<i64> {
        let limit = self.integer("delivery-limit")?;
        (limit >= 0 || !self.version.is_at_least(4, 0)).then_some(limit.max(0))
    }

    /// Returns the delay before each redelivery, in milliseconds. Returns an empty list if delayed retries are disabled
    /// or lack a minimum or a maximum, or if the queue has no delivery limit.
    pub fn redelivery_delays(&self) -> Vec<i64> {
        let delay_range = self.integer("delayed-retry-min").zip(self.integer("delayed-retry-max"));
        let is_delayed = self.text("delayed-retry-type").is_some_and(|it| it != "disabled");
        match delay_range.zip(self.delivery_limit()) {
            Some(((min_delay, max_delay), limit)) if is_delayed => {
                redelivery_delays(min_delay, max_delay, limit).collect()
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Returns the exchange and the routing key that the queue uses to dead-letter messages; `None` if the queue has no
    /// dead-letter exchange. A routing key without an exchange has no effect.
    pub fn dead_lettering(&self) -> Option<DeadLettering> {
        let exchange = ExchangeName::new(self.text("dead-letter-exchange")?);
        let routing_key = self.text("dead-letter-routing-key").map(str::to_owned);
        Some(DeadLettering { exchange, routing_key })
    }

    /// Returns true if dead-lettered messages stay in the queue until their targets confirm them. The broker falls back
    /// to at-most-once unless the queue has a dead-letter exchange and rejects publishes when it is full
    /// (`rabbit_quorum_queue:dlh/5`, 3.10 to 4.3).
    pub fn is_at_least_once(&self) -> bool {
        let strategy = self.text("dead-letter-strategy");
        strategy == Some("at-least-once") && self.has("dead-letter-exchange") && self.overflow_behavior().rejects()
    }
}

/// The policies and the operator policies of a vhost.
#[derive(Clone, Copy)]
pub struct ActivePolicies<'p, 'a> {
    policies: &'p Policies<'a>,
    operator_policies: Option<&'p Policies<'a>>,
    profile: &'p BrokerProfile,
}

impl<'p, 'a> ActivePolicies<'p, 'a> {
    /// Creates a set of policies without operator policies.
    pub fn of(policies: &'p Policies<'a>, profile: &'p BrokerProfile) -> Self {
        Self { policies, operator_policies: None, profile }
    }

    /// Adds operator policies.
    #[must_use]
    pub fn with_operators(self, operator_policies: &'p Policies<'a>) -> Self {
        Self { operator_policies: Some(operator_policies), ..self }
    }

    /// Returns the effective settings of a queue under the policies that most likely govern it.
    pub fn likely(&self, name: &QueueName, queue: &Queue) -> EffectiveSettings {
        let governing = |policies: &Policies<'a>| policies.governing(name.as_str(), queue.into()).likely();
        EffectiveSettings::of(queue, governing(self.policies), self.operator_policies.and_then(governing), self.profile)
    }

    /// For each pair of a policy and an operator policy that can govern the queue, returns the policy and the resulting
    /// effective settings. The most likely pair comes first.
    pub fn possible(&self, name: &QueueName, queue: &Queue) -> Vec<(Option<Named<'a>>, EffectiveSettings)> {
        let governing = |policies: &Policies<'a>| policies.governing(name.as_str(), queue.into());
        let operator_policies = self.operator_policies.map(governing);
        let operator_policies = operator_policies.as_ref().map_or(&[None][..], Governing::possible);
        let policies = governing(self.policies);
        let policies = policies.possible().iter();
        let pairs = policies.flat_map(|policy| operator_policies.iter().map(move |operator| (*policy, *operator)));
        pairs.map(|(policy, operator)| (policy, EffectiveSettings::of(queue, policy, operator, self.profile))).collect()
    }
}

/// The behavior of a full queue when a message is published to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowBehavior {
    /// The queue drops or dead-letters the oldest message.
    DropsOldest,
    /// The queue rejects the new message, and a publisher with confirms receives `basic.nack`.
    Rejects,
    /// The queue dead-letters the new message, and a publisher with confirms receives `basic.nack`.
    RejectsAndDeadLetters,
}

impl OverflowBehavior {
    /// Returns the behavior for an effective `overflow` value and a queue type. The type is `None` if a plugin provides
    /// it.
    ///
    /// A quorum queue accepts `reject-publish-dlx` but still drops the oldest message
    /// (`rabbit_quorum_queue:overflow/3`, 3.8 to 4.3).
    fn of(overflow: Option<&str>, kind: Option<QueueType>) -> Self {
        match overflow {
            Some("reject-publish") => Self::Rejects,
            Some("reject-publish-dlx") if kind != Some(QueueType::Quorum) => Self::RejectsAndDeadLetters,
            Some(_) | None => Self::DropsOldest,
        }
    }

    /// Returns true if the queue rejects the new message.
    pub fn rejects(self) -> bool {
        self != Self::DropsOldest
    }
}

/// Returns the alternate exchange that the argument sets or, without such an argument, the one that the policy sets
/// (`rabbit_policy:get_arg`, all versions). Returns `None` if neither sets an alternate exchange. Operator policies do
/// not support the key.
pub fn effective_alternate(exchange: &Exchange, policy: Option<Named<'_>>) -> Option<Effective> {
    let key = "alternate-exchange";
    let setting = |arguments: &Arguments, source: Source| {
        arguments.get(key).map(|value| Effective { value: value.clone(), source })
    };
    setting(&exchange.arguments, Source::Argument).or_else(|| {
        let Named { name, policy } = policy?;
        setting(&policy.definition, Source::Policy(name.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ApplyTo, Policy, Priority};

    /// A live test would require a cluster.
    #[test]
    fn argument_takes_precedence_over_a_target_group_size() {
        for (argument, policy) in [(3, 5), (5, 3)] {
            let arguments = [
                ("x-queue-type".to_owned(), "quorum".into()),
                ("x-quorum-target-group-size".to_owned(), ArgumentValue::Integer(argument)),
            ];
            let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments: arguments.into() };
            let (name, policy) = (
                PolicyName::from("p"),
                Policy {
                    pattern: String::new(),
                    apply_to: ApplyTo::All,
                    priority: Priority(0.0),
                    definition: [("target-group-size".to_owned(), policy.into())].into(),
                },
            );
            let named = Named { name: &name, policy: &policy };
            let profile = BrokerProfile::of(BrokerVersion::new(4, 0, 5));
            let settings = EffectiveSettings::of(&queue, Some(named), None, &profile);
            let effective = settings.get("target-group-size").unwrap();
            assert_eq!((&effective.value, effective.source.to_string().as_str()), (&argument.into(), "argument"));
        }
    }
}
