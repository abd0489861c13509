//! Policy keys by queue type and version: keys for which the broker skips a policy, and which of argument, policy and
//! operator policy takes precedence.

use super::BrokerProfile;
use crate::model::{ArgumentValue, BrokerVersion, QueueType};
use std::cmp::Ordering;

/// A range of versions, the first included, the last not.
#[derive(Clone, Copy)]
struct Versions(BrokerVersion, BrokerVersion);

const fn v(major: u16, minor: u16, patch: u16) -> BrokerVersion {
    BrokerVersion::new(major, minor, patch)
}

/// Streams, and with them the lists of all types, exist since then.
const LISTS: BrokerVersion = v(3, 9, 0);
/// Nothing is later.
const NEVER: BrokerVersion = v(u16::MAX, 0, 0);

const SINCE_LISTS: Versions = Versions(LISTS, NEVER);
const SINCE_3_10: Versions = Versions(v(3, 10, 0), NEVER);
// Not in 3.12.0 to 3.12.6.
const SINCE_3_12_7: Versions = Versions(v(3, 12, 7), NEVER);
const SINCE_4_3: Versions = Versions(v(4, 3, 0), NEVER);
const ALWAYS: Versions = Versions(v(0, 0, 0), NEVER);
const BEFORE_4_2: Versions = Versions(v(0, 0, 0), v(4, 2, 0));

/// `unsupported_policies` in `rabbit_classic_queue:capabilities`, 3.9 to 4.3. Up to 3.8 a classic queue takes all keys.
const CLASSIC: &[(&str, Versions)] = &[
    ("max-age", SINCE_LISTS),
    ("stream-max-segment-size-bytes", SINCE_LISTS),
    ("initial-cluster-size", SINCE_LISTS),
    ("queue-leader-locator", Versions(LISTS, v(4, 0, 0))),
    ("delivery-limit", SINCE_3_10),
    ("dead-letter-strategy", SINCE_3_10),
    ("max-in-memory-length", SINCE_3_12_7),
    ("max-in-memory-bytes", SINCE_3_12_7),
    ("target-group-size", SINCE_3_12_7),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// The same of `rabbit_quorum_queue`; in 3.8.13 to 3.8.35 a list of its own (`is_policy_applicable`).
const QUORUM: &[(&str, Versions)] = &[
    ("max-priority", ALWAYS),
    ("queue-mode", ALWAYS),
    ("single-active-consumer", BEFORE_4_2),
    ("ha-mode", ALWAYS),
    ("ha-params", ALWAYS),
    ("ha-sync-mode", ALWAYS),
    ("ha-promote-on-shutdown", ALWAYS),
    ("ha-promote-on-failure", ALWAYS),
    ("queue-master-locator", ALWAYS),
    ("message-ttl", Versions(v(0, 0, 0), v(3, 10, 0))),
    ("max-age", SINCE_LISTS),
    ("stream-max-segment-size-bytes", SINCE_LISTS),
    ("initial-cluster-size", SINCE_LISTS),
    ("queue-leader-locator", Versions(LISTS, v(3, 10, 0))),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// Up to 3.8.12 a quorum queue names what it takes, not what it does not.
const TAKEN_BY_OLD_QUORUM: &[&str] = &[
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
    "dead-letter-exchange",
    "dead-letter-routing-key",
];

/// The same of `rabbit_stream_queue`.
const STREAM: &[(&str, Versions)] = &[
    ("expires", ALWAYS),
    ("message-ttl", ALWAYS),
    ("dead-letter-exchange", ALWAYS),
    ("dead-letter-routing-key", ALWAYS),
    ("max-length", ALWAYS),
    ("max-in-memory-length", ALWAYS),
    ("max-in-memory-bytes", ALWAYS),
    ("max-priority", ALWAYS),
    ("overflow", ALWAYS),
    ("queue-mode", ALWAYS),
    ("single-active-consumer", BEFORE_4_2),
    ("delivery-limit", ALWAYS),
    ("ha-mode", ALWAYS),
    ("ha-params", ALWAYS),
    ("ha-sync-mode", ALWAYS),
    ("ha-promote-on-shutdown", ALWAYS),
    ("ha-promote-on-failure", ALWAYS),
    ("queue-master-locator", ALWAYS),
    ("dead-letter-strategy", SINCE_3_10),
    ("target-group-size", SINCE_3_12_7),
    ("selector-fields", SINCE_4_3),
    ("selector-field-max-bytes", SINCE_4_3),
];

/// Whether a policy with this key can govern a queue of that type (`rabbit_queue_type:is_policy_applicable`). A key that
/// is in no list, such as a plugin's, is no obstacle, whether it does anything or not.
pub fn is_taken(key: &str, queue_type: QueueType, version: BrokerVersion) -> bool {
    let refused = match queue_type {
        QueueType::Quorum if version < v(3, 8, 13) => return TAKEN_BY_OLD_QUORUM.contains(&key),
        QueueType::Classic => CLASSIC,
        QueueType::Quorum => QUORUM,
        QueueType::Stream => STREAM,
    };
    !refused.iter().any(|(refused, Versions(first, end))| *refused == key && version >= *first && version < *end)
}

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

/// `rabbit_policies:merge_policy_value` and that of `rabbit_quorum_queue`. The rules came with the keys: `queue-version` in
/// 3.11, `overflow` in 3.12, `target-group-size` in 3.13, a negative `delivery-limit` in 4.0, delayed retries in 4.3; no
/// earlier version takes these in an operator policy, or a negative limit in any.
pub fn operator_wins(key: &str, user: &ArgumentValue, operator: &ArgumentValue) -> bool {
    match key {
        "message-ttl"
        | "expires"
        | "max-length"
        | "max-length-bytes"
        | "max-in-memory-length"
        | "max-in-memory-bytes"
        | "delayed-retry-max" => erlang_order(operator, user) == Ordering::Less,
        "target-group-size" | "delayed-retry-min" => erlang_order(operator, user) == Ordering::Greater,
        "delivery-limit" => !keeps_policy(Precedence::SmallestNonNegative, user, operator),
        // `overflow`, `queue-version`, `delayed-retry-type`, and booleans.
        _ => true,
    }
}

/// Whether the value of a policy is effective, not the different one of an argument.
pub fn keeps_policy(precedence: Precedence, policy: &ArgumentValue, argument: &ArgumentValue) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_depends_on_type_and_version() {
        use QueueType::{Classic, Quorum, Stream};
        for (key, kind, version, taken) in [
            ("delivery-limit", Classic, v(3, 8, 9), true),
            ("delivery-limit", Classic, v(3, 10, 8), false),
            ("max-in-memory-length", Classic, v(3, 12, 6), true),
            ("max-in-memory-length", Classic, v(3, 12, 7), false),
            ("queue-leader-locator", Classic, v(3, 13, 7), false),
            ("queue-leader-locator", Classic, v(4, 0, 5), true),
            ("overflow", Quorum, v(3, 8, 9), false),
            ("overflow", Quorum, v(3, 8, 13), true),
            ("message-ttl", Quorum, v(3, 9, 0), false),
            ("message-ttl", Quorum, v(3, 10, 8), true),
            ("ha-sync-batch-size", Quorum, v(3, 10, 8), true),
            ("single-active-consumer", Stream, v(4, 2, 0), true),
            ("max-length-bytes", Stream, v(4, 0, 5), true),
            ("stream-filter-size-bytes", Classic, v(4, 0, 5), true),
            ("federation-upstream", Stream, v(4, 0, 5), true),
        ] {
            assert_eq!(is_taken(key, kind, version), taken, "{key} on {kind}, {version}");
        }
    }
}
