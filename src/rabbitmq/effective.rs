//! Which value holds where an argument, a policy and an operator policy say different things.

use super::BrokerProfile;
use super::governing::Named;
use crate::model::known_arguments::KnownArgument;
use crate::model::{ArgumentValue, Arguments, BrokerVersion, Exchange, PolicyName, Queue, QueueType};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// Who wins when a queue's argument and a policy set the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The smaller number.
    Smallest,
    /// The smaller number, but the larger where one of them is negative, which means "no limit".
    SmallestNonNegative,
    /// The larger number.
    Largest,
    /// The argument.
    Argument,
    /// The policy.
    Policy,
}

/// What a quorum queue has that says nothing (`rabbit_quorum_queue`, 4.0 and later; before, there was no limit).
const DEFAULT_DELIVERY_LIMIT: i64 = 20;

/// Who wins for a policy key (`max-length`) on a type of queue; `None` where a policy has no say over a live queue of that
/// type: the key is not looked at, or only while the queue is made (`queue-leader-locator`, `initial-cluster-size`).
///
/// Sources: `rabbit_amqqueue_process:process_args_policy`, `rabbit_quorum_queue:ra_machine_config` and
/// `gather_policy_config`, `rabbit_stream_queue:update_stream_conf`, at 3.8.9 to 4.3.5, and live brokers: `tests/live/effective`.
pub fn precedence(key: &str, queue_type: QueueType, profile: &BrokerProfile) -> Option<Precedence> {
    let since = |major, minor, patch| profile.version >= BrokerVersion::new(major, minor, patch);
    // `rabbit_channel:get_queue_consumer_timeout` (v4.0.5, line 2697): any type. From 4.3.0 on `rabbit_queue_type` hands it to
    // the queue (v4.3.5, line 948), and `rabbit_fifo` alone does something with it.
    if key == "consumer-timeout" {
        let is_looked_at = since(3, 12, 0) && (queue_type == QueueType::Quorum || !since(4, 3, 0));
        return is_looked_at.then_some(Precedence::Smallest);
    }
    match queue_type {
        QueueType::Classic => match key {
            "message-ttl" | "expires" | "max-length" | "max-length-bytes" => Some(Precedence::Smallest),
            "dead-letter-exchange" | "dead-letter-routing-key" | "overflow" => Some(Precedence::Argument),
            // No effect since 3.12, not even looked at since 4.3.
            "queue-mode" => (!since(4, 3, 0)).then_some(Precedence::Argument),
            "queue-version" => (since(3, 10, 0) && !since(4, 3, 0)).then_some(Precedence::Argument),
            _ => None,
        },
        QueueType::Quorum => match key {
            "max-length" | "max-length-bytes" => Some(Precedence::Smallest),
            "dead-letter-exchange" | "dead-letter-routing-key" => Some(Precedence::Argument),
            "dead-letter-strategy" => since(3, 10, 0).then_some(Precedence::Argument),
            "message-ttl" => since(3, 10, 0).then_some(Precedence::Smallest),
            "delivery-limit" if since(4, 0, 0) => Some(Precedence::SmallestNonNegative),
            "delivery-limit" => Some(Precedence::Smallest),
            "expires" if since(4, 0, 0) => Some(Precedence::Smallest),
            // 3.8.9 looks at neither.
            "overflow" | "expires" => since(3, 8, 10).then_some(Precedence::Policy),
            "max-in-memory-length" | "max-in-memory-bytes" => (!since(4, 0, 0)).then_some(Precedence::Smallest),
            // Not seen live, because it takes a cluster: v4.0.5 and
            // v3.13.7:rabbit_quorum_queue_periodic_membership_reconciliation.erl:217.
            "target-group-size" => since(3, 13, 0).then_some(Precedence::Largest),
            "delayed-retry-type" => since(4, 3, 0).then_some(Precedence::Policy),
            "delayed-retry-min" | "delayed-retry-max" => since(4, 3, 0).then_some(Precedence::Smallest),
            // Not seen live, because it takes a cluster: v4.3.5:rabbit_quorum_queue.erl:1960.
            "consumer-disconnected-timeout" => since(4, 3, 0).then_some(Precedence::Smallest),
            _ => None,
        },
        QueueType::Stream => match key {
            "max-length-bytes" | "max-age" | "stream-max-segment-size-bytes" => {
                since(3, 9, 0).then_some(Precedence::Policy)
            }
            // Not seen live: how large a filter is shows nowhere. v4.0.5:rabbit_stream_queue.erl:1070.
            "stream-filter-size-bytes" => since(3, 13, 0).then_some(Precedence::Policy),
            _ => None,
        },
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The broker's own.
    Default,
    /// The object's argument.
    Argument,
    /// The policy of that name.
    Policy(PolicyName),
    /// The operator policy of that name.
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

/// A value that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The value.
    pub value: ArgumentValue,
    /// Who said so.
    pub source: Source,
}

/// A policy and an operator policy merged, as the broker reports it (`effective_policy_definition`), with where each value
/// comes from (`rabbit_policy:merge_operator_definitions`).
pub fn effective_definition(policy: Option<Named<'_>>, operator: Option<Named<'_>>) -> BTreeMap<String, Effective> {
    let mut merged = BTreeMap::new();
    if let Some(Named { name, policy }) = policy {
        let value = |value: &ArgumentValue| Effective { value: value.clone(), source: Source::Policy(name.clone()) };
        merged.extend(policy.definition.iter().map(|(key, said)| (key.clone(), value(said))));
    }
    if let Some(Named { name, policy }) = operator {
        for (key, bound) in &policy.definition {
            let wins = merged.get(key).is_none_or(|user: &Effective| operator_wins(key, &user.value, bound));
            if wins {
                let source = Source::OperatorPolicy(name.clone());
                merged.insert(key.clone(), Effective { value: bound.clone(), source });
            }
        }
    }
    merged
}

/// `rabbit_policies:merge_policy_value` and that of `rabbit_quorum_queue`. The rules came with the keys: `queue-version` in
/// 3.11, `overflow` in 3.12, `target-group-size` in 3.13, a negative `delivery-limit` in 4.0, delayed retries in 4.3; no
/// earlier version takes these in an operator policy, or a negative limit in any.
fn operator_wins(key: &str, user: &ArgumentValue, operator: &ArgumentValue) -> bool {
    match key {
        "message-ttl"
        | "expires"
        | "max-length"
        | "max-length-bytes"
        | "max-in-memory-length"
        | "max-in-memory-bytes"
        | "delayed-retry-max" => erlang_order(operator, user) == Ordering::Less,
        "target-group-size" | "delayed-retry-min" => erlang_order(operator, user) == Ordering::Greater,
        "delivery-limit" => !keeps_first(Precedence::SmallestNonNegative, user, operator),
        // `overflow`, `queue-version`, `delayed-retry-type`, and booleans.
        _ => true,
    }
}

/// Whether the first of two values holds: the policy's, of a policy and an argument.
fn keeps_first(precedence: Precedence, policy: &ArgumentValue, argument: &ArgumentValue) -> bool {
    let negative = |value: &ArgumentValue| value.as_integer().is_some_and(|number| number < 0);
    match precedence {
        Precedence::Argument => false,
        Precedence::Policy => true,
        Precedence::SmallestNonNegative if negative(policy) || negative(argument) => {
            erlang_order(policy, argument) != Ordering::Less
        }
        Precedence::Smallest | Precedence::SmallestNonNegative => erlang_order(policy, argument) != Ordering::Greater,
        Precedence::Largest => erlang_order(policy, argument) != Ordering::Less,
    }
}

/// Erlang's order of terms, as far as it matters: numbers before everything else. (`x-delivery-limit: five` is taken.)
fn erlang_order(a: &ArgumentValue, b: &ArgumentValue) -> Ordering {
    let number = |value: &ArgumentValue| match value {
        ArgumentValue::Integer(number) => Some(*number as f64),
        ArgumentValue::Float(number) => Some(number.0),
        ArgumentValue::Null
        | ArgumentValue::Boolean(_)
        | ArgumentValue::Text(_)
        | ArgumentValue::List(_)
        | ArgumentValue::Table(_) => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// What holds for a live queue: argument, policy and operator policy together, by policy key. Only keys that its type looks
/// at; none of a plugin's type.
pub fn effective(
    queue: &Queue,
    policy: Option<Named<'_>>,
    operator: Option<Named<'_>>,
    profile: &BrokerProfile,
) -> BTreeMap<String, Effective> {
    let Some(kind) = queue.queue_type() else { return BTreeMap::new() };
    let mut holds = effective_definition(policy, operator);
    holds.retain(|key, _| precedence(key, kind, profile).is_some());
    for (name, argument) in &queue.arguments {
        let Some(key) = KnownArgument::named(name).and_then(|known| known.policy_key) else { continue };
        let Some(precedence) = precedence(key, kind, profile) else { continue };
        if !holds.get(key).is_some_and(|policy| keeps_first(precedence, &policy.value, argument)) {
            holds.insert(key.to_owned(), Effective { value: argument.clone(), source: Source::Argument });
        }
    }
    if kind == QueueType::Quorum && profile.version.is_at_least(4, 0) {
        let default = || Effective { value: DEFAULT_DELIVERY_LIMIT.into(), source: Source::Default };
        holds.entry("delivery-limit".to_owned()).or_insert_with(default);
    }
    holds
}

/// The behavior of a full queue when a message is published to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest message is dropped or dead-lettered.
    DropsOldest,
    /// The new message is refused: the publisher gets `basic.nack`.
    Refuses,
    /// The new message is dead-lettered, and the publisher gets `basic.nack`.
    RefusesAndDeadLetters,
}

impl WhenFull {
    /// Returns what the effective `overflow` of a queue means for its type; `None` is a type of a plugin.
    ///
    /// A quorum queue accepts `reject-publish-dlx` and drops the oldest message (`rabbit_quorum_queue:overflow/3`, 3.8 to
    /// 4.3).
    pub fn of(overflow: Option<&ArgumentValue>, kind: Option<QueueType>) -> Self {
        match overflow.and_then(ArgumentValue::as_text) {
            Some("reject-publish") => Self::Refuses,
            Some("reject-publish-dlx") if kind != Some(QueueType::Quorum) => Self::RefusesAndDeadLetters,
            Some(_) | None => Self::DropsOldest,
        }
    }

    /// Whether the publisher is refused.
    pub fn refuses(self) -> bool {
        self != Self::DropsOldest
    }
}

/// The alternate exchange of an exchange: its argument, else the policy's (`rabbit_policy:get_arg`, all versions). No
/// operator policy can have the key.
pub fn effective_alternate(exchange: &Exchange, policy: Option<Named<'_>>) -> Option<Effective> {
    let key = "alternate-exchange";
    let said = |arguments: &Arguments, source: Source| {
        arguments.get(key).map(|value| Effective { value: value.clone(), source })
    };
    said(&exchange.arguments, Source::Argument).or_else(|| {
        let Named { name, policy } = policy?;
        said(&policy.definition, Source::Policy(name.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ApplyTo, Policy, Priority};

    /// It takes a cluster to see it: the one rule without a live test that is not of its own kind elsewhere.
    #[test]
    fn the_larger_target_group_holds() {
        for (argument, policy, source) in [(3, 5, "policy p"), (5, 3, "argument")] {
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
            let holds = effective(&queue, Some(named), None, &BrokerProfile::of(BrokerVersion::new(4, 0, 5)));
            let held = &holds["target-group-size"];
            assert_eq!((held.value.clone(), held.source.to_string().as_str()), (5.into(), source));
        }
    }
}
