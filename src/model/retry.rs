//! Failed messages: their retries, the objects that topo generates for retries (one family for each queue), and the reach
//! of dead-lettered messages.

use super::names::QueueName;
use super::object::{ObjectId, ObjectKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Ten years in milliseconds: the maximum TTL that a broker accepts, from 3.10 (`rabbit_amqqueue:check_expires_arg`).
pub const LONGEST_DELAY: i64 = 315_360_000_000;

/// Returns the infinite sequence of the delays of a backoff, in milliseconds.
pub fn backoff_delays(initial: i64, factor: f64, max: Option<i64>) -> impl Iterator<Item = i64> {
    let most = max.unwrap_or(LONGEST_DELAY);
    let mut next = initial as f64;
    std::iter::repeat_with(move || {
        // `f64` is exact far beyond ten years.
        let delay = next.min(most as f64).round() as i64;
        next *= factor;
        delay
    })
}

/// The ways to retry a failed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The broker counts and delays, with a tier queue for each retry.
    Ladder,
    /// The worker counts, and publishes to a tier or to the back of the queue.
    Republish,
    /// A quorum queue counts and redelivers immediately.
    Redeliver,
    /// A quorum queue counts and delays; since RabbitMQ 4.3.
    Delayed,
}

impl Strategy {
    /// All strategies, in the order of lists.
    pub const ALL: [Self; 4] = [Self::Ladder, Self::Republish, Self::Redeliver, Self::Delayed];

    /// Returns the word in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Republish => "republish",
            Self::Redeliver => "redeliver",
            Self::Delayed => "delayed",
        }
    }

    /// Returns the strategy with this word.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The retries of one queue, with all generated objects.
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
    /// The generated objects, without the queue itself; empty if the arguments of the queue are sufficient.
    pub members: BTreeSet<ObjectId>,
}

/// Counts the generated objects of a family by kind: `4 exchanges, 3 tier queues, 8 bindings`. Returns an empty string
/// if there are none.
pub fn counted(members: &BTreeSet<ObjectId>) -> String {
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

/// `orders.work → 5s → 30s → orders.dead`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.queue, self.path)
    }
}

/// The reachability of a queue for dead-lettered messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The broker drops all messages.
    Never,
    /// The result depends on the routing key, on the headers, or on bindings that the spec does not declare.
    Maybe,
    /// All messages arrive.
    Always,
}
