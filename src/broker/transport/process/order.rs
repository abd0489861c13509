//! Defines the parameters, the decisions and the result of a run.

use crate::broker::error::BrokerError;
use crate::broker::message::ReceivedMessage;
use crate::model::{ExchangeName, QueueName, QueueType};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The maximum number of consumers of a queue during a run, including consumers from other clients. A quorum queue
/// returns messages from up to 32 consumers in the order of the consumer tags. Erlang sorts the keys of a map only if
/// it has at most 32 entries.
pub const MAX_CONSUMERS: usize = 31;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct ProcessOrder {
    /// The queue.
    pub queue: QueueName,
    /// The type of the queue; `None` for a type from a plugin.
    pub kind: Option<QueueType>,
    /// The number of messages that the queue contained before the run. Later messages are not processed.
    pub expected: u64,
    /// The maximum number of messages that the broker delivers before topo processes them.
    pub prefetch: u16,
    /// The maximum number of messages that are held at the same time. A run holds more messages only at its end, to
    /// keep the order of a quorum queue.
    pub hold: u64,
    /// The time after which the run ends and returns the held messages.
    pub hold_time: Duration,
    /// The maximum number of consumers of this run, at least 1. A queue with a single active consumer allows only 1.
    pub max_consumers: usize,
    /// The maximum number of messages in doubt.
    pub window: u16,
    /// True to return the held messages with `basic.nack`, which does not count as a delivery in quorum queues on 4.3
    /// and later. False to return them by closing the channel.
    pub returns_by_nack: bool,
    /// The counts from earlier passes of the same run. [`MessageHandler::progressed`] receives these counts plus the
    /// counts of this pass.
    pub earlier: ProcessCounts,
}

/// The decision for one message.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The message stays in the queue.
    Keep,
    /// The message is published, and removed from the queue when the broker has confirmed the copy.
    Publish {
        /// The exchange; empty for the default exchange.
        exchange: ExchangeName,
        /// The routing key.
        routing_key: String,
        /// The properties, as AMQP encodes them.
        encoded_properties: Vec<u8>,
    },
    /// The message is removed after [`MessageHandler::flush`].
    Remove,
    /// The message stays in the queue, and the run ends.
    End,
}

/// The permission to process the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The next message can be processed.
    Open,
    /// The next message can be processed from this time on.
    Until(Instant),
    /// The run ends.
    Closed,
}

/// Decides how a run handles each message.
pub trait MessageHandler {
    /// Returns whether the next message can be processed. After [`Gate::Until`], called again within 200 ms.
    fn gate(&mut self) -> Gate;

    /// Decides how the run handles a message.
    fn decide(&mut self, message: ReceivedMessage) -> Decision;

    /// Stores the messages for which the decision was [`Decision::Remove`].
    ///
    /// # Errors
    /// The reason why the messages cannot be stored. They then stay in the queue, and the run ends.
    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns true if the run can end once all messages have been processed. Until this returns true, the handler
    /// continues to receive observed messages.
    fn is_done(&mut self) -> bool {
        true
    }

    /// Returns true if the run may receive and return messages without a decision, to keep the order of the queue.
    /// Handlers return false if each delivery counts toward a delivery limit.
    fn may_return_unread(&self) -> bool {
        true
    }

    /// Prepares for another pass, in which the kept messages are received again. Called after the hold time. Returns
    /// false to end the run instead.
    fn reopen(&mut self) -> bool {
        false
    }

    /// Receives a message that arrived in the queue after the start of the run, if the broker delivers it before the
    /// end. The message is not processed.
    fn arrived(&mut self, _message: &ReceivedMessage) {}

    /// Receives a message from the observer; see [`Observer`](super::super::Observer).
    fn observed(&mut self, _message: &ReceivedMessage) {}

    /// Receives the counts after each change.
    fn progressed(&mut self, _counts: &ProcessCounts) {}
}

/// The message counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounts {
    /// The messages that the run received.
    pub received: u64,
    /// The messages that were published, confirmed and removed from the queue.
    pub published: u64,
    /// The messages that were removed without being published.
    pub removed: u64,
    /// The messages in doubt. After the end of the run, a message in doubt can be both in the queue and at its target.
    pub in_doubt: u64,
}

impl ProcessCounts {
    /// Returns the sum of the counts of two passes.
    pub fn plus(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            published: self.published + other.published,
            removed: self.removed + other.removed,
            in_doubt: self.in_doubt + other.in_doubt,
        }
    }

    /// Returns the number of messages that were published or removed.
    pub fn moved(&self) -> u64 {
        self.published + self.removed
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Processed {
    /// The counts.
    pub counts: ProcessCounts,
    /// The reason for the end.
    pub end: ProcessEnd,
    /// The values of `user_id` in messages that stay in the queue because only the named user may publish them.
    pub other_users: BTreeSet<String>,
    /// The number of messages that stay in the queue because only another user may publish them.
    pub of_other_users: u64,
}

/// The reason why a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ProcessEnd {
    /// All messages were processed.
    Complete,
    /// The handler ended the run.
    Ended,
    /// The maximum number of messages is held.
    HoldFull,
    /// [`ProcessOrder::hold_time`] has passed. The messages that were not processed are back in the queue.
    TimeLimit,
    /// The queue is not delivering its messages, because another consumer is receiving them or the queue has no leader.
    NotDelivered,
    /// An exchange routed a message to no queue.
    Unroutable {
        /// The exchange.
        exchange: ExchangeName,
        /// The broker's reason.
        reason: String,
    },
    /// A queue rejected a message because the queue is full.
    Rejected,
    /// The handler could not store messages.
    NotStored {
        /// The reason.
        reason: String,
    },
    /// The broker closed the channel or the connection, or did not respond.
    Failed(BrokerError),
}
