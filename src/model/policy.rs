//! Policies: settings that the broker applies to objects with matching names.

use super::arguments::{ArgumentValue, Arguments, Float};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A policy without its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// The regular expression (PCRE) that object names must match. It is not anchored.
    pub pattern: String,
    /// The kinds of objects that the policy applies to.
    #[serde(rename = "apply-to")]
    pub apply_to: ApplyTo,
    /// The priority. Of all policies that match an object, only the policy with the highest priority applies. The
    /// broker does not merge policies.
    pub priority: Priority,
    /// The values of policy keys (`message-ttl`, …).
    pub definition: Arguments,
}

/// The kinds of objects that a policy applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyTo {
    /// Queues and exchanges.
    All,
    /// Queues of all types, including streams.
    Queues,
    /// Exchanges.
    Exchanges,
    /// Classic queues; since RabbitMQ 3.12.
    ClassicQueues,
    /// Quorum queues; since RabbitMQ 3.12.
    QuorumQueues,
    /// Streams; since RabbitMQ 3.12.
    Streams,
}

impl ApplyTo {
    /// All values.
    pub const ALL: [Self; 6] =
        [Self::All, Self::Queues, Self::Exchanges, Self::ClassicQueues, Self::QuorumQueues, Self::Streams];

    /// Returns the value with this RabbitMQ name; `None` for an unknown name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }

    /// Returns RabbitMQ's name for the value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Queues => "queues",
            Self::Exchanges => "exchanges",
            Self::ClassicQueues => "classic_queues",
            Self::QuorumQueues => "quorum_queues",
            Self::Streams => "streams",
        }
    }
}

impl fmt::Display for ApplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The priority of a policy. It is nearly always an integer, but the broker accepts any number. A priority without a
/// fraction is serialized as an integer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "f64", into = "PriorityNumber")]
#[schemars(with = "f64")]
pub struct Priority(pub f64);

impl Priority {
    /// Returns a higher priority: the next integer or, at 2^53 and above, the next representable number.
    pub fn above(self) -> Self {
        let next = self.0.floor() + 1.0;
        let above = if next > self.0 { next } else { self.0.next_up() };
        Self(above.min(f64::MAX))
    }
}

/// The serialized form of a priority.
#[derive(Serialize)]
#[serde(untagged)]
enum PriorityNumber {
    Integer(i64),
    Float(f64),
}

impl From<f64> for Priority {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl From<Priority> for PriorityNumber {
    fn from(Priority(value): Priority) -> Self {
        // `f64` is exact for integers below 2^53. Higher priorities do not occur in practice.
        if value.fract() == 0.0 && value.abs() < 9e15 { Self::Integer(value as i64) } else { Self::Float(value) }
    }
}

impl From<Priority> for ArgumentValue {
    fn from(priority: Priority) -> Self {
        match priority.into() {
            PriorityNumber::Integer(number) => Self::Integer(number),
            PriorityNumber::Float(number) => Self::Float(Float(number)),
        }
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        // To the broker, `0` and `-0` are the same priority.
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Priority {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Priority {}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::value_text;

    #[test]
    fn integral_priorities_are_shown_without_fraction() {
        for (priority, shown) in [(3.0, "3"), (-1.0, "-1"), (-0.0, "0"), (1.5, "1.5")] {
            assert_eq!(value_text(&Priority(priority).into()), shown);
        }
    }

    #[test]
    fn priority_above_is_higher_for_any_number() {
        assert_eq!(Priority(1.5).above(), Priority(2.0));
        assert_eq!(Priority(-1.0).above(), Priority(0.0));
        for high in [9e15, 1e16, 1e300] {
            let above = Priority(high).above();
            assert!(above > Priority(high));
            assert_eq!(serde_json::from_str::<f64>(&above.to_string()).unwrap(), above.0);
        }
    }
}
