//! Ends a session without messages in transit and, as far as the queue permits, without requeued messages.

use super::super::ack_settled::{SETTLE_TIME, ack_settled};
use super::super::declare::counted;
use super::super::session_end::Over;
use super::{Job, Session};
use crate::model::QueueName;
use futures_util::StreamExt;
use lapin::options::BasicCancelOptions;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The time for messages in transit when a move is stopped.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// Within which a queue that has more hands it out, however busy it is; then the consumer is canceled all the same.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A queue that hands out nothing for so long may have nothing: it is asked.
const QUIET: Duration = Duration::from_millis(200);
/// Within which acknowledgements are passed on to a quorum queue that is busy.
const LONGEST_SETTLE_TIME: Duration = Duration::from_secs(15);
/// The same if a message is requeued, which is indistinguishable from pending acknowledgements.
const BROKEN_OFF: Duration = Duration::from_secs(3);

impl Session {
    /// Takes no more, and brings to its end what was taken: a message that goes back would count as delivered once more.
    pub(super) async fn finish(&mut self, job: &mut Job) -> Result<(), Over> {
        self.fill(job).await?;
        // Where nothing was taken, there is nothing to wait for; and without a cancel, a message that comes just now goes back
        // to where it was.
        if self.taken > 0 {
            let counted = counted(&self.channel, &job.order.source).await.map_err(|error| job.over(&error))?;
            self.consumers = counted.map(|counted| counted.consumers);
            self.unsubscribe(job).await?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Takes until the queue may hand out no more, because so many are not acknowledged, or has no more. What it hands out
    /// while it processes the cancel is requeued: behind all others in a quorum queue without a delivery limit
    /// since 3.10 (`rabbit_fifo_client:handle_delivery`, and `#requeue{}` of `rabbit_fifo`).
    async fn fill(&mut self, job: &mut Job) -> Result<(), Over> {
        let end = Instant::now() + PATIENCE;
        while self.pipeline.len() < usize::from(self.window) && Instant::now() < end {
            match timeout(QUIET, self.consumer.next()).await {
                Ok(Some(next)) => {
                    let delivery = next.map_err(|error| job.over(&error))?;
                    self.forward(job, delivery).await?;
                }
                Ok(None) => return Err(self.canceled(job).await),
                // It may never: another is the single active consumer.
                Err(_) if self.taken == 0 => break,
                Err(_) => {
                    let counted = counted(&self.channel, &job.order.source).await.map_err(|error| job.over(&error))?;
                    // One without a leader is said to have no messages, but no consumers either, not even this one.
                    if counted.is_some_and(|counted| counted.ready == 0 && counted.consumers > 0) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes no more, but for what is on its way already, and waits until all of it is safe.
    pub(super) async fn unsubscribe(&mut self, job: &mut Job) -> Result<(), Over> {
        let cancelled = self.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default()).await;
        cancelled.map_err(|error| job.over(&error))?;
        while let Some(next) = self.consumer.next().await {
            let delivery = next.map_err(|error| job.over(&error))?;
            self.forward(job, delivery).await?;
        }
        self.all_safe(job).await
    }

    /// Closes the channel: all acknowledgements before it are with the broker then. But a quorum queue receives them in the
    /// background, and of what waits there when the channel is closed it never hears (`rabbit_fifo_client`, once it has
    /// more than 32 commands under way: seen on a busy 3.10.8). So it is waited for; false if that was in vain.
    /// Where something is left under way, the queue does not show whether it has heard of the rest.
    pub(in super::super) async fn close(self, source: &QueueName) -> bool {
        let mut is_settled = true;
        if self.taken > 0 {
            tokio::time::sleep(SETTLE_TIME).await;
            let longest = if self.is_finished { LONGEST_SETTLE_TIME } else { BROKEN_OFF };
            is_settled = timeout(longest, ack_settled(&self.channel, source, self.consumers)).await.is_ok();
        }
        let _ = timeout(GRACE, self.channel.close(200, "done".into())).await;
        is_settled || !self.is_finished
    }
}
