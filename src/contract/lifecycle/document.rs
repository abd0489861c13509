//! The life of a message as a finished value, for a screen and for machines.

use crate::contract::{Contract, Publish, Wait};
use crate::model::{BrokerVersion, ExchangeName, QueueName, QueueType, VhostName};
use serde::Serialize;

/// What there is to say of a queue's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Explanation {
    /// It is a queue of the spec.
    Queue(Box<Lifecycle>),
    /// It is the name of a tier of one.
    Tier(TierDescription),
}

/// What becomes of a message in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The vhost.
    pub vhost: VhostName,
    /// The queue.
    pub queue: QueueName,
    /// Its type.
    pub queue_type: QueueType,
    /// The RabbitMQ that it holds for.
    pub broker_version: BrokerVersion,
    /// Where it is declared.
    pub at: Place,
    /// The queues whose dead-lettered messages arrive here, all or some of them.
    pub letters_of: Vec<QueueName>,
    /// Whether it is declared as a dead-letter queue, which nobody consumes.
    pub is_dead_letter_queue: bool,
    /// The way of a message that always fails, in order.
    pub steps: Vec<Step>,
    /// Every way out of the queue.
    pub exits: Vec<Exit>,
    /// Each setting, with who says it.
    pub settings: Vec<Source>,
    /// What workers must know; null for streams.
    pub contract: Option<Contract>,
    /// What a dead letter carries whose retries are used up; null where there are none.
    pub dead_lettered_message: Option<Carried>,
    /// How a dead letter is given to the queue again.
    pub replay: Option<Replay>,
}

/// A place in a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// A state of a message, and what leads to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The state.
    pub state: State,
    /// How long after it came to the queue, where no attempt takes any time itself; null where that cannot be said.
    pub after: Option<Wait>,
    /// What leads to the next state; empty at the end.
    pub then: String,
}

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// On its way into the queue.
    Published {
        /// From where, in words; each is a way in.
        ways_in: Vec<String>,
    },
    /// At a worker.
    Attempt {
        /// Which, from 1.
        number: u32,
    },
    /// Attempts that are like those before.
    Attempts {
        /// The first of them.
        from: u32,
        /// The last of them.
        to: u32,
    },
    /// Between two attempts.
    Waiting {
        /// In which tier; null: in the queue itself.
        queue: Option<QueueName>,
        /// How long.
        wait: Wait,
    },
    /// In the queue, for good.
    Kept {
        /// For how long, in words.
        until: String,
    },
    /// Given up.
    DeadLetter {
        /// Where it is now, in words.
        place: String,
    },
    /// Given up, and gone.
    Dropped,
}

/// One way out of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// A word for it.
    pub way: &'static str,
    /// What takes a message there.
    pub by: String,
    /// Where it leads.
    pub to: String,
}

/// A setting, and who says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its key in the spec.
    pub key: String,
    /// What holds.
    pub value: String,
    /// Why the broker ignores it; absent where it has an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
    /// Who says so.
    pub set_by: String,
    /// Where; null where nobody wrote it.
    pub at: Option<Place>,
}

/// What the broker writes on a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// The exchange that it has in the dead-letter queue.
    pub exchange: ExchangeName,
    /// The key that it has there; null: the one that it came with first.
    pub routing_key: Option<String>,
    /// Entries of `x-death`, newest first; only the first place is sure.
    pub x_death: Vec<Death>,
    /// Whether there may be more entries: copies may bring some.
    pub may_have_more: bool,
}

/// An entry of `x-death`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Death {
    /// Where it died.
    pub queue: QueueName,
    /// Of what.
    pub reason: &'static str,
    /// How often.
    pub count: u32,
}

/// How a dead letter is given to the queue again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Where it is published.
    pub publish: Publish,
    /// Headers that the copy must not have.
    pub without_headers: Vec<String>,
    /// What not to do, in sentences.
    pub warnings: Vec<String>,
}

/// A tier of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierDescription {
    /// The vhost.
    pub vhost: VhostName,
    /// The tier.
    pub tier: QueueName,
    /// The queue whose failed messages wait there.
    pub queue: QueueName,
    /// Before which retry, from 1.
    pub retry: u32,
    /// How long.
    pub wait: Wait,
    /// Whether the spec as it is makes it; else it is left over, and drains.
    pub is_made: bool,
    /// The key with which a message comes back.
    pub routing_key: String,
    /// The exchange by which it comes back.
    pub exchange: ExchangeName,
    /// Where the retries of the queue are said.
    pub at: Option<Place>,
}
