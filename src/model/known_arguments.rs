//! The table of known arguments: what each `x-` argument of a queue is, which types take it, which brokers compare it.
//!
//! Validation, the schema, verdicts, advice and docs all read this one table. Sources: the `capabilities()` of
//! `rabbit_classic_queue`, `rabbit_quorum_queue` and `rabbit_stream_queue` and `declare_args()` of `rabbit_amqqueue`,
//! at 3.8, 3.10, 3.13, 4.0, 4.2 and 4.3, and live brokers of 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

use super::{BrokerVersion, QueueType};

/// What a value of an argument looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Milliseconds, at least the first, at most the second.
    Duration(i64, i64),
    /// Bytes, at least 0.
    Size,
    /// A count between the two.
    Count(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// Any text.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// RabbitMQ's own notation, `7D`: digits and one of `Y M D h m s`.
    MaxAge,
}

/// The unit of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// A count, or no number at all.
    None,
}

/// Since when a type of queue takes an argument, and since when the broker compares it on a redeclare.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The type of queue.
    pub queue_type: QueueType,
    /// Taken on a declare since this version; before, it is refused or has no effect.
    pub taken: (u16, u16),
    /// Compared on a redeclare since this version; `None`: never.
    pub compared: Option<(u16, u16)>,
}

/// One argument.
#[derive(Clone, Copy, Debug)]
pub struct KnownArgument {
    /// Its name on the wire, for example `x-message-ttl`.
    pub name: &'static str,
    /// Its key in a spec, for example `messageTtl`.
    pub key: &'static str,
    /// What its value looks like.
    pub value: ValueKind,
    /// The types that take it.
    pub support: &'static [Support],
    /// The key of a policy that does the same, if there is one.
    pub policy_key: Option<&'static str>,
    /// One sentence for people.
    pub doc: &'static str,
}

/// The first version that topo supports.
const ALWAYS: (u16, u16) = (3, 8);
/// Ten years in milliseconds: the most that the broker takes as a TTL or an expiry, from 3.10 (`check_expires_arg`).
const TEN_YEARS: i64 = 315_360_000_000;
/// As much as fits.
const ANY: i64 = i64::MAX;

const fn classic(taken: (u16, u16), compared: (u16, u16)) -> Support {
    Support { queue_type: QueueType::Classic, taken, compared: Some(compared) }
}

const fn quorum(taken: (u16, u16), compared: (u16, u16)) -> Support {
    Support { queue_type: QueueType::Quorum, taken, compared: Some(compared) }
}

const fn stream(taken: (u16, u16), compared: (u16, u16)) -> Support {
    Support { queue_type: QueueType::Stream, taken, compared: Some(compared) }
}

/// Streams exist since then.
const STREAMS: (u16, u16) = (3, 9);

/// Every argument, in the order in which the broker compares them (it names the first mismatch only).
pub const KNOWN_ARGUMENTS: &[KnownArgument] = &[
    KnownArgument {
        name: "x-queue-type",
        key: "type",
        value: ValueKind::OneOf(&["classic", "quorum", "stream"]),
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS), stream(STREAMS, STREAMS)],
        policy_key: None,
        doc: "What kind of queue it is; it can never change on a live queue.",
    },
    KnownArgument {
        name: "x-expires",
        key: "expires",
        value: ValueKind::Duration(1, TEN_YEARS),
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: Some("expires"),
        doc: "The queue is deleted, with its messages, when nobody has used it for so long.",
    },
    KnownArgument {
        name: "x-message-ttl",
        key: "messageTtl",
        value: ValueKind::Duration(0, TEN_YEARS),
        support: &[classic(ALWAYS, ALWAYS), quorum((3, 10), (3, 10))],
        policy_key: Some("message-ttl"),
        doc: "A message that waits longer than this is dead-lettered, or dropped where there is no dead-letter exchange.",
    },
    KnownArgument {
        name: "x-dead-letter-exchange",
        key: "deadLetter",
        value: ValueKind::Text,
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: Some("dead-letter-exchange"),
        doc: "Where messages go that are rejected, expire or overflow.",
    },
    KnownArgument {
        name: "x-dead-letter-routing-key",
        key: "deadLetter",
        value: ValueKind::Text,
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: Some("dead-letter-routing-key"),
        doc: "The routing key of dead letters; without it they keep their own.",
    },
    KnownArgument {
        name: "x-dead-letter-strategy",
        key: "deadLetterStrategy",
        value: ValueKind::OneOf(&["at-most-once", "at-least-once"]),
        support: &[quorum((3, 10), (3, 10))],
        policy_key: Some("dead-letter-strategy"),
        doc: "Whether a dead letter may be lost on its way; `at-least-once` needs `overflow: reject-publish`.",
    },
    KnownArgument {
        name: "x-delivery-limit",
        key: "deliveryLimit",
        value: ValueKind::Count(-1, ANY),
        support: &[quorum(ALWAYS, (3, 9))],
        policy_key: Some("delivery-limit"),
        doc: "How many times a message is redelivered before it is dead-lettered; N means N + 1 deliveries.",
    },
    KnownArgument {
        name: "x-max-length",
        key: "maxLength",
        value: ValueKind::Count(0, ANY),
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: Some("max-length"),
        doc: "How many ready messages the queue holds before it overflows.",
    },
    KnownArgument {
        name: "x-max-length-bytes",
        key: "maxLengthBytes",
        value: ValueKind::Size,
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS), stream(STREAMS, STREAMS)],
        policy_key: Some("max-length-bytes"),
        doc: "How many bytes of message bodies the queue holds before it overflows.",
    },
    KnownArgument {
        name: "x-max-in-memory-length",
        key: "maxInMemoryLength",
        value: ValueKind::Count(0, ANY),
        support: &[quorum(ALWAYS, ALWAYS)],
        policy_key: Some("max-in-memory-length"),
        doc: "How many messages are kept in memory; no effect since 3.10.",
    },
    KnownArgument {
        name: "x-max-in-memory-bytes",
        key: "maxInMemoryBytes",
        value: ValueKind::Size,
        support: &[quorum(ALWAYS, ALWAYS)],
        policy_key: Some("max-in-memory-bytes"),
        doc: "How many bytes are kept in memory; no effect since 3.10.",
    },
    KnownArgument {
        name: "x-max-priority",
        key: "maxPriority",
        value: ValueKind::Count(0, 255),
        support: &[classic(ALWAYS, ALWAYS)],
        policy_key: None,
        doc: "Makes a priority queue with priorities from 0 to this; 1 to 10 is plenty.",
    },
    KnownArgument {
        name: "x-overflow",
        key: "overflow",
        value: ValueKind::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]),
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: Some("overflow"),
        doc: "What happens when the queue is full: the oldest message is dropped, or the newest is refused.",
    },
    KnownArgument {
        name: "x-queue-mode",
        key: "queueMode",
        value: ValueKind::OneOf(&["default", "lazy"]),
        support: &[classic(ALWAYS, ALWAYS)],
        policy_key: Some("queue-mode"),
        doc: "`lazy` keeps messages on disk; no effect since 3.12.",
    },
    KnownArgument {
        name: "x-queue-version",
        key: "queueVersion",
        value: ValueKind::Count(1, 2),
        support: &[classic((3, 10), (3, 10))],
        policy_key: Some("queue-version"),
        doc: "The storage format of a classic queue; only 2 since 4.3.",
    },
    KnownArgument {
        name: "x-single-active-consumer",
        key: "singleActiveConsumer",
        value: ValueKind::Boolean,
        support: &[classic(ALWAYS, ALWAYS), quorum(ALWAYS, ALWAYS)],
        policy_key: None,
        doc: "Only one consumer gets messages at a time; the others wait to take over.",
    },
    KnownArgument {
        name: "x-queue-master-locator",
        key: "queueMasterLocator",
        value: ValueKind::OneOf(&["client-local", "min-masters", "random"]),
        support: &[classic(ALWAYS, ALWAYS)],
        policy_key: Some("queue-master-locator"),
        doc: "On which node a classic queue is created; refused by 4.3.",
    },
    KnownArgument {
        name: "x-queue-leader-locator",
        key: "queueLeaderLocator",
        value: ValueKind::OneOf(&["client-local", "balanced"]),
        support: &[classic((4, 0), (4, 0)), quorum((3, 10), (3, 10)), stream(STREAMS, STREAMS)],
        policy_key: Some("queue-leader-locator"),
        doc: "On which node the queue's leader is created.",
    },
    KnownArgument {
        name: "x-quorum-initial-group-size",
        key: "quorumInitialGroupSize",
        value: ValueKind::Count(1, ANY),
        support: &[quorum(ALWAYS, ALWAYS)],
        policy_key: None,
        doc: "How many replicas a quorum queue starts with.",
    },
    KnownArgument {
        name: "x-consumer-timeout",
        key: "consumerTimeout",
        value: ValueKind::Duration(0, ANY),
        support: &[quorum((4, 3), (4, 3))],
        policy_key: Some("consumer-timeout"),
        doc: "How long a consumer may hold a message without acknowledging it.",
    },
    KnownArgument {
        name: "x-consumer-disconnected-timeout",
        key: "consumerDisconnectedTimeout",
        value: ValueKind::Duration(0, ANY),
        support: &[quorum((4, 3), (4, 3))],
        policy_key: Some("consumer-disconnected-timeout"),
        doc: "How long the messages of a disconnected consumer are kept for it.",
    },
    KnownArgument {
        name: "x-delayed-retry-type",
        key: "delayedRetryType",
        value: ValueKind::OneOf(&["disabled", "all", "failed", "returned"]),
        support: &[quorum((4, 3), (4, 3))],
        policy_key: Some("delayed-retry-type"),
        doc: "Which returned messages wait before they are delivered again.",
    },
    KnownArgument {
        name: "x-delayed-retry-min",
        key: "delayedRetryMin",
        value: ValueKind::Duration(0, ANY),
        support: &[quorum((4, 3), (4, 3))],
        policy_key: Some("delayed-retry-min"),
        doc: "The first delay; the N-th is N times as long.",
    },
    KnownArgument {
        name: "x-delayed-retry-max",
        key: "delayedRetryMax",
        value: ValueKind::Duration(0, ANY),
        support: &[quorum((4, 3), (4, 3))],
        policy_key: Some("delayed-retry-max"),
        doc: "The longest delay.",
    },
    KnownArgument {
        name: "x-max-age",
        key: "maxAge",
        value: ValueKind::MaxAge,
        support: &[stream(STREAMS, STREAMS)],
        policy_key: Some("max-age"),
        doc: "Segments of the stream that are older are deleted.",
    },
    KnownArgument {
        name: "x-stream-max-segment-size-bytes",
        key: "streamMaxSegmentSizeBytes",
        value: ValueKind::Size,
        support: &[stream(STREAMS, STREAMS)],
        policy_key: Some("stream-max-segment-size-bytes"),
        doc: "How large one file of the stream becomes.",
    },
    KnownArgument {
        name: "x-stream-filter-size-bytes",
        key: "streamFilterSizeBytes",
        value: ValueKind::Count(16, 255),
        support: &[stream((3, 13), (4, 2))],
        policy_key: Some("stream-filter-size-bytes"),
        doc: "The size of the filter of each chunk.",
    },
    KnownArgument {
        name: "x-initial-cluster-size",
        key: "initialClusterSize",
        value: ValueKind::Count(1, ANY),
        support: &[stream(STREAMS, STREAMS)],
        policy_key: None,
        doc: "How many replicas a stream starts with.",
    },
];

impl KnownArgument {
    /// The argument with this name on the wire.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// What is known of it for a type of queue; `None` when that type never takes it.
    pub fn support_for(&self, queue_type: QueueType) -> Option<&'static Support> {
        self.support.iter().find(|support| support.queue_type == queue_type)
    }

    /// Whether a fresh declare of that type with it is accepted by that version.
    pub fn is_taken(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        self.support_for(queue_type).is_some_and(|support| version.is_at_least(support.taken.0, support.taken.1))
    }

    /// Whether that version compares it when an existing queue of that type is declared again.
    ///
    /// 3.8 compares every argument that it knows, whatever the type (`rabbit_amqqueue:declare_args`, 3.8.35); it does
    /// not know `x-delivery-limit`. Later versions compare what the existing queue's type lists.
    pub fn is_compared(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let since = |(major, minor)| version.is_at_least(major, minor);
        if !version.is_at_least(3, 9) {
            return self.support.iter().any(|support| support.compared.is_some_and(since));
        }
        self.support_for(queue_type).and_then(|support| support.compared).is_some_and(since)
    }

    /// The types that take it, newest version assumed.
    pub fn queue_types(&self) -> impl Iterator<Item = QueueType> {
        self.support.iter().map(|support| support.queue_type)
    }

    /// A value with its unit, for people: `60000 (1m)`, `1073741824 (1GiB)`.
    pub fn unit(&self) -> Unit {
        match self.value {
            ValueKind::Duration(..) => Unit::Milliseconds,
            ValueKind::Size => Unit::Bytes,
            ValueKind::Count(..) | ValueKind::Boolean | ValueKind::Text | ValueKind::OneOf(_) | ValueKind::MaxAge => {
                Unit::None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_depends_on_type_and_version() {
        let known = |name| KnownArgument::named(name).unwrap();
        let v = BrokerVersion::new;
        assert!(!known("x-delivery-limit").is_compared(QueueType::Quorum, v(3, 8, 9)));
        assert!(known("x-delivery-limit").is_compared(QueueType::Quorum, v(3, 10, 8)));
        assert!(known("x-max-priority").is_compared(QueueType::Quorum, v(3, 8, 9)));
        assert!(!known("x-max-priority").is_compared(QueueType::Quorum, v(4, 0, 5)));
        assert!(!known("x-stream-filter-size-bytes").is_compared(QueueType::Stream, v(4, 0, 5)));
        assert!(known("x-stream-filter-size-bytes").is_compared(QueueType::Stream, v(4, 3, 0)));
    }
}
