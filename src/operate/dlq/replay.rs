//! Replays messages of a dead-letter queue to the queues in which they failed.
//!
//! A replayed message looks as if it was published for the first time: it has its original routing key, and no headers
//! of its failed deliveries. It goes to one queue. A copy for other queues of the original exchange would be processed
//! there a second time.

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
    /// A queue for all messages.
    Queue(QueueName),
    /// The exchange to which each message was first published. Every queue that is bound to it receives a copy.
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
    /// The limits for held messages.
    pub hold: HoldLimits,
    /// The maximum number of messages in doubt.
    pub window: u16,
    /// The allowed hazards.
    pub allowed: Vec<Hazard>,
    /// The identifier of the run.
    pub run: String,
}
