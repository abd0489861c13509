//! The arguments that more than one queue type supports.

use super::argument::{
    ANY, Check, KnownArgument, LISTED, Support, TEN_YEARS, ValueKind, Versions, always, check, support,
};
use crate::model::queue::QueueType;

/// On 3.8.9 and earlier, quorum queues refuse `x-expires` and `x-overflow`
/// (`rabbit_quorum_queue:check_invalid_arguments`).
const SINCE_3_8_10: Versions = Versions::since_patch(3, 8, 10);
const SINCE_3_10: Versions = Versions::since(3, 10);

/// On RabbitMQ 3.9, streams list some arguments of other queue types, which have no effect on streams.
const STREAM_OF_3_9: &[Support] = &[support(QueueType::Stream, IN_3_9, &[IN_3_9])];
const IN_3_9: Versions = Versions::since(3, 9).until(3, 10);

pub(super) const EXPIRES: KnownArgument = KnownArgument {
    name: "x-expires",
    key: "expires",
    value: ValueKind::Duration(1, ANY),
    checks: &[
        Check { versions: Versions::ALL.until(3, 10), value: ValueKind::Duration(1, ANY) },
        Check { versions: SINCE_3_10, value: ValueKind::Duration(1, TEN_YEARS) },
    ],
    support: &[always(QueueType::Classic), support(QueueType::Quorum, SINCE_3_8_10, LISTED)],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: Some("expires"),
    doc: "The broker deletes the queue and its messages after the queue has been unused for this long.",
};

pub(super) const MESSAGE_TTL: KnownArgument = KnownArgument {
    name: "x-message-ttl",
    key: "messageTtl",
    value: ValueKind::Duration(0, ANY),
    checks: &[
        Check { versions: Versions::ALL.until(3, 10), value: ValueKind::Duration(0, ANY) },
        Check { versions: SINCE_3_10, value: ValueKind::Duration(0, TEN_YEARS) },
    ],
    support: &[always(QueueType::Classic), support(QueueType::Quorum, SINCE_3_10, &[SINCE_3_10])],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: Some("message-ttl"),
    doc: "A message that waits longer than this is dead-lettered, or dropped if there is no dead-letter exchange.",
};

pub(super) const DEAD_LETTER_EXCHANGE: KnownArgument = KnownArgument {
    name: "x-dead-letter-exchange",
    key: "deadLetter",
    value: ValueKind::Text,
    checks: &[check(ValueKind::Text)],
    support: &[always(QueueType::Classic), always(QueueType::Quorum)],
    idle: STREAM_OF_3_9,
    is_known_to_3_8: true,
    policy_key: Some("dead-letter-exchange"),
    doc: "The exchange that receives messages that are rejected, expire or overflow.",
};

/// The broker checks the type of this argument, and that `x-dead-letter-exchange` is also set (`check_dlxrk_arg`).
pub(super) const DEAD_LETTER_ROUTING_KEY: KnownArgument = KnownArgument {
    name: "x-dead-letter-routing-key",
    key: "deadLetter",
    value: ValueKind::Text,
    checks: &[check(ValueKind::Text)],
    support: &[always(QueueType::Classic), always(QueueType::Quorum)],
    idle: STREAM_OF_3_9,
    is_known_to_3_8: true,
    policy_key: Some("dead-letter-routing-key"),
    doc: "The routing key of dead-lettered messages. Without it, messages keep their own routing key.",
};

pub(super) const MAX_LENGTH: KnownArgument = KnownArgument {
    name: "x-max-length",
    key: "maxLength",
    value: ValueKind::Count(0, ANY),
    checks: &[check(ValueKind::Count(0, ANY))],
    support: &[always(QueueType::Classic), always(QueueType::Quorum)],
    idle: STREAM_OF_3_9,
    is_known_to_3_8: true,
    policy_key: Some("max-length"),
    doc: "The maximum number of ready messages. A queue that exceeds it overflows.",
};

pub(super) const MAX_LENGTH_BYTES: KnownArgument = KnownArgument {
    name: "x-max-length-bytes",
    key: "maxLengthBytes",
    value: ValueKind::Size(ANY),
    checks: &[check(ValueKind::Size(ANY))],
    support: &[always(QueueType::Classic), always(QueueType::Quorum), always(QueueType::Stream)],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: Some("max-length-bytes"),
    doc: "The maximum total size of message bodies. A queue that exceeds it overflows; a stream deletes its oldest segments.",
};

pub(super) const OVERFLOW: KnownArgument = KnownArgument {
    name: "x-overflow",
    key: "overflow",
    value: ValueKind::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]),
    checks: &[check(ValueKind::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]))],
    support: &[always(QueueType::Classic), support(QueueType::Quorum, SINCE_3_8_10, LISTED)],
    idle: &[],
    is_known_to_3_8: true,
    policy_key: Some("overflow"),
    doc: "The behavior of a full queue: drop the oldest message, or reject the newest.",
};

pub(super) const SINGLE_ACTIVE_CONSUMER: KnownArgument = KnownArgument {
    name: "x-single-active-consumer",
    key: "singleActiveConsumer",
    value: ValueKind::Boolean,
    checks: &[check(ValueKind::Boolean)],
    support: &[always(QueueType::Classic), always(QueueType::Quorum)],
    idle: STREAM_OF_3_9,
    is_known_to_3_8: true,
    policy_key: None,
    doc: "Only one consumer at a time receives messages; the other consumers are on standby.",
};

/// Classic queues list this argument on 4.0 and later. On 4.0 to 4.2, this requires the `rabbitmq_4.0.0` feature flag,
/// which is enabled on new clusters.
pub(super) const QUEUE_LEADER_LOCATOR: KnownArgument = KnownArgument {
    name: "x-queue-leader-locator",
    key: "queueLeaderLocator",
    value: ValueKind::OneOf(&["client-local", "balanced", "random", "least-leaders", "min-masters"]),
    checks: &[
        Check { versions: IN_3_9, value: ValueKind::OneOf(&["client-local", "random", "least-leaders"]) },
        Check {
            versions: SINCE_3_10.until(4, 0),
            value: ValueKind::OneOf(&["client-local", "balanced", "random", "least-leaders"]),
        },
        Check {
            versions: Versions::since(4, 0),
            value: ValueKind::OneOf(&["client-local", "balanced", "random", "least-leaders", "min-masters"]),
        },
    ],
    support: &[
        support(QueueType::Classic, Versions::since(4, 0), &[Versions::since(4, 0)]),
        support(QueueType::Quorum, SINCE_3_10, &[SINCE_3_10]),
        always(QueueType::Stream),
    ],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("queue-leader-locator"),
    doc: "The rule that selects the node of the queue's leader: `client-local` or `balanced`. On 3.10 and later, the other values \
          are old names for `balanced`.",
};

/// On 3.12 to 4.2, channels read this argument for every queue type (`rabbit_channel:get_queue_consumer_timeout`). On
/// 4.3 and later, only quorum queues read it (`rabbit_fifo`; measured on 4.3.6). On 4.3.2 and later, quorum queues list
/// the argument, so the other queue types refuse it.
pub(super) const CONSUMER_TIMEOUT: KnownArgument = KnownArgument {
    name: "x-consumer-timeout",
    key: "consumerTimeout",
    value: ValueKind::Duration(0, ANY),
    checks: &[Check { versions: Versions::since_patch(4, 3, 2), value: ValueKind::Duration(0, ANY) }],
    support: &[
        support(QueueType::Classic, Versions::since(3, 12).until(4, 3), &[]),
        support(QueueType::Quorum, Versions::since(3, 12), &[Versions::since_patch(4, 3, 2)]),
        support(QueueType::Stream, Versions::since(3, 12).until(4, 3), &[]),
    ],
    idle: &[],
    is_known_to_3_8: false,
    policy_key: Some("consumer-timeout"),
    doc: "The maximum time for which a consumer can hold a message without acknowledging it.",
};
