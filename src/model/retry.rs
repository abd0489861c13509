//! How a failed message is tried again, and what topo generates for it: one family a queue.

use super::{ObjectId, ObjectKind, QueueName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Ten years in milliseconds: the most that a broker takes as a TTL, from 3.10 (`rabbit_amqqueue:check_expires_arg`).
pub const LONGEST_DELAY: i64 = 315_360_000_000;

/// Returns the delays of a backoff, in milliseconds, without end.
pub fn backoff_delays(initial: i64, factor: f64, max: Option<i64>) -> impl Iterator<Item = i64> {
    let most = max.unwrap_or(LONGEST_DELAY);
    let mut next = initial as f64;
    std::iter::repeat_with(move || {
        // Exact far beyond ten years.
        let delay = next.min(most as f64).round() as i64;
        next *= factor;
        delay
    })
}

/// The ways to try a failed message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The broker counts and waits: a tier queue a retry.
    Ladder,
    /// The worker counts and publishes again, to a tier or to the back of the queue.
    Republish,
    /// A quorum queue counts and delivers again at once.
    Redeliver,
    /// A quorum queue counts and waits; since RabbitMQ 4.3.
    Delayed,
}

impl Strategy {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Self; 4] = [Self::Ladder, Self::Republish, Self::Redeliver, Self::Delayed];

    /// The word for it in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Republish => "republish",
            Self::Redeliver => "redeliver",
            Self::Delayed => "delayed",
        }
    }

    /// The strategy with that word.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// All that one queue's retries are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Family {
    /// The queue whose messages are tried again.
    pub queue: QueueName,
    /// How.
    pub strategy: Strategy,
    /// How often, after the first attempt.
    pub retries: u32,
    /// The way of a message that always fails: `5s → 30s → orders.dead`.
    pub path: String,
    /// The generated objects, the queue itself not among them; none where its own arguments are all.
    pub members: BTreeSet<ObjectId>,
}

/// `4 exchanges, 3 tier queues, 8 bindings`, of the generated objects of a family; nothing where there are none.
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
