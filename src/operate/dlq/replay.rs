//! Replays messages from a dead-letter queue, by default to the queues in which they failed.
//!
//! A replayed message looks like a new message. It has its original routing key where possible, and no headers from
//! failed deliveries. By default, topo sends the message to only one queue. If topo published the message to the
//! original exchange, other queues bound to this exchange would process a second copy.

mod breaker;
mod handler;
mod plan;
mod run;

pub use breaker::{Breaker, MAX_WAIT};
pub use plan::{ReplayPlan, ReplayTarget, ReturnPath, plan_replay};
pub use run::replay;

use super::hazard::Hazard;
use super::opened::HoldLimits;
use super::selection::Selection;
use crate::model::QueueName;

/// The destination of replayed messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The queue in which each message failed.
    Source,
    /// One queue for all messages.
    Queue(QueueName),
    /// The exchange to which each message was first published. The exchange routes the message to all queues whose
    /// bindings match.
    OriginalExchange,
}

/// The options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The messages to replay.
    pub selection: Selection,
    /// The maximum number of messages to replay.
    pub limit: Option<u64>,
    /// The destination.
    pub destination: Destination,
    /// True to replay messages that were replayed before.
    pub again: bool,
    /// The maximum number of messages per second; `None` for no maximum.
    pub rate: Option<f64>,
    /// The circuit breaker.
    pub breaker: Breaker,
    /// The limits on held messages.
    pub hold: HoldLimits,
    /// The maximum number of messages in doubt.
    pub window: u16,
    /// The allowed hazards.
    pub allowed: Vec<Hazard>,
    /// The identifier of the run.
    pub run: String,
}
