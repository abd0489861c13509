//! Determines whether the source of a move is empty, by querying it on the move's channel.
//!
//! A pause between two deliveries does not prove that the queue is empty. For example, RabbitMQ 4.3.6 takes 1.4 s to
//! deliver a message with 20,000 nested header tables, and longer on a busy machine. During this time, the message is
//! neither ready nor received.
//!
//! The reply to a query arrives after all deliveries that the broker sent before the reply on the same channel. The
//! broker may have a delivery pending while it processes the first query. The second reply arrives after this delivery.

use super::super::endpoints::{QueueCounts, queue_counts};
use crate::model::QueueName;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use lapin::Channel;
use std::time::Duration;

/// The number of consecutive replies that must report an empty queue before the queue is known to be empty.
pub(super) const EMPTY_REPLIES: u8 = 2;
/// The pause before a query that follows a delivery, or a reply that did not report an empty queue. Without a pause,
/// the queries would put unnecessary load on the broker.
const PAUSE: Duration = Duration::from_millis(2);
/// The pause before a query if the queue is known to be empty.
const EMPTY_PAUSE: Duration = Duration::from_millis(20);

/// The queries in a session. At most one query is in progress at a time.
#[derive(Default)]
pub(super) struct Emptiness {
    query: Option<BoxFuture<'static, lapin::Result<Option<QueueCounts>>>>,
    /// The number of consecutive replies that have reported an empty queue since the last delivery.
    empty_replies: u8,
}

impl Emptiness {
    /// Starts a query, unless one is in progress.
    pub(super) fn query(&mut self, channel: &Channel, source: &QueueName) {
        let pause = match self.empty_replies {
            0 => PAUSE,
            EMPTY_REPLIES.. => EMPTY_PAUSE,
            _ => Duration::ZERO,
        };
        let (channel, source) = (channel.clone(), source.clone());
        self.query.get_or_insert_with(|| {
            async move {
                tokio::time::sleep(pause).await;
                queue_counts(&channel, &source).await
            }
            .boxed()
        });
    }

    /// Waits for the reply to the query. Waits indefinitely if no query is in progress.
    pub(super) async fn reply(&mut self) -> lapin::Result<Option<QueueCounts>> {
        let Some(query) = &mut self.query else { return pending().await };
        let reply = query.await;
        self.query = None;
        reply
    }

    /// Records a reply, and returns true if the queue is empty.
    pub(super) fn record(&mut self, counted: Option<QueueCounts>) -> bool {
        let is_empty = counted.and_then(QueueCounts::ready_with_consumer) == Some(0);
        self.empty_replies = if is_empty { self.empty_replies.saturating_add(1).min(EMPTY_REPLIES) } else { 0 };
        self.empty_replies == EMPTY_REPLIES
    }

    /// Resets the number of empty replies, because a message was delivered.
    pub(super) fn reset(&mut self) {
        self.empty_replies = 0;
    }
}
