//! Defines the result of a simulation.

use super::copy::DeathEntry;
use super::part::RoutingPart;
use super::publication::Behavior;
use crate::contract::Method;
use crate::model::{ExchangeName, QueueName};
use crate::rabbitmq::routing::{Headers, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a simulation. Times are in milliseconds since the first publish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The queues to which the exchange routed the first message.
    pub routed_to: BTreeSet<QueueName>,
    /// The number of messages with each result for the publisher.
    pub publisher: BTreeMap<PublisherResult, u64>,
    /// The delivery times for each queue, in order.
    pub attempts: BTreeMap<QueueName, Vec<i64>>,
    /// All queues to which a copy was routed, including full queues that rejected it, but not external queues.
    pub reached: BTreeSet<QueueName>,
    /// The ends of all copies.
    pub ends: Vec<EndedCopy>,
    /// The events in order; at most 10,000.
    pub events: Vec<Event>,
    /// The number of events that [`Self::events`] does not contain.
    pub omitted_events: u64,
    /// The queues whose workers received more deliveries than expected.
    pub unexpected_deliveries: BTreeSet<QueueName>,
    /// The parts of the topology that routed the messages, if the simulation records them.
    pub taken: BTreeSet<RoutingPart>,
    /// The reason why [`Self::routed_to`] is unknown; `None` if it is known.
    pub unknown_route: Option<String>,
    /// The reasons why the result is unknown; empty if it is known. They include [`Self::unknown_route`].
    pub unknown: BTreeSet<String>,
    /// The time of the last event.
    pub ended_at: i64,
}

/// The result of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PublisherResult {
    /// At least one queue received the message, and none rejected it.
    Confirmed,
    /// No queue received the message. With the `mandatory` flag, the broker sends `basic.return`.
    Returned,
    /// A queue rejected the message. The broker sends `basic.nack`.
    Refused,
}

impl PublisherResult {
    /// Returns the word that test files use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Returned => "returned",
            Self::Refused => "refused",
        }
    }
}

/// The end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The copy stays in the queue, and was never dead-lettered.
    Waiting,
    /// The copy stays in the queue. It was last dead-lettered for this reason.
    Dead(Reason),
    /// A worker acknowledged the copy.
    Acked,
    /// A worker received the copy and has not replied.
    Held,
    /// The copy left the queue and reached no other queue.
    Dropped,
    /// The copy circulates indefinitely.
    Loops,
}

impl End {
    /// All ends.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Dead(Reason::Rejected),
        Self::Dead(Reason::Expired),
        Self::Dead(Reason::Maxlen),
        Self::Dead(Reason::DeliveryLimit),
        Self::Acked,
        Self::Held,
        Self::Dropped,
        Self::Loops,
    ];

    /// Returns the word that test files use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Dead(reason) => reason.as_str(),
            Self::Acked => "acked",
            Self::Held => "held",
            Self::Dropped => "dropped",
            Self::Loops => "loops",
        }
    }
}

/// A copy at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedCopy {
    /// The number of the published message, starting at 1.
    pub message: u64,
    /// The queue in which the copy ended.
    pub queue: QueueName,
    /// The end.
    pub end: End,
    /// The exchange of the copy.
    pub exchange: ExchangeName,
    /// The routing key of the copy.
    pub routing_key: String,
    /// The headers of the copy, without `x-death`.
    pub headers: Headers,
    /// The entries of `x-death`, newest first. Only the position of the first entry is certain.
    pub deaths: Vec<DeathEntry>,
}

/// An event of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time.
    pub at: i64,
    /// The number of the published message, starting at 1.
    pub message: u64,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// An application or a worker published a message.
    Published {
        /// The exchange.
        exchange: ExchangeName,
        /// The routing key.
        routing_key: String,
        /// The keys in the `CC` and `BCC` headers.
        more_keys: Vec<String>,
        /// The queues to which the message was routed.
        queues: BTreeSet<QueueName>,
    },
    /// A worker received a message.
    Delivered {
        /// The queue.
        queue: QueueName,
        /// The number of this delivery from the queue, starting at 1.
        attempt: usize,
        /// The behavior; `None` if the delivery was not expected.
        behavior: Option<Behavior>,
        /// The method that the worker calls, with its `requeue` flag; `None` if the worker calls no method.
        method: Option<(Method, Option<bool>)>,
    },
    /// A queue dead-lettered a message.
    DeadLettered {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: Reason,
        /// The dead-letter exchange; `None` if the queue has no dead-letter exchange, or if the simulation drops the
        /// message.
        exchange: Option<ExchangeName>,
        /// The queues to which the message was routed.
        queues: BTreeSet<QueueName>,
    },
    /// A full queue rejected a message.
    Refused {
        /// The queue.
        queue: QueueName,
    },
}
