//! Runs the sessions of a move. Each session runs until it is stopped, fails or loses its connection. If possible, a
//! session ends without messages in transit and without requeued messages.

use super::super::endpoints::{subscribe, was_delivered_before};
use super::super::progress::State;
use super::emptiness::EMPTY_REPLIES;
use super::{GRACE, Job, Session, SessionEnd, wait_for_stop};
use crate::broker::transport::endpoints::{QueueCounts, SETTLE_TIME, queue_counts, wait_until_settled};
use crate::model::QueueName;
use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The maximum time for receiving further messages from a busy queue after a stop. After this time, the consumer is
/// canceled.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long topo waits without a delivery before it checks whether the queue is empty.
const QUIET: Duration = Duration::from_millis(200);
/// How long topo waits for a delivery after a reply that indicates an empty or unresponsive queue.
const SHORT_WAIT: Duration = Duration::from_millis(10);
/// The maximum time to wait until a busy quorum queue has processed all acknowledgements.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(15);
/// The maximum time to wait after an aborted session. The queue's counts do not distinguish unacknowledged messages,
/// which will be requeued, from messages whose acknowledgements are pending.
const ABORTED_SETTLE_TIME: Duration = Duration::from_secs(3);

impl Job {
    /// Runs one session after another until the move ends.
    pub(in crate::broker::transport) async fn run(mut self, first: Session) {
        let mut session = first;
        let mut failures = 0;
        let state = loop {
            let before = self.progress.borrow().moved;
            let end = session.run(&mut self).await;
            let (in_flight, uncertain_messages) = (session.in_flight(), session.uncertain_messages(&self.order));
            let left = match &end {
                SessionEnd::Lost(_) => uncertain_messages,
                // The queue may not have processed the last acknowledgements.
                SessionEnd::Stopped if !session.is_finished => uncertain_messages,
                SessionEnd::Stopped | SessionEnd::Fault(_) => in_flight,
            };
            self.progress.send_modify(|progress| progress.in_flight = 0);
            let is_settled = session.close(&self.order.source).await;
            let left = if is_settled { left } else { uncertain_messages };
            self.progress.send_modify(|progress| progress.possible_duplicates += left as u64);
            match end {
                SessionEnd::Stopped => break State::Stopped,
                SessionEnd::Fault(fault) => break State::Failed(fault),
                SessionEnd::Lost(error) => {
                    failures = if self.progress.borrow().moved > before { 1 } else { failures + 1 };
                    if failures >= self.connection.options.retries.attempts.max(1) {
                        break State::Failed(error.into());
                    }
                }
            }
            self.progress.send_modify(|progress| {
                progress.state = State::Reconnecting;
                (progress.first_moved, progress.is_source_empty) = (None, false);
            });
            let reopened = tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => break State::Stopped,
                reopened = Session::open(&self.connection, &self.order) => reopened,
            };
            session = match reopened {
                Ok(session) => session,
                Err(fault) => break State::Failed(fault),
            };
            self.progress.send_modify(|progress| progress.state = State::Moving);
        };
        self.progress.send_modify(|progress| progress.state = state);
    }
}

impl Session {
    /// Moves messages until the session ends. After a stop, the session ends within 20 s.
    async fn run(&mut self, job: &mut Job) -> SessionEnd {
        let mut stop = job.stop.clone();
        let time_limit = async move {
            wait_for_stop(&mut stop).await;
            tokio::time::sleep(PATIENCE + GRACE).await;
        };
        tokio::select! {
            biased;
            end = self.move_messages(job) => end,
            () = time_limit => SessionEnd::Stopped,
        }
    }

    /// Moves messages until the move is stopped, and then settles the received messages.
    async fn move_messages(&mut self, job: &mut Job) -> SessionEnd {
        loop {
            if job.order.reports_empty && self.in_flight() == 0 {
                self.emptiness.query(&self.channel, &job.order.source);
            }
            let end = tokio::select! {
                biased;
                _ = wait_for_stop(&mut job.stop) => break,
                Some(written) = self.acknowledging.next() => self.count_acknowledged(job, written),
                settled = self.pipeline.settle(), if !self.pipeline.is_empty() => match settled {
                    Ok(()) => self.acknowledge_confirmed(job).await,
                    Err(error) => Err(job.end(&error)),
                },
                next = self.consumer.next() => self.forward_ready(job, next).await,
                counted = self.emptiness.reply() => self.report_empty(job, counted),
            };
            if let Err(end) = end {
                return end;
            }
        }
        match self.finish(job).await {
            Ok(()) => SessionEnd::Stopped,
            Err(end) => end,
        }
    }

    /// Forwards a delivery, and all further deliveries that have already arrived.
    async fn forward_ready(&mut self, job: &mut Job, next: Option<lapin::Result<Delivery>>) -> Result<(), SessionEnd> {
        let mut next = Some(next);
        while let Some(delivered) = next {
            match delivered {
                Some(Ok(delivery)) => {
                    let is_new = !was_delivered_before(&delivery);
                    self.forward(job, delivery).await?;
                    // While this message is in transit, the queue delivers no other message that the cancel would
                    // requeue. A message with the `user_id` of another user is already settled.
                    if is_new && self.window < job.order.prefetch && !self.pipeline.is_empty() {
                        self.widen_window(job).await?;
                    }
                }
                Some(Err(error)) => return Err(job.end(&error)),
                None => return Err(self.handle_cancel(job).await),
            }
            next = self.consumer.next().now_or_never();
        }
        self.report_in_flight(job);
        Ok(())
    }

    /// Reports whether the source is empty.
    fn report_empty(&mut self, job: &Job, counted: lapin::Result<Option<QueueCounts>>) -> Result<(), SessionEnd> {
        let is_empty = self.emptiness.record(counted.map_err(|error| job.end(&error))?) && self.in_flight() == 0;
        job.progress
            .send_if_modified(|progress| std::mem::replace(&mut progress.is_source_empty, is_empty) != is_empty);
        Ok(())
    }

    /// Increases the window after the last redelivered message. Subscribes again, because a new prefetch applies only
    /// to a new consumer.
    async fn widen_window(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        self.report_in_flight(job);
        self.unsubscribe(job).await?;
        let consumer = subscribe(&self.channel, &job.order.source, job.order.prefetch).await;
        self.consumer = consumer.map_err(|error| job.end(&error))?;
        self.window = job.order.prefetch;
        Ok(())
    }

    /// Stops receiving, and settles the received messages, because a requeue would increase their delivery counts.
    async fn finish(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        self.fill_window(job).await?;
        // If no message was received, there is nothing to wait for. Without a cancel, a message that arrives now
        // returns to its original position when the channel is closed.
        if self.received > 0 {
            let counted = queue_counts(&self.channel, &job.order.source).await.map_err(|error| job.end(&error))?;
            self.consumers = counted.map(|counted| counted.consumers);
            self.unsubscribe(job).await?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Receives messages until the window is full or the queue is empty, so that the queue delivers no messages while
    /// it processes the cancel. Such messages would be requeued. On 3.10 and later, a quorum queue without a delivery
    /// limit requeues messages behind all other messages (`rabbit_fifo_client:handle_delivery`, and `#requeue{}` of
    /// `rabbit_fifo`).
    async fn fill_window(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        let deadline = Instant::now() + PATIENCE;
        let mut empty_replies = 0;
        while self.pipeline.len() < usize::from(self.window) && Instant::now() < deadline {
            let wait = if empty_replies == 0 { QUIET } else { SHORT_WAIT };
            match timeout(wait, self.consumer.next()).await {
                Ok(Some(next)) => {
                    let delivery = next.map_err(|error| job.end(&error))?;
                    self.forward(job, delivery).await?;
                    empty_replies = 0;
                }
                Ok(None) => return Err(self.handle_cancel(job).await),
                Err(_) if empty_replies == EMPTY_REPLIES => break,
                Err(_) => {
                    let counted = match queue_counts(&self.channel, &job.order.source).await {
                        Ok(counted) => counted,
                        // If no message was received, there is nothing to settle.
                        Err(_) if self.received == 0 => break,
                        Err(error) => return Err(job.end(&error)),
                    };
                    let is_empty = counted.and_then(QueueCounts::ready_with_consumer) == Some(0);
                    // The queue may never deliver a message, because it has no leader, or because another consumer is
                    // its single active consumer.
                    let is_silent = self.received == 0 && !is_empty;
                    empty_replies = if is_empty || is_silent { empty_replies + 1 } else { 0 };
                }
            }
        }
        Ok(())
    }

    /// Waits until the queue has processed all acknowledgements, and closes the channel. A quorum queue processes
    /// acknowledgements in the background, and loses pending acknowledgements when the channel is closed. This was
    /// observed on a busy RabbitMQ 3.10.8 broker (`rabbit_fifo_client` with more than 32 commands in transit).
    ///
    /// Returns false if the wait timed out after a complete session. If messages are left in transit, the queue does
    /// not show whether it has processed the other acknowledgements, so the result is true.
    async fn close(self, source: &QueueName) -> bool {
        let mut is_settled = true;
        if self.received > 0 {
            tokio::time::sleep(SETTLE_TIME).await;
            let max_settle_time = if self.is_finished { MAX_SETTLE_TIME } else { ABORTED_SETTLE_TIME };
            is_settled =
                timeout(max_settle_time, wait_until_settled(&self.channel, source, self.consumers)).await.is_ok();
        }
        let _ = timeout(GRACE, self.channel.close(200, "done".into())).await;
        is_settled || !self.is_finished
    }
}
