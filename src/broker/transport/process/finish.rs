//! Ends a run: completes the messages in doubt, and returns all other messages to the queue in order.

use super::fence::fence;
use super::order::{MessageHandler, ProcessEnd};
use super::session::Session;
use crate::model::QueueType;
use lapin::options::BasicNackOptions;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The maximum time to complete the messages in doubt.
const GRACE: Duration = Duration::from_secs(10);
/// The time within which a quorum queue processes acknowledgements that its channel holds back
/// (`unsent_commands` of `rabbit_fifo_client`). Without the pause, up to 20 messages were delivered again.
const QUORUM_PAUSE: Duration = Duration::from_millis(500);
/// How long an empty queue must not deliver anything before topo assumes that no delivery is in transit.
const IDLE: Duration = Duration::from_millis(200);
/// The maximum time to wait for the next previously returned message.
const RETURNED_WAIT: Duration = Duration::from_secs(1);
/// The maximum time to receive previously returned messages.
const RETURNED_LIMIT: Duration = Duration::from_secs(60);

impl<H: MessageHandler> Session<'_, H> {
    /// Ends the run, and returns the reason for the end.
    pub(super) async fn finish(&mut self, end: ProcessEnd) -> ProcessEnd {
        let is_usable = !matches!(end, ProcessEnd::Failed(_)) || self.channel.status().connected();
        let completed = match is_usable {
            true => timeout(GRACE + RETURNED_LIMIT, self.complete()).await.unwrap_or(Ok(())),
            false => timeout(GRACE, self.settle_after_failure()).await.unwrap_or(Ok(())),
        };
        // The consumers on the other channels are full, so they do not receive the returned messages.
        for channel in std::iter::once(&self.channel).chain(&self.full_channels) {
            let _ = timeout(GRACE, channel.close(200, "done".into())).await;
        }
        self.handler.progressed(&self.order.earlier.plus(self.counts));
        match completed {
            Err(failure) if end == ProcessEnd::Complete || end == ProcessEnd::Ended => failure,
            Ok(()) | Err(_) => end,
        }
    }

    async fn complete(&mut self) -> Result<(), ProcessEnd> {
        let stored = self.remove_stored().await;
        let settled = timeout(GRACE, self.settle_all()).await.unwrap_or(Ok(()));
        self.complete_fences().await?;
        if self.order.kind == Some(QueueType::Quorum) {
            if self.order.returns_by_nack {
                self.return_by_nack().await?;
            } else if self.handler.may_return_unread() {
                self.receive_returned().await?;
            }
            if self.order.returns_by_nack || self.counts.moved() > 0 {
                tokio::time::sleep(QUORUM_PAUSE).await;
            }
        }
        stored.and(settled)
    }

    /// Returns all messages with `basic.nack`, which does not count as a delivery. Cancels the consumers first, because
    /// they would receive the messages again. A cancel breaks the order if deliveries are in transit. Before the
    /// cancel, this function therefore receives messages until the queue is empty or the last consumer is full. It also
    /// receives previously returned messages, for the reason given in [`Self::receive_returned`]. If the deliveries do
    /// not arrive in time, the messages return when the channel is closed.
    async fn return_by_nack(&mut self) -> Result<(), ProcessEnd> {
        let deadline = Instant::now() + RETURNED_LIMIT;
        loop {
            if self.is_full() && !(Instant::now() < deadline && self.add_consumer_for_returned().await?) {
                break;
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
            if !self.keep_next(IDLE).await? && self.is_empty().await? == Some(true) {
                break;
            }
        }
        self.cancel().await?;
        let nack = BasicNackOptions { multiple: true, requeue: true };
        // The tag 0 selects all messages on the channel.
        self.channel.basic_nack(0, nack).await.map_err(|error| self.failed(&error))?;
        fence(&self.channel, self.order.prefetch).await.map_err(|error| self.failed(&error))
    }

    /// Adds a consumer if more previously returned messages may follow. The first added consumer receives a single
    /// message, which shows whether more follow. Returns false if no consumer was added.
    async fn add_consumer_for_returned(&mut self) -> Result<bool, ProcessEnd> {
        let max_messages = if self.capacity == 1 { u64::MAX } else { 1 };
        Ok(self.is_last_returned && self.add_consumer(max_messages).await?)
    }

    /// After a failure, counts the messages that the broker has confirmed, and acknowledges them if possible.
    async fn settle_after_failure(&mut self) -> Result<(), ProcessEnd> {
        // These messages were neither stored nor acknowledged.
        self.counts.in_doubt -= std::mem::take(&mut self.removing).len() as u64;
        self.settle_all().await?;
        self.complete_fences().await
    }

    /// Receives all previously returned messages from a quorum queue. The queue delivers these messages before all
    /// other messages, and appends each newly returned message to them. If topo received and returned only some of
    /// them, their order would change.
    async fn receive_returned(&mut self) -> Result<(), ProcessEnd> {
        let deadline = Instant::now() + RETURNED_LIMIT;
        while self.is_last_returned && Instant::now() < deadline {
            let has_room = !self.is_full() || self.add_consumer_for_returned().await?;
            if !has_room || !self.keep_next(RETURNED_WAIT).await? && self.is_empty().await? == Some(true) {
                break;
            }
        }
        Ok(())
    }
}
