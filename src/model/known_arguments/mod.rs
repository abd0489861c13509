//! The table of known queue arguments: their values, and the queue types and versions that accept, check and compare
//! them. [`exchanges`] has the arguments of exchanges.
//!
//! Validation, the schema, verdicts, advice and `docs/arguments.md` all read this table. Sources: the `capabilities()`
//! of `rabbit_classic_queue`, `rabbit_quorum_queue` and `rabbit_stream_queue`, and `declare_args()` of
//! `rabbit_amqqueue`, at every tag from 3.8.0 to 4.3.5. `tests/live/differential.rs` compares the predictions with live
//! brokers of 3.8.9, 3.10.8, 4.0.5 and 4.3.6.

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

/// The valid values of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Milliseconds: the minimum and the maximum.
    Duration(i64, i64),
    /// Bytes: 0 to this maximum.
    Size(i64),
    /// A count: the minimum and the maximum.
    Count(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// Any string.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An age in RabbitMQ's notation: digits and one of `Y M D h m s`, such as `7D`.
    MaxAge,
}

/// The unit of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// A count, or not a number.
    None,
}

/// The support of an argument by one queue type.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The queue type.
    pub queue_type: QueueType,
    /// The versions that accept the argument in a declaration and support it. Other versions reject it, or store it
    /// without effect.
    pub taken: Versions,
    /// The versions from 3.9 on in which the type lists it (`capabilities()`). They check its value if there is a
    /// check, and compare it when the queue is redeclared. Types that do not list it reject it.
    pub listed: &'static [Versions],
    /// The version since which it is accepted but has no effect.
    pub no_effect_since: Option<BrokerVersion>,
}

/// The values of an argument that some versions accept.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The versions with this check.
    pub versions: Versions,
    /// The values that they accept.
    pub value: ValueKind,
}

/// One argument of queues.
#[derive(Clone, Copy, Debug)]
pub struct KnownArgument {
    /// The name on the wire, for example `x-message-ttl`.
    pub name: &'static str,
    /// The key in a spec, for example `messageTtl`.
    pub key: &'static str,
    /// The valid values in a spec: everything that is useful for any version.
    pub value: ValueKind,
    /// The values that brokers accept, by version. A version without an entry accepts any value.
    pub checks: &'static [Check],
    /// The queue types that support it.
    pub support: &'static [Support],
    /// The queue types that listed it without supporting it.
    pub idle: &'static [Support],
    /// True if 3.8 knows it (`declare_args()`). 3.8 checks and compares such arguments for every queue type.
    pub known_to_3_8: bool,
    /// The policy key with the same effect, if there is one.
    pub policy_key: Option<&'static str>,
    /// The documentation: one sentence.
    pub doc: &'static str,
}

/// Ten years in milliseconds: the maximum of a TTL or an expiry, from 3.10 (`check_expiry`).
const TEN_YEARS: i64 = 315_360_000_000;
/// No maximum other than that of the type.
const ANY: i64 = i64::MAX;
/// All versions that list arguments by queue type.
const LISTED: &[Versions] = &[Versions::since(3, 9)];
/// The versions with streams.
const STREAMS: Versions = Versions::since(3, 9);
/// No check.
const UNCHECKED: &[Check] = &[];

/// Returns the support of a type that accepts and lists an argument in all of its versions.
const fn always(queue_type: QueueType) -> Support {
    let taken = match queue_type {
        QueueType::Classic | QueueType::Quorum => Versions::ALL,
        QueueType::Stream => STREAMS,
    };
    Support { queue_type, taken, listed: LISTED, no_effect_since: None }
}

/// Returns the support of a type that accepts and lists an argument in these versions.
const fn supported(queue_type: QueueType, taken: Versions, listed: &'static [Versions]) -> Support {
    Support { queue_type, taken, listed, no_effect_since: None }
}

/// Returns the same check for all versions.
const fn check(value: ValueKind) -> Check {
    Check { versions: Versions::ALL, value }
}

/// The queue type. Streams exist since 3.9; from 3.12 on, plugins can add types.
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

/// All arguments. [`compared`] and [`checked`] return the orders in which brokers process them.
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
    /// Returns the argument with this name on the wire.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// Returns the argument with the same effect as a policy key.
    pub fn of_policy_key(key: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(key))
    }

    /// Returns how a queue type supports the argument; `None` if the type never supported it.
    pub fn support_for(&self, queue_type: QueueType) -> Option<&'static Support> {
        self.support.iter().find(|support| support.queue_type == queue_type)
    }

    /// Returns true if this version accepts and supports the argument on a queue of this type.
    pub fn is_accepted(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        self.support_for(queue_type).is_some_and(|support| support.taken.contains(version))
    }

    /// Returns true if this version stores the argument on a queue of this type without effect.
    pub fn is_idle(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let support = self.support_for(queue_type);
        !self.is_accepted(queue_type, version)
            || support.is_some_and(|support| support.no_effect_since.is_some_and(|since| version >= since))
    }

    /// Returns true if this queue type lists the argument in this version. No version before 3.9 lists arguments.
    pub fn is_listed(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let of_type = |support: &&Support| support.queue_type == queue_type;
        self.support.iter().chain(self.idle).filter(of_type).any(|support| support.is_listed(version))
    }

    /// Returns true if any queue type lists the argument in this version. A type that does not list it then rejects it.
    pub fn is_listed_by_any(&self, version: BrokerVersion) -> bool {
        QueueType::ALL.into_iter().any(|queue_type| self.is_listed(queue_type, version))
    }

    /// Returns true if this version compares the argument when an existing queue of this type is declared again.
    ///
    /// 3.8 compares every argument that it knows, for every queue type (`rabbit_amqqueue:declare_args`, 3.8.35). Later
    /// versions compare the arguments that the type of the existing queue lists (`rabbit_queue_type:arguments`).
    pub fn is_compared(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        if !version.is_at_least(3, 9) {
            return self.known_to_3_8;
        }
        self.is_listed(queue_type, version)
    }

    /// Returns the values that this version accepts on a queue of this type; `None` if it accepts any.
    pub fn check_for(&self, queue_type: QueueType, version: BrokerVersion) -> Option<ValueKind> {
        let is_checked =
            if version.is_at_least(3, 9) { self.is_listed(queue_type, version) } else { self.known_to_3_8 };
        let check = self.checks.iter().find(|check| check.versions.contains(version));
        check.filter(|_| is_checked).map(|check| check.value)
    }

    /// Returns the queue types that support the argument in any version.
    pub fn queue_types(&self) -> impl Iterator<Item = QueueType> {
        self.support.iter().map(|support| support.queue_type)
    }

    /// Returns the unit of the values.
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
    fn comparison_depends_on_type_and_version() {
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
    fn check_depends_on_type_and_version() {
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
    fn names_are_unique() {
        for (index, known) in KNOWN_ARGUMENTS.iter().enumerate() {
            assert!(KNOWN_ARGUMENTS[index + 1..].iter().all(|other| other.name != known.name), "{}", known.name);
        }
    }
}
