//! Contracts as the document that workers and tools read: its shape is stable within a format version.

use crate::model::{BrokerVersion, ExchangeName, QueueName, QueueType, Reach, Strategy, VhostName};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the document's shape. What is added does not change it; what is renamed or means something else does.
pub const FORMAT_VERSION: u32 = 1;

/// What `topo contract --format json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    /// The version of this shape.
    pub format_version: u32,
    /// The RabbitMQ that it holds for.
    pub broker_version: BrokerVersion,
    /// The vhosts of the specs, by name.
    pub vhosts: BTreeMap<VhostName, VhostContracts>,
}

/// The contracts of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VhostContracts {
    /// The queues that retry, have dead letters, or mean to drop what fails, by name.
    pub queues: BTreeMap<QueueName, Contract>,
}

/// What the workers of one queue must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// The type of the queue.
    pub queue_type: QueueType,
    /// How it retries; null: it does not.
    pub strategy: Option<Strategy>,
    /// How often a failed message is tried again after the first attempt.
    pub max_retries: u32,
    /// How often a message that always fails is delivered: one more than the retries.
    pub deliveries: u32,
    /// How long each retry waits, in order; empty where none does.
    pub delays: Vec<Wait>,
    /// By how much a worker may shorten a wait, with a per-message `expiration` between the delay less this and the delay.
    pub jitter: Option<Wait>,
    /// What a worker does with a message that it failed at.
    pub on_failure: Answer,
    /// What it does with a message that is hopeless, or whose retries are used up where the worker counts.
    pub on_give_up: Answer,
    /// How a worker tells which attempt it is; null where there is only one.
    pub counter: Option<Counter>,
    /// How a retry comes, where that is not as the message came first.
    pub retry_arrives: Option<Arrival>,
    /// Where the message's first exchange and key are found then.
    pub original: Option<Original>,
    /// Where a message goes that is given up; null: the queue has no dead-letter exchange, and it is dropped.
    pub dead_letters: Option<DeadLetters>,
    /// Whether the spec says that what is given up is dropped: `deadLetter: none`.
    pub is_drop_intended: bool,
    /// What a good dead letter says of itself; null where none arrives.
    pub dead_lettered_message: Option<DeadLetteredMessage>,
    /// What goes wrong otherwise, in sentences.
    pub warnings: Vec<String>,
}

/// A time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// In milliseconds.
    pub milliseconds: i64,
    /// In words: `1m30s`.
    pub text: String,
}

/// What a worker does with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What it publishes before it answers, with a confirm; null: nothing.
    pub publish: Option<Publish>,
    /// How it answers.
    pub method: Method,
    /// The method's flag; null for `basic.ack`, which has none.
    pub requeue: Option<bool>,
}

/// A method of AMQP 0-9-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Method {
    /// Done with it.
    #[serde(rename = "basic.ack")]
    Ack,
    /// Failed.
    #[serde(rename = "basic.nack")]
    Nack,
    /// Failed, and counted on every version.
    #[serde(rename = "basic.reject")]
    Reject,
}

impl Method {
    /// RabbitMQ's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ack => "basic.ack",
            Self::Nack => "basic.nack",
            Self::Reject => "basic.reject",
        }
    }
}

/// A copy of the message, with its body, properties and headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Publish {
    /// To this exchange; empty is the default one.
    pub exchange: ExchangeName,
    /// With these keys, one a retry: the first for the first, and the last one repeats. Never empty.
    pub routing_keys: Vec<String>,
}

/// How a worker tells which attempt it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    /// Who counts.
    pub counted_by: AttemptCounter,
    /// The header with the number of retries so far; none, or 0, on the first attempt. Null: the key says it.
    pub header: Option<String>,
    /// How to read it, in a sentence.
    pub text: String,
}

/// Who counts attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttemptCounter {
    /// The broker.
    Broker,
    /// The worker: it must write the header, too.
    Worker,
}

/// How a retry comes to a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// From this exchange.
    pub exchange: ExchangeName,
    /// With these keys, one a retry; the last one repeats.
    pub routing_keys: Vec<String>,
}

/// Where the message's first exchange and key are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// Who keeps them. What the worker keeps, it writes into these headers when it publishes the first copy.
    pub counted_by: AttemptCounter,
    /// A header, or a field of an entry of `x-death`: `x-death[queue=…, reason=…].exchange`.
    pub exchange: String,
    /// The same for the key.
    pub routing_key: String,
}

/// Where dead-lettered messages go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// The queue where they end; null where it is not exactly one, or where the spec does not know it.
    pub queue: Option<QueueName>,
    /// The exchange that takes them there; empty is the default one.
    pub exchange: ExchangeName,
    /// The key that they get; null: the one that they have.
    pub routing_key: Option<String>,
    /// Whether they arrive in any queue.
    pub reach: Reach,
    /// The queues that get all of them.
    pub queues: BTreeSet<QueueName>,
    /// Other queues, which get some of them, or of which the spec does not say enough.
    pub possible_queues: BTreeSet<QueueName>,
    /// The keys, and the topic patterns of keys, with which the broker drops them; some of several.
    pub dropped_keys: Vec<String>,
}

/// What a good dead letter says of itself. The broker adds `x-death`; the rest only the worker knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetteredMessage {
    /// Where a worker publishes a letter with these headers, on the last attempt, and answers with `basic.ack`; null where
    /// no client can.
    pub publish: Option<Publish>,
    /// The headers.
    pub headers: Vec<DeadLetterHeader>,
}

/// A header of a good dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterHeader {
    /// Its name.
    pub name: String,
    /// What it says.
    pub meaning: String,
    /// Its value, where it is always the same.
    pub value: Option<String>,
}
