//! Adds and cancels the consumers of a run. Only the last consumer receives messages.
//!
//! The consumers of a quorum queue share one channel, because messages from several channels would return in a
//! different order. A classic queue restores the order itself, so each of its consumers has its own channel. For each
//! acknowledgement, the broker searches all unacknowledged messages on the channel (`rabbit_channel:collect_acks`).
//! With one channel, the duration of a run would be quadratic in the number of messages.

use super::super::endpoints::{QueueCounts, queue_counts, was_delivered_before};
use super::order::{MessageHandler, ProcessEnd};
use super::session::Session;
use super::subscription::{next_of, subscribe};
use crate::broker::error::BrokerError;
use crate::model::QueueType;
use lapin::options::BasicCancelOptions;
use std::time::Duration;
use tokio::time::timeout;

impl<H: MessageHandler> Session<'_, H> {
    /// Returns true if the last consumer holds as many messages as its prefetch count allows. The broker then delivers
    /// no further messages to the consumer, and no deliveries are in transit. Never returns true for a stream.
    pub(super) fn is_full(&self) -> bool {
        self.kept - self.held_before >= self.capacity && self.order.kind != Some(QueueType::Stream)
    }

    /// Adds a consumer that receives at most `max_messages` further messages. Returns false if `max_messages` is 0, or
    /// if the run already has the maximum number of consumers.
    pub(super) async fn add_consumer(&mut self, max_messages: u64) -> Result<bool, ProcessEnd> {
        if max_messages == 0 || self.consumers.len() >= self.order.max_consumers {
            return Ok(false);
        }
        if self.order.kind == Some(QueueType::Classic) {
            // The next channel uses the same delivery tags, so the current channel must not have pending messages.
            self.remove_stored().await?;
            self.settle_all().await?;
            self.complete_fences().await?;
            let channel = self.connection.channel().await.map_err(ProcessEnd::Failed)?;
            self.full_channels.push(std::mem::replace(&mut self.channel, channel));
        }
        let subscribing = subscribe(self.connection, &self.channel, self.order, (self.consumers.len(), max_messages));
        let (consumer, capacity) = subscribing.await.map_err(ProcessEnd::Failed)?;
        self.consumers.push(consumer);
        (self.held_before, self.capacity) = (self.kept, capacity);
        Ok(true)
    }

    /// Receives the next message that arrives within `limit`, and keeps the message. Returns false if no message
    /// arrives.
    pub(super) async fn keep_next(&mut self, limit: Duration) -> Result<bool, ProcessEnd> {
        let next = match self.waiting.pop_front() {
            Some(delivery) => Ok(Some(Ok(delivery))),
            None => timeout(limit, next_of(self.consumers.last_mut())).await,
        };
        match next {
            Ok(Some(Ok(delivery))) => {
                self.is_last_returned = was_delivered_before(&delivery);
                self.keep(delivery.delivery_tag).await?;
                Ok(true)
            }
            Ok(Some(Err(error))) => Err(self.failed(&error)),
            Ok(None) => Err(self.canceled()),
            Err(_) => Ok(false),
        }
    }

    /// Returns true if the queue reports a consumer and no ready messages. Returns false for a queue without a leader,
    /// which reports no consumers. Returns `None` if a busy queue does not respond in time.
    pub(super) async fn is_empty(&self) -> Result<Option<bool>, ProcessEnd> {
        let request = format!("queue.declare of {}", self.order.queue);
        match self.connection.answer(&request, queue_counts(&self.channel, &self.order.queue)).await {
            Ok(counted) => Ok(Some(counted.and_then(QueueCounts::ready_with_consumer) == Some(0))),
            Err(BrokerError::Timeout { .. }) => Ok(None),
            Err(error) => Err(ProcessEnd::Failed(error)),
        }
    }

    /// Cancels the consumers, and keeps the deliveries that arrive before the reply.
    pub(super) async fn cancel(&mut self) -> Result<(), ProcessEnd> {
        for consumer in &self.consumers {
            let canceled = self.channel.basic_cancel(consumer.tag(), BasicCancelOptions::default()).await;
            canceled.map_err(|error| self.failed(&error))?;
        }
        while let Some(delivery) = self.waiting.pop_front() {
            self.keep(delivery.delivery_tag).await?;
        }
        while let Some(next) = next_of(self.consumers.last_mut()).await {
            let delivery = next.map_err(|error| self.failed(&error))?;
            self.keep(delivery.delivery_tag).await?;
        }
        Ok(())
    }
}
