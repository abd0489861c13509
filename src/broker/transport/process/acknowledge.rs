//! Acknowledges messages after the broker has confirmed their copies or the handler has stored them, and waits until
//! the broker has processed the acknowledgements.

use super::super::pipeline::Outcome;
use super::fence::{fence, wait_for_fence};
use super::order::{MessageHandler, ProcessEnd};
use super::session::{RESPONSE_TIMEOUT, Session};
use lapin::types::DeliveryTag;
use std::time::Instant;
use tokio::time::timeout;

impl<H: MessageHandler> Session<'_, H> {
    /// Acknowledges confirmed messages. Returns an error that ends the run if a message was returned or rejected.
    pub(super) async fn acknowledge_confirmed(&mut self) -> Result<(), ProcessEnd> {
        self.answered = Instant::now();
        if self.pipeline.has_only_confirms() {
            let tags = self.pipeline.take_confirmed();
            self.counts.published += tags.len() as u64;
            self.acknowledge(&tags);
            self.handler.progressed(&self.order.earlier.plus(self.counts));
            return Ok(());
        }
        let drained = timeout(RESPONSE_TIMEOUT, self.pipeline.drain()).await;
        let drained = drained.map_err(|_| ProcessEnd::Failed(self.unanswered("basic.publish", RESPONSE_TIMEOUT)))?;
        let outcomes = drained.map_err(|error| self.failed(&error))?;
        let mut end = None;
        for (tag, outcome) in outcomes {
            match outcome {
                Outcome::Confirmed => {
                    self.counts.published += 1;
                    self.acknowledge(&[tag]);
                }
                Outcome::Returned { reason } => {
                    self.counts.in_doubt -= 1;
                    self.kept += 1;
                    end = Some(ProcessEnd::Unroutable { exchange: self.exchange.clone(), reason });
                }
                // The message stays in doubt.
                Outcome::Unknown { reason } => {
                    self.kept += 1;
                    end = Some(ProcessEnd::Unroutable { exchange: self.exchange.clone(), reason });
                }
                // The message stays in doubt.
                Outcome::Failed => self.kept += 1,
                Outcome::Rejected(_) => {
                    self.counts.in_doubt -= 1;
                    self.kept += 1;
                    end = end.or(Some(ProcessEnd::Rejected));
                }
            }
        }
        end.map_or(Ok(()), Err)
    }

    /// Acknowledges messages. If no earlier message is being kept or is waiting to be removed, one acknowledgement is
    /// sufficient.
    pub(super) fn acknowledge(&mut self, tags: &[DeliveryTag]) {
        if let Some(last) = tags.last().filter(|_| self.kept == 0 && self.removing.is_empty()) {
            self.acknowledging.push(&self.channel, *last, true, tags.len() as u64);
        } else {
            for tag in tags {
                self.acknowledging.push(&self.channel, *tag, false, 1);
            }
        }
    }

    /// Has the handler store the messages that will be removed, and then acknowledges them.
    pub(super) async fn remove_stored(&mut self) -> Result<(), ProcessEnd> {
        let tags = std::mem::take(&mut self.removing);
        if tags.is_empty() {
            return Ok(());
        }
        if let Err(reason) = self.handler.flush() {
            self.counts.in_doubt -= tags.len() as u64;
            self.kept += tags.len() as u64;
            return Err(ProcessEnd::NotStored { reason });
        }
        self.counts.removed += tags.len() as u64;
        // A single acknowledgement would also acknowledge earlier messages in the pipeline.
        if self.pipeline.is_empty() {
            self.acknowledge(&tags);
        } else {
            for tag in &tags {
                self.acknowledging.push(&self.channel, *tag, false, 1);
            }
        }
        self.write_acknowledgements().await?;
        self.handler.progressed(&self.order.earlier.plus(self.counts));
        Ok(())
    }

    /// Waits until the broker has confirmed, returned or rejected all publishes, and all acknowledgements have been
    /// written.
    pub(super) async fn settle_all(&mut self) -> Result<(), ProcessEnd> {
        while !self.pipeline.is_empty() {
            let settled = timeout(RESPONSE_TIMEOUT, self.pipeline.settle()).await;
            let settled =
                settled.map_err(|_| ProcessEnd::Failed(self.unanswered("basic.publish", RESPONSE_TIMEOUT)))?;
            settled.map_err(|error| self.failed(&error))?;
            self.acknowledge_confirmed().await?;
        }
        self.write_acknowledgements().await
    }

    pub(super) async fn write_acknowledgements(&mut self) -> Result<(), ProcessEnd> {
        while let Some(written) = self.acknowledging.next().await {
            self.count_acknowledged(written)?;
        }
        Ok(())
    }

    pub(super) fn count_acknowledged(&mut self, written: lapin::Result<u64>) -> Result<(), ProcessEnd> {
        self.unfenced += written.map_err(|error| self.failed(&error))?;
        Ok(())
    }

    /// Starts a fence if the acknowledged messages fill half of the window, or if the window is full and no publish is
    /// unanswered. Does nothing while a fence is pending.
    pub(super) fn start_fence(&mut self) {
        let is_full = self.counts.in_doubt >= u64::from(self.order.window) && self.pipeline.is_empty();
        if self.fence.is_none() && self.unfenced > 0 && (self.unfenced * 2 >= u64::from(self.order.window) || is_full) {
            self.fence = Some((fence(&self.channel, self.order.prefetch), self.unfenced));
            self.unfenced = 0;
        }
    }

    pub(super) fn count_fenced(&mut self, fenced: lapin::Result<u64>) -> Result<(), ProcessEnd> {
        let count = fenced.map_err(|error| self.failed(&error))?;
        self.answered = Instant::now();
        self.counts.in_doubt -= count;
        Ok(())
    }

    /// Waits until the broker has processed all acknowledgements.
    pub(super) async fn complete_fences(&mut self) -> Result<(), ProcessEnd> {
        if self.fence.is_some() {
            let fenced = wait_for_fence(&mut self.fence).await;
            self.count_fenced(fenced)?;
        }
        if self.unfenced > 0 {
            let count = std::mem::take(&mut self.unfenced);
            fence(&self.channel, self.order.prefetch).await.map_err(|error| self.failed(&error))?;
            self.counts.in_doubt -= count;
        }
        Ok(())
    }
}
