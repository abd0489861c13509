//! Defines the report of a run that changes a dead-letter queue.

use super::selection::Selection;
use crate::broker::transport::{ProcessEnd, Processed};
use crate::model::{QueueName, VhostName};
use std::collections::BTreeSet;

/// The report of a replay or a drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// The identifier of the run.
    pub run: String,
    /// The vhost.
    pub vhost: VhostName,
    /// The dead-letter queue.
    pub queue: QueueName,
    /// The number of messages in the queue before the run.
    pub before: u64,
    /// The number of ready messages after the run; `None` if unknown.
    pub after: Option<u64>,
    /// The counts.
    pub counts: RunCounts,
    /// The users named in the `user_id` property of messages that only the named user may publish.
    pub other_users: BTreeSet<String>,
    /// The first replayed messages that came back, at most 20.
    pub came_back: Vec<ReturnedMessage>,
    /// Why the run ended.
    pub end: RunEnd,
    /// How to continue the run if it is not complete.
    pub continuation: Continuation,
}

/// The maximum number of returned messages that a report lists.
pub(super) const MAX_CAME_BACK: usize = 20;

/// A replayed message that was dead-lettered to the queue again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedMessage {
    /// The identifier of the message content.
    pub fingerprint: String,
    /// The queue in which the message failed; `None` if unknown.
    pub source: Option<QueueName>,
    /// The original routing key.
    pub routing_key: String,
    /// The error from the last attempt; `None` if the message contains no error.
    pub error: Option<String>,
}

/// How to continue a run that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The same command processes the remaining messages.
    SameCommand,
    /// The same command with this limit processes the remaining messages.
    Limit(u64),
    /// The positions of the remaining messages have changed, so the user must specify the new positions.
    OtherPositions,
}

impl Continuation {
    /// Returns how to continue a run that replayed or dropped `done` messages.
    pub(super) fn of(selection: &Selection, limit: Option<u64>, done: u64) -> Self {
        match limit {
            _ if !selection.positions.is_empty() => Self::OtherPositions,
            Some(limit) => Self::Limit(limit.saturating_sub(done)),
            None => Self::SameCommand,
        }
    }
}

/// The message counts of a run, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// The received messages.
    pub received: u64,
    /// The messages that matched the selection.
    pub matched: u64,
    /// The messages that were replayed or dropped.
    pub done: u64,
    /// The replayed messages that were dead-lettered to the queue again during the run.
    pub came_back: u64,
    /// The replayed messages that may still come back, because their outcome was not known at the end of the run.
    pub pending: u64,
    /// The other messages that were dead-lettered to the queue during the run.
    pub arrived: u64,
    /// The matching messages that stay in the queue because an earlier run replayed them.
    pub replayed_before: u64,
    /// The matching messages that stay in the queue because their source is unknown or is not a target of the plan.
    pub unknown_source: u64,
    /// The matching messages that stay in the queue because only another user may publish them.
    pub of_other_users: u64,
    /// The matching messages that stay in the queue because their properties cannot be read.
    pub unreadable: u64,
    /// The messages that topo republished to the end of the queue, because they were near the delivery limit.
    pub renewed: u64,
    /// The messages that may be both in the queue and in their target.
    pub in_doubt: u64,
}

/// The reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// All messages were processed.
    Complete,
    /// The run reached the limit on the number of messages.
    Limit,
    /// The circuit breaker stopped the run.
    Breaker {
        /// The number of replayed messages on which the share of returned messages is based.
        judged: u64,
    },
    /// The run was interrupted.
    Interrupted,
    /// The run stopped before it was complete. Contains the reason.
    Stopped(String),
}

impl RunEnd {
    /// Returns the name in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Limit => "limit",
            Self::Breaker { .. } => "breaker",
            Self::Interrupted => "interrupted",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Returns true if the run processed all messages, or as many as the limit permits.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Complete | Self::Limit => true,
            Self::Breaker { .. } | Self::Interrupted | Self::Stopped(_) => false,
        }
    }
}

/// The reason that is shown for a run that ended because it held the maximum number of messages.
pub const HOLD_FULL: &str =
    "topo reached the limit for held messages (--hold, or 1 GB in total) and did not read the rest of the queue";

/// Returns the reason why a run ended. `ended` is the reason that the handler recorded.
pub(super) fn run_end(processed: &Processed, ended: Option<RunEnd>) -> RunEnd {
    match (&processed.end, ended) {
        (ProcessEnd::Complete, Some(ended @ RunEnd::Breaker { .. })) | (ProcessEnd::Ended, Some(ended)) => ended,
        (ProcessEnd::Complete, _) => RunEnd::Complete,
        (other, _) => RunEnd::Stopped(end_text(other)),
    }
}

/// Describes the reason why a run ended.
pub(super) fn end_text(end: &ProcessEnd) -> String {
    match end {
        ProcessEnd::Complete => "complete".to_owned(),
        ProcessEnd::Ended => "ended".to_owned(),
        ProcessEnd::HoldFull => HOLD_FULL.to_owned(),
        ProcessEnd::TimeLimit => "topo reached the maximum time for unacknowledged messages (--hold-time)".to_owned(),
        ProcessEnd::NotDelivered => {
            "the queue has delivered no messages for 60 s, although it contains messages; another consumer may be receiving them, \
             or the queue has no leader"
                .to_owned()
        }
        ProcessEnd::Unroutable { exchange, reason } if exchange.as_str().is_empty() => {
            format!("the default exchange could not route a message: {reason}")
        }
        ProcessEnd::Unroutable { exchange, reason } => {
            format!("exchange {exchange} could not route a message: {reason}")
        }
        ProcessEnd::Rejected => "the target queue is full and rejected a message".to_owned(),
        ProcessEnd::NotStored { reason } => format!("the messages could not be written to the file: {reason}"),
        ProcessEnd::Failed(error) => error.to_string(),
    }
}
