//! The document format for contracts, which workers and tools read. The format is stable within a format version.

use super::declaration::Declaration;
use crate::model::units::duration;
use crate::model::{BrokerVersion, ExchangeName, QueueName, QueueType, Reach, Strategy, VhostName};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the document format. Adding a field does not change the version. Renaming a field or changing its
/// meaning increments the version.
pub const FORMAT_VERSION: u32 = 1;

/// The contracts that `topo contract --format json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    /// The version of this format.
    pub format_version: u32,
    /// The RabbitMQ version that the contracts apply to.
    pub broker_version: BrokerVersion,
    /// The vhosts of the specs, by name.
    pub vhosts: BTreeMap<VhostName, VhostContracts>,
}

/// The contracts of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VhostContracts {
    /// The queues that retry, dead-letter, or drop failed messages on purpose, by name.
    pub queues: BTreeMap<QueueName, Contract>,
    /// The thresholds of the queues and dead-letter queues that have thresholds, by name.
    pub thresholds: BTreeMap<QueueName, QueueThresholds>,
}

/// The duties of the workers of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// The type of the queue.
    pub queue_type: QueueType,
    /// The properties with which a worker must declare the queue, unless it declares the queue passively.
    pub declaration: Declaration,
    /// The retry strategy; null if the queue does not retry.
    pub strategy: Option<Strategy>,
    /// The maximum number of retries after the first attempt.
    pub max_retries: u32,
    /// The maximum number of deliveries of a message that always fails: the first attempt and all retries.
    pub deliveries: u32,
    /// The delay of each retry, in order; empty without delays.
    pub delays: Vec<Wait>,
    /// The maximum time by which a worker may shorten a delay; null without jitter. The worker sets a per-message
    /// `expiration` that is at most the delay, and at least the delay minus the jitter.
    pub jitter: Option<Wait>,
    /// The reaction of a worker to a message that it failed to process.
    pub on_failure: Answer,
    /// The reaction of a worker to a message that it can never process. If the worker counts attempts, this is also the
    /// reaction after the last retry.
    pub on_give_up: Answer,
    /// Instructions for determining the attempt number of a message; null if there is only one attempt.
    pub counter: Option<Counter>,
    /// The exchange and routing keys of a retry; null if a retry keeps the original exchange and routing key, or if the
    /// queue does not retry.
    pub retry_arrives: Option<Arrival>,
    /// The headers that contain the original exchange and routing key of a retry; null if `retryArrives` is null.
    pub original: Option<Original>,
    /// The destination of a message that is given up; null if the queue has no dead-letter exchange, in which case the
    /// broker drops the message.
    pub dead_letters: Option<DeadLetters>,
    /// True if the spec intentionally drops messages that are given up: `deadLetter: none`.
    pub is_drop_intended: bool,
    /// The recommended headers of a dead-lettered message; null if no dead-lettered message reaches a queue.
    pub dead_lettered_message: Option<DeadLetteredMessage>,
    /// Instructions for replaying a dead-lettered message so that all retries start again; null if no dead-lettered
    /// message reaches a queue.
    pub replay: Option<Replay>,
    /// The consequences of deviating from the contract, in sentences.
    pub warnings: Vec<String>,
}

impl Contract {
    /// Returns true if the queue retries, dead-letters, or drops failed messages on purpose.
    pub(super) fn has_duties(&self) -> bool {
        self.max_retries > 0 || self.dead_letters.is_some() || self.is_drop_intended
    }
}

/// A duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The duration in milliseconds.
    pub milliseconds: i64,
    /// The duration as text, such as `1m30s`.
    pub text: String,
}

impl Wait {
    /// Converts milliseconds.
    pub(crate) fn of(milliseconds: i64) -> Self {
        Self { milliseconds, text: duration(milliseconds).unwrap_or_else(|| "0ms".to_owned()) }
    }
}

/// The reaction of a worker to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The copy that the worker publishes first, with a publisher confirm; null if the worker publishes no copy.
    pub publish: Option<Publish>,
    /// The AMQP method that the worker calls.
    pub method: Method,
    /// The `requeue` flag of the method; null for `basic.ack`, which has no flag.
    pub requeue: Option<bool>,
}

/// A method of AMQP 0-9-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Method {
    /// The message was processed, or the worker published a copy of it.
    #[serde(rename = "basic.ack")]
    Ack,
    /// The message failed.
    #[serde(rename = "basic.nack")]
    Nack,
    /// The message failed. Unlike with `basic.nack`, every RabbitMQ version counts the delivery toward the delivery
    /// limit.
    #[serde(rename = "basic.reject")]
    Reject,
}

impl Method {
    /// Returns the name of the method in AMQP.
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
    /// The exchange to publish to; empty for the default exchange.
    pub exchange: ExchangeName,
    /// The routing keys, one for each retry; additional retries use the last key. Never empty.
    pub routing_keys: Vec<String>,
}

/// Instructions for determining the attempt number of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    /// The component that counts attempts.
    pub counted_by: Participant,
    /// The header with the number of retries so far; absent or 0 on the first attempt. Null if the routing key contains
    /// the number.
    pub header: Option<String>,
    /// The instructions, as a sentence.
    pub text: String,
}

/// The broker or the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Participant {
    /// The broker.
    Broker,
    /// The worker, which must write the header or headers.
    Worker,
}

/// The exchange and routing keys with which a consumer receives a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// The exchange.
    pub exchange: ExchangeName,
    /// The routing keys, one for each retry; additional retries have the last key.
    pub routing_keys: Vec<String>,
}

/// The headers that contain the original exchange and routing key of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// The component that writes the headers. A worker writes the headers when it publishes the first copy.
    pub written_by: Participant,
    /// The header with the exchange, or a field of an `x-death` entry: `x-death[queue=…, reason=…].exchange`.
    pub exchange: String,
    /// The header with the routing key, or a field of an `x-death` entry.
    pub routing_key: String,
}

/// The destination of dead-lettered messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// The queue that `deadLetter` names, or otherwise the only queue that receives the messages; null if no such queue
    /// is known to receive the messages.
    pub queue: Option<QueueName>,
    /// The dead-letter exchange; empty for the default exchange.
    pub exchange: ExchangeName,
    /// The dead-letter routing key; null if messages keep their own key.
    pub routing_key: Option<String>,
    /// Whether the messages reach a queue.
    pub reach: Reach,
    /// The queues that receive all dead-lettered messages.
    pub queues: BTreeSet<QueueName>,
    /// The queues that receive only some dead-lettered messages, and the queues that possibly receive dead-lettered
    /// messages.
    pub possible_queues: BTreeSet<QueueName>,
    /// The routing keys and topic patterns of the messages that reach no queue. The list can be incomplete, and omits
    /// literal routing keys that contain the word `*` or `#`.
    pub dropped_keys: Vec<String>,
}

/// The recommended headers of a dead-lettered message. The broker adds `x-death`; the worker must write the other
/// headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetteredMessage {
    /// The copy with these headers, which a worker publishes after the last attempt and before `basic.ack`. Null if no
    /// publish is known to reach a dead-letter queue.
    pub publish: Option<Publish>,
    /// The recommended headers.
    pub headers: Vec<DeadLetterHeader>,
}

/// A header of a dead-lettered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterHeader {
    /// The name of the header.
    pub name: String,
    /// The meaning of the header.
    pub meaning: String,
    /// The value of the header; null if the value is not constant.
    pub value: Option<String>,
}

/// Instructions for replaying a dead-lettered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The publish that returns the message to the queue.
    pub publish: Publish,
    /// The headers that the copy must not have.
    pub without_headers: Vec<String>,
    /// The prefixes of additional headers that the copy must not have.
    pub without_header_prefixes: Vec<String>,
    /// The total delay of all retries. A copy that always fails is dead-lettered again only after this time.
    pub retries_take: Wait,
    /// Mistakes to avoid, in sentences.
    pub warnings: Vec<String>,
}

/// The thresholds of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueThresholds {
    /// The number of messages, whether ready or unacknowledged.
    pub depth: SeverityLevels<i64>,
    /// The growth.
    pub growth: SeverityLevels<GrowthThreshold>,
    /// The time since the queue was last empty.
    pub age: SeverityLevels<Wait>,
    /// The time for which the queue has had messages but no consumers; null without this threshold.
    pub no_consumers: Option<Wait>,
}

/// The values of one threshold, by severity; null if the severity has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeverityLevels<T> {
    /// The value at which the state becomes a warning.
    pub warning: Option<T>,
    /// The value at which the state becomes critical.
    pub critical: Option<T>,
}

/// The growth of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrowthThreshold {
    /// The number of messages by which the queue grows.
    pub messages: i64,
    /// The time within which it grows.
    pub within: Wait,
}
