//! The table of known queue arguments: their values, and the queue types and versions that accept, check and compare
//! them. [`exchanges`] contains the exchange arguments.
//!
//! Validation, the JSON Schema, plans, resolutions and `docs/arguments.md` are based on this table. Sources:
//! `capabilities()` of `rabbit_classic_queue`, `rabbit_quorum_queue` and `rabbit_stream_queue`, and `declare_args()` of
//! `rabbit_amqqueue`, at every tag from 3.8.0 to 4.3.5. `tests/live/differential.rs` compares the predictions with live
//! brokers (3.8.9, 3.10.8, 4.0.5 and 4.3.6).

mod argument;
pub mod exchanges;
mod one_type;
mod order;
mod reference;
mod several_types;

pub use argument::{Check, KnownArgument, Support, Unit, ValueKind, Versions};
pub use exchanges::{EXCHANGE_ARGUMENTS, KnownExchangeArgument};
pub use one_type::MAX_SEGMENT_BYTES;
pub use order::{check_order, comparison_order};
pub use reference::reference;

use super::queue::QueueType;
use super::version::BrokerVersion;
use argument::always;

/// The queue type. RabbitMQ 3.9 added streams. On 3.12 and later, plugins can add types.
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
    is_known_to_3_8: true,
    policy_key: None,
    doc: "The queue type. It cannot change on an existing queue.",
};

/// All known queue arguments. [`comparison_order`] and [`check_order`] return the orders in which brokers compare and
/// check arguments.
pub const KNOWN_ARGUMENTS: &[KnownArgument] = &[
    QUEUE_TYPE,
    several_types::EXPIRES,
    several_types::MESSAGE_TTL,
    several_types::DEAD_LETTER_EXCHANGE,
    several_types::DEAD_LETTER_ROUTING_KEY,
    one_type::DEAD_LETTER_STRATEGY,
    one_type::DELIVERY_LIMIT,
    several_types::MAX_LENGTH,
    several_types::MAX_LENGTH_BYTES,
    one_type::MAX_IN_MEMORY_LENGTH,
    one_type::MAX_IN_MEMORY_BYTES,
    one_type::MAX_PRIORITY,
    several_types::OVERFLOW,
    one_type::QUEUE_MODE,
    one_type::QUEUE_VERSION,
    several_types::SINGLE_ACTIVE_CONSUMER,
    one_type::QUEUE_MASTER_LOCATOR,
    several_types::QUEUE_LEADER_LOCATOR,
    one_type::INITIAL_GROUP_SIZE,
    one_type::TARGET_GROUP_SIZE,
    several_types::CONSUMER_TIMEOUT,
    one_type::CONSUMER_DISCONNECTED_TIMEOUT,
    one_type::DELAYED_RETRY_TYPE,
    one_type::DELAYED_RETRY_MIN,
    one_type::DELAYED_RETRY_MAX,
    one_type::MAX_AGE,
    one_type::MAX_SEGMENT_SIZE_BYTES,
    one_type::FILTER_SIZE_BYTES,
    one_type::INITIAL_CLUSTER_SIZE,
];

impl KnownArgument {
    /// Returns the argument with this name on the wire; `None` for an unknown name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.name == name)
    }

    /// Returns the argument with the same effect as a policy key; `None` for an unknown key.
    pub fn of_policy_key(key: &str) -> Option<&'static Self> {
        KNOWN_ARGUMENTS.iter().find(|known| known.policy_key == Some(key))
    }

    /// Returns a queue type's support for the argument; `None` if the type does not support the argument in any
    /// version.
    pub fn support_for(&self, queue_type: QueueType) -> Option<&'static Support> {
        self.support.iter().find(|support| support.queue_type == queue_type)
    }

    /// Returns true if this version accepts and supports the argument on a queue of this type.
    pub fn is_accepted(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        self.support_for(queue_type).is_some_and(|support| support.accepted.contains(version))
    }

    /// Returns true if the argument has no effect on a queue of this type in this version.
    pub fn has_no_effect(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let support = self.support_for(queue_type);
        !self.is_accepted(queue_type, version)
            || support.is_some_and(|support| support.no_effect_since.is_some_and(|since| version >= since))
    }

    /// Returns true if this queue type lists the argument in this version. No version before 3.9 lists arguments.
    pub fn is_listed(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        let of_type = |support: &&Support| support.queue_type == queue_type;
        self.support.iter().chain(self.idle).filter(of_type).any(|support| support.is_listed(version))
    }

    /// Returns true if any queue type lists the argument in this version. In that case, the other queue types reject
    /// the argument.
    pub fn is_listed_by_any(&self, version: BrokerVersion) -> bool {
        QueueType::ALL.into_iter().any(|queue_type| self.is_listed(queue_type, version))
    }

    /// Returns true if this version compares the argument when an existing queue of this type is declared again.
    ///
    /// RabbitMQ 3.8 compares every argument in `rabbit_amqqueue:declare_args` (3.8.35), for every queue type.
    /// Later versions compare the arguments that the type of the existing queue lists (`rabbit_queue_type:arguments`).
    pub fn is_compared(&self, queue_type: QueueType, version: BrokerVersion) -> bool {
        if !version.is_at_least(3, 9) {
            return self.is_known_to_3_8;
        }
        self.is_listed(queue_type, version)
    }

    /// Returns the values that this version accepts on a queue of this type; `None` if this version does not check the
    /// value.
    pub fn check_for(&self, queue_type: QueueType, version: BrokerVersion) -> Option<ValueKind> {
        let is_checked =
            if version.is_at_least(3, 9) { self.is_listed(queue_type, version) } else { self.is_known_to_3_8 };
        let check = self.checks.iter().find(|check| check.versions.contains(version));
        check.filter(|_| is_checked).map(|check| check.value)
    }

    /// Returns the queue types that support the argument in any version.
    pub fn queue_types(&self) -> impl Iterator<Item = QueueType> {
        self.support.iter().map(|support| support.queue_type)
    }

    /// Returns the unit of the argument's values.
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
    use super::argument::{ANY, TEN_YEARS};
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
