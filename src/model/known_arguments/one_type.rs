//! The arguments that only one queue type supports: first the arguments of quorum queues, then the arguments of classic
//! queues, then the arguments of streams.

use super::argument::{
    ANY, Check, KnownArgument, LISTED, STREAMS, Support, UNCHECKED, ValueKind, Versions, always, check, support,
};
use crate::model::queue::QueueType;
use crate::model::version::BrokerVersion;

const SINCE_3_10: Versions = Versions::since(3, 10);
const SINCE_4_3: Versions = Versions::since(4, 3);
/// On RabbitMQ 3.9, classic queues list the memory limits of quorum queues, which have no effect on classic queues.
const CLASSIC_OF_3_9: &[Support] = &[support(QueueType::Classic, IN_3_9, &[IN_3_9])];
const IN_3_9: Versions = Versions::since(3, 9).until(3, 10);
const QUORUM_OF_4_3: &[Support] = &[support(QueueType::Quorum, SINCE_4_3, &[SINCE_4_3])];

pub(super) const DEAD_LETTER_STRATEGY: KnownArgument = KnownArgument {
    name: "x-dead-letter-strategy",
    key: "deadLetterStrategy",
    value: ValueKind::OneOf(&["at-most-once", "at-least-once"]),
    checks: &[Check { versions: SINCE_3_10, value: ValueKind::OneOf(&["at-most-once", "at-least-once"]) }],
    support: &[support(QueueType::Quorum, SINCE_3_10, &[SINCE_3_10])],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("dead-letter-strategy"),
    doc: "With `at-most-once`, messages can be lost while they are being dead-lettered; `at-least-once` needs \
          `overflow: reject-publish`.",
};

/// No version checks the value of this argument: `"five"` is accepted, and means no limit.
pub(super) const DELIVERY_LIMIT: KnownArgument = KnownArgument {
    name: "x-delivery-limit",
    key: "deliveryLimit",
    value: ValueKind::Count(-1, ANY),
    checks: UNCHECKED,
    support: &[always(QueueType::Quorum)],
    idle: &[],
    is_known_to_3_8: false,
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
    is_known_to_3_8: true,
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
    is_known_to_3_8: true,
    policy_key: Some("max-in-memory-bytes"),
    doc: "The maximum number of bytes in memory; no effect since 3.10.",
};

const IN_MEMORY: &[Support] = &[Support {
    queue_type: QueueType::Quorum,
    accepted: Versions::ALL,
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
    is_known_to_3_8: true,
    policy_key: None,
    doc: "The initial number of replicas of a quorum queue.",
};

/// RabbitMQ 3.13 and later read this argument, but no version lists it
/// (`rabbit_quorum_queue_periodic_membership_reconciliation:get_target_size`, 3.13.0 to 4.3.5). The broker compares a
/// tuple of the argument's AMQP type and value with the number in the policy: `max({Type, N}, PolicyN)`. In Erlang, a
/// tuple is greater than any number.
pub(super) const TARGET_GROUP_SIZE: KnownArgument = KnownArgument {
    name: "x-quorum-target-group-size",
    key: "quorumTargetGroupSize",
    value: ValueKind::Count(1, ANY),
    checks: UNCHECKED,
    support: &[support(QueueType::Quorum, Versions::since(3, 13), &[])],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("target-group-size"),
    doc: "The number of replicas to which the broker grows the queue, if automatic growth is enabled. If set as an \
          argument, any number means all nodes.",
};

/// Quorum queues list this argument on 4.3.0 and later, and check its value on 4.3.2 and later.
pub(super) const CONSUMER_DISCONNECTED_TIMEOUT: KnownArgument = KnownArgument {
    name: "x-consumer-disconnected-timeout",
    key: "consumerDisconnectedTimeout",
    value: ValueKind::Duration(0, ANY),
    checks: &[Check { versions: Versions::since_patch(4, 3, 2), value: ValueKind::Duration(0, ANY) }],
    support: QUORUM_OF_4_3,
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("consumer-disconnected-timeout"),
    doc: "How long the broker reserves the messages of a disconnected consumer.",
};

/// No version checks the value of this argument, but the broker checks the value of the policy key. An unknown word
/// silently disables the feature.
pub(super) const DELAYED_RETRY_TYPE: KnownArgument = KnownArgument {
    name: "x-delayed-retry-type",
    key: "delayedRetryType",
    value: ValueKind::OneOf(&["disabled", "all", "failed", "returned"]),
    checks: UNCHECKED,
    support: QUORUM_OF_4_3,
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("delayed-retry-type"),
    doc: "The kind of returned messages that the broker delays before it redelivers them.",
};

pub(super) const DELAYED_RETRY_MIN: KnownArgument = KnownArgument {
    name: "x-delayed-retry-min",
    key: "delayedRetryMin",
    value: ValueKind::Duration(0, ANY),
    checks: UNCHECKED,
    support: QUORUM_OF_4_3,
    idle: &[],
    is_known_to_3_8: false,
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
    is_known_to_3_8: false,
    policy_key: Some("delayed-retry-max"),
    doc: "The longest delay.",
};

pub(super) const MAX_PRIORITY: KnownArgument = KnownArgument {
    name: "x-max-priority",
    key: "maxPriority",
    value: ValueKind::Count(0, 255),
    checks: &[check(ValueKind::Count(0, 255))],
    support: &[always(QueueType::Classic)],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: None,
    doc: "Makes the queue a priority queue with priorities from 0 to this value; values from 1 to 10 are sufficient.",
};

/// RabbitMQ 4.3 still compares this argument, but no longer checks its value.
pub(super) const QUEUE_MODE: KnownArgument = KnownArgument {
    name: "x-queue-mode",
    key: "queueMode",
    value: ValueKind::OneOf(&["default", "lazy"]),
    checks: &[Check { versions: Versions::ALL.until(4, 3), value: ValueKind::OneOf(&["default", "lazy"]) }],
    support: &[Support { no_effect_since: Some(BrokerVersion::new(3, 12, 0)), ..always(QueueType::Classic) }],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: Some("queue-mode"),
    doc: "`lazy` keeps messages on disk; no effect since 3.12.",
};

pub(super) const QUEUE_VERSION: KnownArgument = KnownArgument {
    name: "x-queue-version",
    key: "queueVersion",
    value: ValueKind::Count(1, 2),
    checks: &[
        Check { versions: Versions::since(3, 10).until(4, 3), value: ValueKind::Count(1, 2) },
        Check { versions: Versions::since(4, 3), value: ValueKind::Count(2, 2) },
    ],
    support: &[Support {
        no_effect_since: Some(BrokerVersion::new(4, 0, 0)),
        ..support(QueueType::Classic, Versions::since(3, 10), &[Versions::since(3, 10)])
    }],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("queue-version"),
    doc: "The storage format of a classic queue; no effect since 4.0, which supports only version 2. Since 4.3, only 2 \
          is accepted.",
};

/// No version checks the value of this argument, and RabbitMQ 3.13 and earlier crash on unknown words. All versions
/// since 3.9 list the argument, but 4.3 refuses it unless the `queue_master_locator` deprecated feature is permitted
/// (`rabbit_classic_queue:validate_arguments`).
pub(super) const QUEUE_MASTER_LOCATOR: KnownArgument = KnownArgument {
    name: "x-queue-master-locator",
    key: "queueMasterLocator",
    value: ValueKind::OneOf(&["client-local", "min-masters", "random"]),
    checks: UNCHECKED,
    support: &[support(QueueType::Classic, Versions::ALL.until(4, 3), LISTED)],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("queue-master-locator"),
    doc: "The rule that selects the node on which a classic queue is created. RabbitMQ 4.3 refuses this argument; use \
          `queueLeaderLocator`.",
};

/// The versions that support stream filters.
const FILTERS: Versions = Versions::since(3, 13);

/// Versions before 4.3.6 compare this argument as a string. Later versions, including 4.3.6, compare it as an age
/// (`rabbit_amqqueue:normalize_max_age`).
pub(super) const MAX_AGE: KnownArgument = KnownArgument {
    name: "x-max-age",
    key: "maxAge",
    value: ValueKind::MaxAge,
    checks: &[Check { versions: STREAMS, value: ValueKind::MaxAge }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("max-age"),
    doc: "The age after which the broker deletes segments of the stream.",
};

pub(super) const MAX_SEGMENT_SIZE_BYTES: KnownArgument = KnownArgument {
    name: "x-stream-max-segment-size-bytes",
    key: "streamMaxSegmentSizeBytes",
    value: ValueKind::Size(MAX_SEGMENT_BYTES),
    checks: &[Check { versions: STREAMS, value: ValueKind::Size(ANY) }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("stream-max-segment-size-bytes"),
    doc: "The maximum size of a segment file of the stream.",
};

/// The maximum size of a segment, in bytes. Only streams check this maximum, after the checks for all queue types
/// (`rabbit_stream_queue:check_max_segment_size_bytes`, `MAX_STREAM_MAX_SEGMENT_SIZE`).
pub const MAX_SEGMENT_BYTES: i64 = 3_000_000_000;

/// Streams check the range of this argument in all versions (`rabbit_stream_queue:check_filter_size`), even in versions
/// that do not list it. Streams list the argument in 4.2.7 and later releases of 4.2, and in 4.3.1 and later.
pub(super) const FILTER_SIZE_BYTES: KnownArgument = KnownArgument {
    name: "x-stream-filter-size-bytes",
    key: "streamFilterSizeBytes",
    value: ValueKind::Count(16, 255),
    checks: &[Check { versions: FILTERS, value: ValueKind::Count(0, ANY) }],
    support: &[support(
        QueueType::Stream,
        FILTERS,
        &[Versions::since_patch(4, 2, 7).until(4, 3), Versions::since_patch(4, 3, 1)],
    )],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("stream-filter-size-bytes"),
    doc: "The size of the filter of each chunk, in bytes.",
};

pub(super) const INITIAL_CLUSTER_SIZE: KnownArgument = KnownArgument {
    name: "x-initial-cluster-size",
    key: "initialClusterSize",
    value: ValueKind::Count(1, ANY),
    checks: &[Check { versions: STREAMS, value: ValueKind::Count(1, ANY) }],
    support: &[always(QueueType::Stream)],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("initial-cluster-size"),
    doc: "The initial number of replicas of a stream.",
};
