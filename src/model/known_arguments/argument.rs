//! The types that describe an argument: its values, and the queue types and ranges of broker versions that accept,
//! check and compare it.

use crate::model::queue::QueueType;
use crate::model::version::BrokerVersion;
use std::fmt;

/// The valid values of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A duration in milliseconds, with its minimum and maximum.
    Duration(i64, i64),
    /// A size in bytes, from 0 to this maximum.
    Size(i64),
    /// A count, with its minimum and maximum.
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
    /// No unit: a count, or a value that is not a number.
    None,
}

/// A queue type's support for an argument.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The queue type.
    pub queue_type: QueueType,
    /// The versions that accept the argument in a declaration and support it. Other versions reject it, or store it
    /// without effect.
    pub accepted: Versions,
    /// The versions (3.9 and later) in which the queue type lists the argument (`capabilities()`). These versions check
    /// the value if [`KnownArgument::checks`] contains a check, and compare the value when the queue is redeclared. A
    /// queue type that does not list the argument rejects it if any other type lists it.
    pub listed: &'static [Versions],
    /// The first version in which the argument is accepted but has no effect, if there is one.
    pub no_effect_since: Option<BrokerVersion>,
}

/// The argument values that certain versions accept.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The versions with this check.
    pub versions: Versions,
    /// The values that these versions accept.
    pub value: ValueKind,
}

/// A queue argument.
#[derive(Clone, Copy, Debug)]
pub struct KnownArgument {
    /// The name on the wire, for example `x-message-ttl`.
    pub name: &'static str,
    /// The key in a spec, for example `messageTtl`.
    pub key: &'static str,
    /// The values that a spec accepts: all values that are useful on at least one supported version.
    pub value: ValueKind,
    /// The values that brokers accept, by version. A version without an entry accepts any value.
    pub checks: &'static [Check],
    /// The queue types that support the argument.
    pub support: &'static [Support],
    /// The queue types that list the argument in some versions but never support it.
    pub idle: &'static [Support],
    /// True if RabbitMQ 3.8 lists the argument in `declare_args()`. 3.8 checks and compares these arguments for every
    /// queue type.
    pub is_known_to_3_8: bool,
    /// The policy key with the same effect, if there is one.
    pub policy_key: Option<&'static str>,
    /// The documentation, in Markdown.
    pub doc: &'static str,
}

/// The maximum TTL and queue expiry on RabbitMQ 3.10 and later: ten years, in milliseconds (`check_expiry`).
pub(super) const TEN_YEARS: i64 = 315_360_000_000;

/// The maximum 64-bit integer, for arguments without a maximum.
pub(super) const ANY: i64 = i64::MAX;

/// All versions that list arguments by queue type.
pub(super) const LISTED: &[Versions] = &[Versions::since(3, 9)];

/// The versions that support streams.
pub(super) const STREAMS: Versions = Versions::since(3, 9);

/// No checks, for an argument whose value no version checks.
pub(super) const UNCHECKED: &[Check] = &[];

/// Returns a queue type's support for an argument that it accepts in every version that has the type, and lists in
/// every version that lists arguments.
pub(super) const fn always(queue_type: QueueType) -> Support {
    let accepted = match queue_type {
        QueueType::Classic | QueueType::Quorum => Versions::ALL,
        QueueType::Stream => STREAMS,
    };
    Support { queue_type, accepted, listed: LISTED, no_effect_since: None }
}

/// Returns a queue type's support for an argument that it accepts and lists in these versions.
pub(super) const fn support(queue_type: QueueType, accepted: Versions, listed: &'static [Versions]) -> Support {
    Support { queue_type, accepted, listed, no_effect_since: None }
}

/// Returns a check that applies to all versions.
pub(super) const fn check(value: ValueKind) -> Check {
    Check { versions: Versions::ALL, value }
}

impl Support {
    /// Returns true if the queue type lists the argument in this version.
    pub(super) fn is_listed(&self, version: BrokerVersion) -> bool {
        self.listed.iter().any(|versions| versions.contains(version))
    }
}

/// A range of versions; the upper bound is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first version of the range.
    pub since: BrokerVersion,
    /// The first version after the range, if there is one.
    pub until: Option<BrokerVersion>,
}

/// The first version that topo supports. The tables contain no earlier versions.
const FIRST: BrokerVersion = BrokerVersion::new(3, 8, 0);

impl Versions {
    /// All versions that topo supports.
    pub const ALL: Self = Self { since: FIRST, until: None };

    /// Returns the range that starts with the first patch release of a minor version.
    pub const fn since(major: u16, minor: u16) -> Self {
        Self::since_patch(major, minor, 0)
    }

    /// Returns the range that starts with a patch release.
    pub const fn since_patch(major: u16, minor: u16, patch: u16) -> Self {
        Self { since: BrokerVersion::new(major, minor, patch), until: None }
    }

    /// Returns the range with the same start that ends before the first patch release of a minor version.
    pub const fn until(self, major: u16, minor: u16) -> Self {
        self.until_patch(major, minor, 0)
    }

    /// Returns the range with the same start that ends before a patch release.
    pub const fn until_patch(self, major: u16, minor: u16, patch: u16) -> Self {
        Self { since: self.since, until: Some(BrokerVersion::new(major, minor, patch)) }
    }

    /// Returns the first version in its short form: `3.10`, `3.8.10`.
    pub fn first(self) -> String {
        short(self.since)
    }

    /// Returns true if the range contains a version.
    pub fn contains(self, version: BrokerVersion) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

fn short(version: BrokerVersion) -> String {
    match version {
        BrokerVersion { major, minor, patch: 0 } => format!("{major}.{minor}"),
        BrokerVersion { major, minor, patch } => format!("{major}.{minor}.{patch}"),
    }
}

/// Writes the range: `all`, `3.10 and later`, `before 4.3`, `from 3.12, before 4.3.2`.
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.since == FIRST, self.until) {
            (true, None) => "all".to_owned(),
            (true, Some(until)) => format!("before {}", short(until)),
            (false, None) => format!("{} and later", short(self.since)),
            (false, Some(until)) => format!("from {}, before {}", short(self.since), short(until)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bound_is_exclusive() {
        let versions = Versions::since(3, 10).until_patch(4, 3, 2);
        let contains = |text: &str| versions.contains(text.parse().unwrap());
        assert_eq!(["3.9.29", "3.10.0", "4.3.1", "4.3.2"].map(contains), [false, true, true, false]);
        assert_eq!(versions.to_string(), "from 3.10, before 4.3.2");
        assert_eq!(Versions::ALL.until(4, 0).to_string(), "before 4.0");
    }
}
