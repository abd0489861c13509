//! The arguments that only quorum queues support.

use super::{ANY, Check, KnownArgument, LISTED, Support, UNCHECKED, ValueKind, Versions, always, check, supported};
use crate::model::{BrokerVersion, QueueType};

const SINCE_3_10: Versions = Versions::since(3, 10);
const SINCE_4_3: Versions = Versions::since(4, 3);
/// Classic queues of 3.9 listed the memory limits of quorum queues, which had no effect.
const CLASSIC_OF_3_9: &[Support] = &[supported(QueueType::Classic, IN_3_9, &[IN_3_9])];
const IN_3_9: Versions = Versions::since(3, 9).until(3, 10);
const QUORUM_OF_4_3: &[Support] = &[supported(QueueType::Quorum, SINCE_4_3, &[SINCE_4_3])];

pub(super) const DEAD_LETTER_STRATEGY: KnownArgument = KnownArgument {
    name: "x-dead-letter-strategy",
    key: "deadLetterStrategy",
    value: ValueKind::OneOf(&["at-most-once", "at-least-once"]),
    checks: &[Check { versions: SINCE_3_10, value: ValueKind::OneOf(&["at-most-once", "at-least-once"]) }],
    support: &[supported(QueueType::Quorum, SINCE_3_10, &[SINCE_3_10])],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("dead-letter-strategy"),
    doc: "With `at-most-once`, messages can be lost while they are dead-lettered; `at-least-once` needs `overflow: \
          reject-publish`.",
};

/// No version checks its value: `"five"` is accepted, and means no limit.
pub(super) const DELIVERY_LIMIT: KnownArgument = KnownArgument {
    name: "x-delivery-limit",
    key: "deliveryLimit",
    value: ValueKind::Count(-1, ANY),
    checks: UNCHECKED,
    support: &[always(QueueType::Quorum)],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("delivery-limit"),
    doc: "The maximum number of redeliveries of a message before it is dead-lettered; N means N + 1 deliveries.",
};

pub(super) const MAX_IN_MEMORY_LENGTH: KnownArgument = KnownArgument {
    name: "x-max-in-memory-length",
    key: "maxInMemoryLength",
    value: ValueKind::Count(0, ANY),
    checks: &[check(ValueKind::Count(0, ANY))],
    support: IN_MEMORY,
    idle: CLASSIC_OF_3_9,
    known_to_3_8: true,
    policy_key: Some("max-in-memory-length"),
    doc: "The maximum number of messages in memory; no effect since 3.10.",
};

pub(super) const MAX_IN_MEMORY_BYTES: KnownArgument = KnownArgument {
    name: "x-max-in-memory-bytes",
    key: "maxInMemoryBytes",
    value: ValueKind::Size(ANY),
    checks: &[check(ValueKind::Size(ANY))],
    support: IN_MEMORY,
    idle: CLASSIC_OF_3_9,
    known_to_3_8: true,
    policy_key: Some("max-in-memory-bytes"),
    doc: "The maximum number of bytes in memory; no effect since 3.10.",
};

const IN_MEMORY: &[Support] = &[Support {
    queue_type: QueueType::Quorum,
    taken: Versions::ALL,
    listed: LISTED,
    no_effect_since: Some(BrokerVersion::new(3, 10, 0)),
}];

pub(super) const INITIAL_GROUP_SIZE: KnownArgument = KnownArgument {
    name: "x-quorum-initial-group-size",
    key: "quorumInitialGroupSize",
    value: ValueKind::Count(1, ANY),
    checks: &[check(ValueKind::Count(1, ANY))],
    support: &[always(QueueType::Quorum)],
    idle: &[],
    known_to_3_8: true,
    policy_key: None,
    doc: "The initial number of replicas of a quorum queue.",
};

/// Read since 3.13, but not listed in any version
/// (`rabbit_quorum_queue_periodic_membership_reconciliation:get_target_size`, 3.13.0 to 4.3.5). The broker compares the
/// value together with its AMQP type, `max({Type, N}, PolicyN)`, and such a pair is greater than any number.
pub(super) const TARGET_GROUP_SIZE: KnownArgument = KnownArgument {
    name: "x-quorum-target-group-size",
    key: "quorumTargetGroupSize",
    value: ValueKind::Count(1, ANY),
    checks: UNCHECKED,
    support: &[supported(QueueType::Quorum, Versions::since(3, 13), &[])],
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("target-group-size"),
    doc: "The number of replicas that the broker adds automatically, if this is enabled. As an argument, any number means all nodes; in a policy, the number counts.",
};

/// Listed since 4.3.0, checked since 4.3.2.
pub(super) const CONSUMER_DISCONNECTED_TIMEOUT: KnownArgument = KnownArgument {
    name: "x-consumer-disconnected-timeout",
    key: "consumerDisconnectedTimeout",
    value: ValueKind::Duration(0, ANY),
    checks: &[Check { versions: Versions::since_patch(4, 3, 2), value: ValueKind::Duration(0, ANY) }],
    support: QUORUM_OF_4_3,
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("consumer-disconnected-timeout"),
    doc: "The time for which the broker reserves the messages of a disconnected consumer.",
};

/// No version checks its value, unlike that of the policy key. With an unknown word, the feature is silently disabled.
pub(super) const DELAYED_RETRY_TYPE: KnownArgument = KnownArgument {
    name: "x-delayed-retry-type",
    key: "delayedRetryType",
    value: ValueKind::OneOf(&["disabled", "all", "failed", "returned"]),
    checks: UNCHECKED,
    support: QUORUM_OF_4_3,
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("delayed-retry-type"),
    doc: "The returned messages that are delayed before they are redelivered.",
};

pub(super) const DELAYED_RETRY_MIN: KnownArgument = KnownArgument {
    name: "x-delayed-retry-min",
    key: "delayedRetryMin",
    value: ValueKind::Duration(0, ANY),
    checks: UNCHECKED,
    support: QUORUM_OF_4_3,
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("delayed-retry-min"),
    doc: "The first delay; the N-th delay is N times as long.",
};

pub(super) const DELAYED_RETRY_MAX: KnownArgument = KnownArgument {
    name: "x-delayed-retry-max",
    key: "delayedRetryMax",
    value: ValueKind::Duration(0, ANY),
    checks: UNCHECKED,
    support: QUORUM_OF_4_3,
    idle: &[],
    known_to_3_8: false,
    policy_key: Some("delayed-retry-max"),
    doc: "The longest delay.",
};
