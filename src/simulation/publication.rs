//! Defines the published messages, and the behavior of workers.

use crate::model::{Arguments, ExchangeName};
use crate::rabbitmq::routing::Message;

/// Messages that an application publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// The exchange; empty for the default exchange.
    pub exchange: ExchangeName,
    /// The routing key.
    pub routing_key: String,
    /// The headers.
    pub headers: Arguments,
    /// The `expiration` property in milliseconds; `None` if it is not set.
    pub expiration: Option<i64>,
    /// The number of messages.
    pub count: u64,
}

impl Publication {
    /// Returns the message for the routing simulation.
    pub fn message(&self) -> Message {
        Message::published(&self.routing_key, &self.headers)
    }
}

/// The reaction of a worker to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behavior {
    /// `basic.ack`.
    Ack,
    /// The reaction that the contract requires on failure.
    Fail,
    /// The reaction that the contract requires when the worker gives up.
    GiveUp,
    /// `basic.nack` with `requeue=false`.
    Nack,
    /// `basic.reject` with `requeue=false`.
    Reject,
    /// `basic.reject` with `requeue=true`.
    Requeue,
    /// `basic.nack` with `requeue=true`.
    NackRequeue,
    /// The worker's connection closes.
    Crash,
    /// The worker neither acknowledges nor rejects the delivery.
    Hold,
}

impl Behavior {
    /// All behaviors.
    pub const ALL: [Self; 9] = [
        Self::Ack,
        Self::Fail,
        Self::GiveUp,
        Self::Nack,
        Self::Reject,
        Self::Requeue,
        Self::NackRequeue,
        Self::Crash,
        Self::Hold,
    ];

    /// Returns the word that test files use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Fail => "fail",
            Self::GiveUp => "giveUp",
            Self::Nack => "nack",
            Self::Reject => "reject",
            Self::Requeue => "requeue",
            Self::NackRequeue => "nackRequeue",
            Self::Crash => "crash",
            Self::Hold => "hold",
        }
    }
}

/// The behavior of a queue's worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The behavior for every delivery.
    Always(Behavior),
    /// The behavior for each delivery, in order. Further deliveries are not expected.
    Each(Vec<Behavior>),
}

impl Worker {
    /// Returns the behavior for a delivery; `None` if the delivery is not expected. `number` starts at 0.
    pub fn behavior(&self, number: usize) -> Option<Behavior> {
        match self {
            Self::Always(behavior) => Some(*behavior),
            Self::Each(behaviors) => behaviors.get(number).copied(),
        }
    }
}
