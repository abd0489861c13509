//! The retries of failed messages: strategies, families (the objects that topo generates for the retries of one queue),
//! and the reach of dead-lettered messages.

use super::names::QueueName;
use super::object::{ObjectId, ObjectKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The maximum delay: ten years, in milliseconds. RabbitMQ 3.10.2 and later refuse a longer TTL
/// (`rabbit_misc:check_expiry`).
pub const MAX_DELAY: i64 = 315_360_000_000;

/// Returns the infinite sequence of backoff delays. `initial`, `max` and the delays are in milliseconds. `max` defaults
/// to [`MAX_DELAY`].
pub fn backoff_delays(initial: i64, factor: f64, max: Option<i64>) -> impl Iterator<Item = i64> {
    let max = max.unwrap_or(MAX_DELAY);
    let mut next = initial as f64;
    std::iter::repeat_with(move || {
        // `f64` represents integers up to 2^53 exactly, and `MAX_DELAY` is smaller.
        let delay = next.min(max as f64).round() as i64;
        next *= factor;
        delay
    })
}

/// The strategies for retrying a failed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The broker counts attempts and delays retries, with one tier queue for each retry.
    Ladder,
    /// The worker counts attempts, and publishes the message to a tier queue or to the back of the queue.
    Republish,
    /// A quorum queue counts attempts and redelivers the message immediately.
    Redeliver,
    /// A quorum queue counts attempts and delays redeliveries; since RabbitMQ 4.3.
    Delayed,
}

impl Strategy {
    /// All strategies, in display order.
    pub const ALL: [Self; 4] = [Self::Ladder, Self::Republish, Self::Redeliver, Self::Delayed];

    /// Returns the name of the strategy in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Republish => "republish",
            Self::Redeliver => "redeliver",
            Self::Delayed => "delayed",
        }
    }

    /// Returns the strategy with this name; `None` for an unknown name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The retries of one queue, with the objects that topo generates for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Family {
    /// The queue whose messages are retried.
    pub queue: QueueName,
    /// The strategy.
    pub strategy: Strategy,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// The path of a message that always fails: `5s → 30s → orders.dead`.
    pub path: String,
    /// The generated objects, without the queue itself; empty if queue arguments are sufficient.
    pub members: BTreeSet<ObjectId>,
}

/// Formats the counts of a family's generated objects by kind: `4 exchanges, 3 tier queues, 8 bindings`. Returns an
/// empty string if there are no objects.
pub fn count_by_kind(members: &BTreeSet<ObjectId>) -> String {
    let kinds = [
        (ObjectKind::Exchange, "exchange"),
        (ObjectKind::Policy, "policy"),
        (ObjectKind::Queue, "tier queue"),
        (ObjectKind::Binding, "binding"),
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, word)| match members.iter().filter(|id| id.kind() == kind).count() {
            0 => None,
            1 => Some(format!("1 {word}")),
            many => Some(format!("{many} {word}s")),
        })
        .collect();
    parts.join(", ")
}

/// Writes the queue and the path: `orders.work → 5s → 30s → orders.dead`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.queue, self.path)
    }
}

/// Whether the dead-lettered messages of a queue reach any queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// No message reaches a queue: the broker drops all dead-lettered messages.
    Never,
    /// A message can reach a queue, depending on its routing key, its headers, or bindings that the spec does not
    /// declare.
    Maybe,
    /// All messages reach a queue.
    Always,
}
