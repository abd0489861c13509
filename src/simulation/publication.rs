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
    /// The property `expiration` in milliseconds; `None` if it is not set.
    pub expiration: Option<i64>,
    /// The number of messages.
    pub count: u64,
}

impl Publication {
    /// Returns the message for the simulation of routing.
    pub fn message(&self) -> Message {
        Message::published(&self.routing_key, &self.headers)
    }
}

/// The reaction of a worker to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behavior {
    /// `basic.ack`.
    Ack,
    /// The reply of the contract to a failure.
    Fail,
    /// The reply of the contract when the worker gives up.
    GiveUp,
    /// `basic.nack` with `requeue=false`.
    Nack,
    /// `basic.reject` with `requeue=false`.
    Reject,
    /// `basic.reject` with `requeue=true`.
    Requeue,
    /// `basic.nack` with `requeue=true`.
    NackRequeue,
    /// The connection closes.
    Crash,
    /// No reply.
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

    /// Returns the word in test files.
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

/// The behavior of the worker of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The behavior at every delivery.
    Always(Behavior),
    /// The behavior at each delivery. Further deliveries are not expected.
    Each(Vec<Behavior>),
}

impl Worker {
    /// Returns the behavior at a delivery, counted from 0; `None` if no further delivery is expected.
    pub fn behavior(&self, number: usize) -> Option<Behavior> {
        match self {
            Self::Always(behavior) => Some(*behavior),
            Self::Each(behaviors) => behaviors.get(number).copied(),
        }
    }
}
