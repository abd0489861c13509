//! The table of known arguments: what each `x-` argument of a queue is, which types take it, which brokers check it and
//! compare it. The arguments of exchanges have a table of their own, [`exchanges`].
//!
//! Validation, the schema, verdicts, advice and docs (`docs/arguments.md`) all read this one table. Sources: the
//! `capabilities()` of `rabbit_classic_queue`, `rabbit_quorum_queue` and `rabbit_stream_queue` and `declare_args()` of
//! `rabbit_amqqueue` at every tag from 3.8.0 to 4.3.5, and live brokers of 3.8.9, 3.10.8, 4.0.5 and 4.3.6, with which
//! `tests/live/differential.rs` compares what is made of it.

mod both;
mod classic;
pub mod exchanges;
mod order;
mod quorum;
mod reference;
mod stream;
pub mod versions;

pub use exchanges::{EXCHANGE_ARGUMENTS, KnownExchangeArgument};
pub use order::{checked, compared};
pub use reference::reference;
pub use versions::Versions;

use super::{BrokerVersion, QueueType};

/// What a value of an argument looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Milliseconds, at least the first, at most the second.
    Duration(i64, i64),
    /// Bytes, at least 0, at most this.
    Size(i64),
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

/// What one type of queue makes of an argument.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The type of queue.
    pub queue_type: QueueType,
    /// The versions that take it on a declare and know what it means. Other versions refuse it, or keep it and do nothing.
    pub taken: Versions,
    /// The versions from 3.9 on whose type lists it (`capabilities()`): these check its value where there is a check,
    /// compare it on a redeclare, and refuse it on a type that does not list it.
    pub listed: &'static [Versions],
    /// Since when it changes nothing any more, though it is taken.
    pub no_effect_since: Option<BrokerVersion>,
}

/// What a broker accepts as the value of an argument, where it looks at all.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The versions that check it so.
    pub versions: Versions,
    /// What they accept.
    pub value: ValueKind,
}

/// One argument.
#[derive(Clone, Copy, Debug)]
pub struct KnownArgument {
    /// Its name on the wire, for example `x-message-ttl`.
    pub name: &'static str,
    /// Its key in a spec, for example `messageTtl`.
    pub key: &'static str,
    /// What its value looks like in a spec: everything that makes sense to any version.
    pub value: ValueKind,
    /// What brokers accept, by version; a version that is in none takes any value.
    pub checks: &'static [Check],
    /// The types that take it.
    pub support: &'static [Support],
    /// Types that listed it, and did nothing with it.
    pub idle: &'static [Support],
    /// Whether 3.8 knew it (`declare_args()`): then 3.8 checks and compares it, whatever the type.
    pub known_to_3_8: bool,
    /// The key of a policy that does the same, if there is one.
    pub policy_key: Option<&'static str>,
    /// One sentence for people.
    pub doc: &'static str,
}

/// Ten years in milliseconds: the most that the broker takes as a TTL or an expiry, from 3.10 (`check_expiry`).
const TEN_YEARS: i64 = 315_360_000_000;
/// As much as fits.
const ANY: i64 = i64::MAX;
/// Every version that lists arguments by type.
const LISTED: &[Versions] = &[Versions::since(3, 9)];
/// Streams exist since then.
const STREAMS: Versions = Versions::since(3, 9);
/// No check.
const UNCHECKED: &[Check] = &[];

/// Taken by that type since its beginning, and listed since arguments are.
const fn always(queue_type: QueueType) -> Support {
    let taken = match queue_type {
        QueueType::Classic | QueueType::Quorum => Versions::ALL,
        QueueType::Stream => STREAMS,
    };
    Support { queue_type, taken, listed: LISTED, no_effect_since: None }
}

/// Taken and listed by those versions.
const fn supported(queue_type: QueueType, taken: Versions, listed: &'static [Versions]) -> Support {
    Support { queue_type, taken, listed, no_effect_since: None }
}

/// Checked alike by every version.
const fn check(value: ValueKind) -> Check {
    Check { versions: Versions::ALL, value }
}

/// The type of a queue. Before 3.9 there are no streams; from 3.12 on, plugins bring more.
const QUEUE_TYPE: KnownArgument = KnownArgument {
    name: "x-queue-type",
    key: "type",
    value: ValueKind::OneOf(&["classic", "quorum", "stream"]),
    checks: &[
        Check { versions: Versions::ALL.until(3, 9), value: ValueKind::OneOf(&["classic", "quorum"]) },
        Check { versions: Versions::since(3, 9), value: ValueKind::OneOf(&["classic", "quorum", "stream"]) },
    ],
    support: &[always(QueueType::Classic), always(QueueType::Quorum), always(QueueType::Stream)],
    idle: &[],
    known_to_3_8: true,
    policy_key: None,
    doc: "The queue type. It cannot change on an existing queue.",
};

/// Every argument. [`compared`] and [`checked`] have the orders in which brokers look at them.
pub const KNOWN_ARGUMENTS: &[KnownArgument] = &[
    QUEUE_TYPE,
    both::EXPIRES,
    both::MESSAGE_TTL,
    both::DEAD_LETTER_EXCHANGE,
    both::DEAD_LETTER_ROUTING_KEY,
    quorum::DEAD_LETTER_STRATEGY,
    quorum::DELIVERY_LIMIT,
    both::MAX_LENGTH,
    both::MAX_LENGTH_BYTES,
    quorum::MAX_IN_MEMORY_LENGTH,
    quorum::MAX_IN_MEMORY_BYTES,
    classic::MAX_PRIORITY,
    both::OVERFLOW,
    classic::QUEUE_MODE,
    classic::QUEUE_VERSION,
    both::SINGLE_ACTIVE_CONSUMER,
    classic::QUEUE_MASTER_LOCATOR,
    both::QUEUE_LEADER_LOCATOR,
    quorum::INITIAL_GROUP_SIZE,
    quorum::TARGET_GROUP_SIZE,
    both::CONSUMER_TIMEOUT,
    quorum::CONSUMER_DISCONNECTED_TIMEOUT,
    quorum::DELAYED_RETRY_TYPE,
    quorum::DELAYED_RETRY_MIN,
    quorum::DELAYED_RETRY_MAX,
    stream::MAX_AGE,
    stream::MAX_SEGMENT_SIZE_BYTES,
    stream::FILTER_SIZE_BYTES,
    stream::INITIAL_CLUSTER_SIZE,
];

impl Support {
    fn is_listed(&self, version: BrokerVersion) -> bool {
        self.listed.iter().any(|versions| versions.contains(version))
    }
}

impl KnownArgument {
    /// The argument with this name on the wire.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// The argument that sets the same as this key of a policy.
    pub fn of_policy_key(key: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(key))
    }

    /// What is known of it for a type of queue; `None` when it never did anything there.
    pub fn support_for(&self, queue_type: QueueType) -> Option<&'static Support> {
        self.support.iter().find(|support| support.queue_type == queue_type)
    }

    /// Whether that version takes it on a queue of that type and knows what it means.
    pub fn is_taken(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        self.support_for(queue_type).is_some_and(|support| support.taken.contains(version))
    }

    /// Whether it is of no consequence on a queue of that type: the version keeps it and does nothing.
    pub fn is_idle(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let support = self.support_for(queue_type);
        !self.is_taken(queue_type, version)
            || support.is_some_and(|support| support.no_effect_since.is_some_and(|since| version >= since))
    }

    /// Whether a queue of that type lists it, on that version. Nothing is listed before 3.9.
    pub fn is_listed(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let of_type = |support: &&Support| support.queue_type == queue_type;
        self.support.iter().chain(self.idle).filter(of_type).any(|support| support.is_listed(version))
    }

    /// Whether any type lists it on that version: then a type that does not list it refuses it.
    pub fn is_listed_by_any(&self, version: BrokerVersion) -> bool {
        QueueType::ALL.into_iter().any(|queue_type| self.is_listed(queue_type, version))
    }

    /// Whether that version compares it when an existing queue of that type is declared again.
    ///
    /// 3.8 compares every argument that it knows, whatever the type (`rabbit_amqqueue:declare_args`, 3.8.35). Later
    /// versions compare what the existing queue's type lists (`rabbit_queue_type:arguments`).
    pub fn is_compared(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        if !version.is_at_least(3, 9) {
            return self.known_to_3_8;
        }
        self.is_listed(queue_type, version)
    }

    /// What that version accepts as its value on a queue of that type; `None` when it takes any.
    pub fn check_for(&self, queue_type: QueueType, version: BrokerVersion) -> Option<ValueKind> {
        let is_looked_at =
            if version.is_at_least(3, 9) { self.is_listed(queue_type, version) } else { self.known_to_3_8 };
        let check = self.checks.iter().find(|check| check.versions.contains(version));
        check.filter(|_| is_looked_at).map(|check| check.value)
    }

    /// The types that take it, newest version assumed.
    pub fn queue_types(&self) -> impl Iterator<Item = QueueType> {
        self.support.iter().map(|support| support.queue_type)
    }

    /// A value with its unit, for people: `60000 (1m)`, `1073741824 (1GiB)`.
    pub fn unit(&self) -> Unit {
        match self.value {
            ValueKind::Duration(..) => Unit::Milliseconds,
            ValueKind::Size(_) => Unit::Bytes,
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
        assert!(known("x-stream-filter-size-bytes").is_compared(QueueType::Stream, v(4, 2, 7)));
        assert!(!known("x-stream-filter-size-bytes").is_compared(QueueType::Stream, v(4, 3, 0)));
        assert!(known("x-stream-filter-size-bytes").is_compared(QueueType::Stream, v(4, 3, 1)));
        assert!(known("x-max-length").is_compared(QueueType::Stream, v(3, 9, 29)));
        assert!(!known("x-max-length").is_compared(QueueType::Stream, v(3, 10, 0)));
    }

    #[test]
    fn what_is_checked_depends_on_type_and_version() {
        let check = |name, queue_type, version: &str| {
            KnownArgument::named(name).unwrap().check_for(queue_type, version.parse().unwrap())
        };
        assert_eq!(check("x-expires", QueueType::Classic, "3.9.29"), Some(ValueKind::Duration(1, ANY)));
        assert_eq!(check("x-expires", QueueType::Classic, "3.10.0"), Some(ValueKind::Duration(1, TEN_YEARS)));
        assert_eq!(check("x-queue-mode", QueueType::Classic, "4.3.6"), None);
        assert_eq!(check("x-queue-version", QueueType::Classic, "4.3.6"), Some(ValueKind::Count(2, 2)));
        assert_eq!(check("x-max-age", QueueType::Classic, "3.8.9"), None);
        assert_eq!(check("x-delivery-limit", QueueType::Quorum, "4.3.6"), None);
    }

    #[test]
    fn no_two_have_one_name() {
        for (index, known) in KNOWN_ARGUMENTS.iter().enumerate() {
            assert!(KNOWN_ARGUMENTS[index + 1..].iter().all(|other| other.name != known.name), "{}", known.name);
        }
    }
}
