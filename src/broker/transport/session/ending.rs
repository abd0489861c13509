//! Ends a session without messages in transit and, as far as the queue permits, without requeued messages.

use super::super::ack_settled::{SETTLE_TIME, ack_settled};
use super::super::declare::counted;
use super::super::session_end::SessionEnd;
use super::{Job, Session};
use crate::model::QueueName;
use futures_util::StreamExt;
use lapin::options::BasicCancelOptions;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The maximum time for messages in transit when a move is stopped.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// The maximum time in which a busy queue delivers more messages. After it, the consumer is canceled.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time without a delivery after which the queue is queried, because it may be empty.
const QUIET: Duration = Duration::from_millis(200);
/// The maximum time in which a busy quorum queue processes acknowledgements.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(15);
/// The same limit if messages are requeued, because the queue does not distinguish them from pending acknowledgements.
const ABORTED_SETTLE_TIME: Duration = Duration::from_secs(3);

impl Session {
    /// Stops receiving, and completes the received messages. A requeued message would count as delivered once more.
    pub(super) async fn finish(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        self.fill_window(job).await?;
        // If no message was received, there is nothing to wait for. Without a cancel, a message that arrives now
        // returns to its position.
        if self.received > 0 {
            let counted = counted(&self.channel, &job.order.source).await.map_err(|error| job.end(&error))?;
            self.consumers = counted.map(|counted| counted.consumers);
            self.unsubscribe(job).await?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Receives messages until the window is full or the queue is empty. Messages that the queue delivers while it
    /// processes the cancel are requeued. Since 3.10, a quorum queue without a delivery limit requeues them behind all
    /// others (`rabbit_fifo_client:handle_delivery`, and `#requeue{}` of `rabbit_fifo`).
    async fn fill_window(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        let deadline = Instant::now() + PATIENCE;
        while self.pipeline.len() < usize::from(self.window) && Instant::now() < deadline {
            match timeout(QUIET, self.consumer.next()).await {
                Ok(Some(next)) => {
                    let delivery = next.map_err(|error| job.end(&error))?;
                    self.forward(job, delivery).await?;
                }
                Ok(None) => return Err(self.handle_cancel(job).await),
                // The queue may never deliver: another consumer is the single active one.
                Err(_) if self.received == 0 => break,
                Err(_) => {
                    let counted = counted(&self.channel, &job.order.source).await.map_err(|error| job.end(&error))?;
                    // A queue without a leader is reported without messages, but also without consumers, although this
                    // one exists.
                    if counted.is_some_and(|counted| counted.ready == 0 && counted.consumers > 0) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Cancels the consumer, and waits until all messages are settled, including those that were already in transit.
    pub(super) async fn unsubscribe(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        let canceled = self.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default()).await;
        canceled.map_err(|error| job.end(&error))?;
        while let Some(next) = self.consumer.next().await {
            let delivery = next.map_err(|error| job.end(&error))?;
            self.forward(job, delivery).await?;
        }
        self.settle_all(job).await
    }

    /// Closes the channel. The broker has then received all acknowledgements. But a quorum queue processes them in the
    /// background, and loses those that are pending when the channel is closed. This was seen on a busy 3.10.8
    /// (`rabbit_fifo_client` with more than 32 commands in transit). So this waits for the queue first. Returns false
    /// if the wait failed. If messages are left in transit, the queue does not show whether it has processed the other
    /// acknowledgements.
    pub(in super::super) async fn close(self, source: &QueueName) -> bool {
        let mut is_settled = true;
        if self.received > 0 {
            tokio::time::sleep(SETTLE_TIME).await;
            let max_settle_time = if self.is_finished { MAX_SETTLE_TIME } else { ABORTED_SETTLE_TIME };
            is_settled = timeout(max_settle_time, ack_settled(&self.channel, source, self.consumers)).await.is_ok();
        }
        let _ = timeout(GRACE, self.channel.close(200, "done".into())).await;
        is_settled || !self.is_finished
    }
}
