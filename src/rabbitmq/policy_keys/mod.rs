//! Describes policy keys by queue type and version: the accepted values, the keys that make the broker skip a policy,
//! and the precedence of arguments, policies and operator policies. All data is in one [table](POLICY_KEYS).

mod table;

pub use table::POLICY_KEYS;

use super::profile::BrokerProfile;
use crate::model::known_arguments::Versions;
use crate::model::{ArgumentValue, BrokerVersion, QueueType};
use std::cmp::Ordering;

/// A policy key.
#[derive(Clone, Copy, Debug)]
pub struct PolicyKey {
    /// The name on the wire.
    pub name: &'static str,
    /// The spelling in a spec.
    pub spec_key: &'static str,
    /// The objects that read the key.
    pub scope: Scope,
    /// The validating module and the accepted values, by version. Other versions do not accept the key.
    pub(super) accepts: &'static [(Versions, Validator, Accepts)],
    /// The queue types for which the broker skips every policy that contains the key, by version.
    skipped_by: &'static [(QueueType, Versions)],
    /// True if quorum queues in RabbitMQ 3.8.12 and earlier read the key. Such queues skip every policy that contains a
    /// key that they do not read.
    is_read_by_old_quorum: bool,
    /// The precedence on an existing queue, by queue type and version. Queues of other types do not read the key.
    precedence: &'static [(QueueType, Versions, Precedence)],
    /// The versions in which an operator policy can set the key (`rabbit_policies:register`,
    /// `operator_policy_validator`).
    in_operator_policies: &'static [Versions],
    /// The precedence between a policy and an operator policy.
    merge: Merge,
    /// True if the key removes or redirects messages, deletes the queue, or makes it reject messages.
    pub affects_messages: bool,
}

/// The objects that read a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Queues.
    Queues,
    /// Exchanges.
    Exchanges,
    /// Mirrored queues on RabbitMQ 3.13 and earlier.
    Mirroring,
    /// A plugin, which also validates the key. topo cannot predict whether the broker accepts the key.
    Plugin,
}

/// The broker module that validates a key. The modules validate a definition one after another, and the broker reports
/// the first error. The order of the modules is the order of a hash table, which depends on the Erlang version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validator {
    Locator,
    Mirroring,
    General,
    Quorum,
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepts {
    /// Any string.
    Text,
    /// An integer of at least this value; the broker refuses floats such as 1.0.
    AtLeast(i64),
    /// An integer from the first value to the second.
    Between(i64, i64),
    /// Any integer.
    Integer,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Digits and a unit, such as `7D`.
    Age,
}

/// The precedence between a policy and an operator policy (`merge_policy_value` in `rabbit_policies` and
/// `rabbit_quorum_queue`).
///
/// The rules do not depend on the version, because each rule was introduced together with the support for its key in
/// operator policies: `queue-version` in 3.11, `overflow` in 3.12, `target-group-size` in 3.13, delayed retries in
/// 4.3.1. No version before 4.0 accepts a negative `delivery-limit` in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// The smaller number takes precedence.
    Smaller,
    /// The smaller number takes precedence. If a number is negative, the larger number takes precedence.
    SmallerNonNegative,
    /// The larger number takes precedence.
    Larger,
    /// The operator policy takes precedence.
    Operator,
}

/// The precedence if an argument and a policy set the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The smaller number takes precedence.
    Smallest,
    /// The smaller number takes precedence. If a number is negative ("no limit"), the larger number takes precedence.
    SmallestNonNegative,
    /// The argument takes precedence.
    Argument,
    /// The policy takes precedence.
    Policy,
}

impl PolicyKey {
    /// Returns the key with this name on the wire; `None` if the key is unknown.
    pub fn named(name: &str) -> Option<&'static Self> {
        POLICY_KEYS.iter().find(|key| key.name == name)
    }

    /// Returns true if queues read the key.
    pub fn is_read_by_queues(&self) -> bool {
        match self.scope {
            Scope::Queues => self.is_valid(),
            Scope::Mirroring => true,
            Scope::Exchanges | Scope::Plugin => false,
        }
    }

    /// Returns the spelling of a key in specs. Returns `None` if the key is unknown, if no version accepts it, or if
    /// specs use the name on the wire, as they do for mirroring keys and most plugin keys.
    pub fn spelling(name: &str) -> Option<&'static str> {
        let is_spelled = |key: &&Self| match key.scope {
            Scope::Queues | Scope::Exchanges => !key.accepts.is_empty(),
            Scope::Plugin => key.spec_key != key.name,
            Scope::Mirroring => false,
        };
        Self::named(name).filter(is_spelled).map(|key| key.spec_key)
    }

    /// Returns true if any version accepts the key in a policy, even if only with a plugin.
    pub fn is_valid(&self) -> bool {
        match self.scope {
            Scope::Queues | Scope::Exchanges => !self.accepts.is_empty(),
            Scope::Mirroring | Scope::Plugin => true,
        }
    }

    /// Returns true if an operator policy can set the key on this version.
    pub fn is_settable_by_operators(&self, version: BrokerVersion) -> bool {
        self.in_operator_policies.iter().any(|versions| versions.contains(version))
    }

    /// Returns the first version in which operator policies can set the key; `None` if operator policies cannot set
    /// it. Ignores backports to earlier versions.
    pub(super) fn operator_policies_since(&self) -> Option<BrokerVersion> {
        self.in_operator_policies.last().map(|versions| versions.since)
    }

    /// Returns true if queues read the key only while they are being declared. Also true for queue keys that no version
    /// accepts.
    pub fn applies_only_on_declare(&self) -> bool {
        self.scope == Scope::Queues && self.precedence.is_empty()
    }
}

/// Returns true if a policy with this key can govern a queue of this type (`rabbit_queue_type:is_policy_applicable`).
/// The broker skips a policy only if the policy contains a key that the broker lists as unsupported. Plugin keys are
/// never listed. Quorum queues in RabbitMQ 3.8.12 and earlier are an exception: they skip a policy that contains any
/// key that they do not read.
pub fn is_accepted(key: &str, queue_type: QueueType, version: BrokerVersion) -> bool {
    let key = PolicyKey::named(key);
    if queue_type == QueueType::Quorum && version < BrokerVersion::new(3, 8, 13) {
        return key.is_some_and(|key| key.is_read_by_old_quorum);
    }
    let is_skipped = |(of, versions): &(QueueType, Versions)| *of == queue_type && versions.contains(version);
    !key.is_some_and(|key| key.skipped_by.iter().any(is_skipped))
}

/// Returns the precedence of a policy key on an existing queue of this type. `None` if the type does not read the key,
/// or reads it only while the queue is being declared (`queue-leader-locator`, `initial-cluster-size`).
///
/// `tests/live/effective` compares the results with the behavior of real brokers.
pub fn precedence(key: &str, queue_type: QueueType, profile: &BrokerProfile) -> Option<Precedence> {
    let mut all = PolicyKey::named(key)?.precedence.iter();
    let applies = |(of, versions, _): &&(QueueType, Versions, Precedence)| {
        *of == queue_type && versions.contains(profile.version)
    };
    all.find(applies).map(|(_, _, precedence)| *precedence)
}

/// Returns true if the value in an operator policy takes precedence over the value in a policy.
pub fn operator_wins(key: &str, user: &ArgumentValue, operator: &ArgumentValue) -> bool {
    match PolicyKey::named(key).map_or(Merge::Operator, |key| key.merge) {
        Merge::Smaller => erlang_order(operator, user) == Ordering::Less,
        Merge::Larger => erlang_order(operator, user) == Ordering::Greater,
        Merge::SmallerNonNegative => !policy_wins(Precedence::SmallestNonNegative, user, operator),
        Merge::Operator => true,
    }
}

/// Returns true if the value in a policy takes precedence over the value of an argument.
pub fn policy_wins(precedence: Precedence, policy: &ArgumentValue, argument: &ArgumentValue) -> bool {
    let is_negative = |value: &ArgumentValue| value.as_integer().is_some_and(|number| number < 0);
    match precedence {
        Precedence::Argument => false,
        Precedence::Policy => true,
        Precedence::SmallestNonNegative if is_negative(policy) || is_negative(argument) => {
            erlang_order(policy, argument) != Ordering::Less
        }
        Precedence::Smallest | Precedence::SmallestNonNegative => erlang_order(policy, argument) != Ordering::Greater,
    }
}

/// Compares values by Erlang's term order, in which numbers precede all other terms. The broker accepts values such as
/// `x-delivery-limit: five`.
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
    fn supported_keys_depend_on_type_and_version() {
        use QueueType::{Classic, Quorum, Stream};
        let v = BrokerVersion::new;
        for (key, kind, version, is_supported) in [
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
            assert_eq!(is_accepted(key, kind, version), is_supported, "{key} on {kind}, {version}");
        }
    }
}
