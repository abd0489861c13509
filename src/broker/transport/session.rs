//! Implements a session, which is the part of a move that uses one channel. A session receives messages, publishes
//! them, and acknowledges confirmed messages. An operation that ends the session returns the reason.

use super::connection::{Connection, error_text, is_channel_error, not_carried_reason, protocol_error};
use super::endpoints::{CAREFUL_PREFETCH, check_publish_permission, subscribe};
use super::pipeline::{Acknowledging, Outcome, Pipeline};
use super::progress::{Fault, Order, Progress, State};
use super::raw_properties::{RawProperties, without_counts};
use crate::broker::error::BrokerError;
use emptiness::Emptiness;
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicCancelOptions, ConfirmSelectOptions};
use lapin::types::DeliveryTag;
use lapin::{Channel, Consumer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

mod emptiness;
mod run;

/// The maximum time to settle the messages in transit after a stop or a cancellation by the broker. Also the maximum
/// time to close a channel.
const GRACE: Duration = Duration::from_secs(10);
/// The first pause between two attempts to publish a rejected message. The pause doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The maximum pause between two attempts to publish a rejected message.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A running move, which consists of one or more consecutive sessions.
pub(super) struct Job {
    pub(super) connection: Arc<Connection>,
    pub(super) order: Order,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) stop: watch::Receiver<bool>,
    /// True if the broker has accepted a message from the connected user with the `user_id` of another user.
    pub(super) impersonates: bool,
}

/// A session of a move, on one channel.
pub(super) struct Session {
    channel: Channel,
    consumer: Consumer,
    pipeline: Pipeline,
    acknowledging: Acknowledging,
    /// The maximum number of messages in transit.
    window: u16,
    /// The number of received messages.
    received: usize,
    /// The number of consumers of the source before this session canceled its consumer; `None` if unknown.
    consumers: Option<u32>,
    /// True if the session ended without messages in transit.
    pub(super) is_finished: bool,
    emptiness: Emptiness,
}

impl Session {
    /// Checks the permission to publish to the target, and subscribes to the source.
    pub(super) async fn open(connection: &Connection, order: &Order) -> Result<Self, Fault> {
        match check_publish_permission(connection, &order.target).await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::TargetGone { reason }),
            permitted => permitted?,
        }
        let channel = connection.channel().await?;
        let request = format!("basic.consume of {}", order.source);
        let subscribed = connection.answer(&request, async {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            subscribe(&channel, &order.source, CAREFUL_PREFETCH).await
        });
        match subscribed.await {
            Ok(consumer) => Ok(Self {
                channel,
                consumer,
                pipeline: Pipeline::default(),
                acknowledging: Acknowledging::default(),
                window: CAREFUL_PREFETCH,
                received: 0,
                consumers: None,
                is_finished: false,
                emptiness: Emptiness::default(),
            }),
            Err(BrokerError::NotFound { reason, .. }) => Err(Fault::SourceGone { reason }),
            Err(BrokerError::AccessRefused { reason, .. }) if reason.contains("exclusive") => {
                Err(Fault::Exclusive { reason })
            }
            Err(BrokerError::Refused { status: 405, reason, .. }) => Err(Fault::Exclusive { reason }),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the maximum number of messages that would be both in the source and at the target if the channel were
    /// lost now. Acknowledgements have no reply, so the last acknowledgements could be lost with the channel.
    pub(super) fn uncertain_messages(&self, order: &Order) -> usize {
        self.received.min(order.prefetch.into())
    }

    /// Returns the number of received messages that are not acknowledged.
    pub(super) fn in_flight(&self) -> usize {
        self.pipeline.len() + usize::try_from(self.acknowledging.messages()).unwrap_or(usize::MAX)
    }

    /// Reports the number of messages in transit. Called before a wait that may be long.
    fn report_in_flight(&self, job: &Job) {
        job.progress.send_modify(|progress| progress.in_flight = self.in_flight());
    }

    /// Cancels the consumer, forwards the messages that the broker has already delivered, and waits until all messages
    /// are settled.
    async fn unsubscribe(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        let canceled = self.channel.basic_cancel(self.consumer.tag(), BasicCancelOptions::default()).await;
        canceled.map_err(|error| job.end(&error))?;
        while let Some(next) = self.consumer.next().await {
            let delivery = next.map_err(|error| job.end(&error))?;
            self.forward(job, delivery).await?;
        }
        self.settle_all(job).await
    }

    /// Waits until all received messages are at the target and acknowledged.
    async fn settle_all(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        while !self.pipeline.is_empty() {
            self.pipeline.settle().await.map_err(|error| job.end(&error))?;
            self.acknowledge_confirmed(job).await?;
        }
        self.write_acknowledgements(job).await
    }

    /// Handles a cancellation by the broker. Usually, the queue was deleted. On 4.3 and later, a quorum queue also
    /// cancels a consumer whose acknowledgement timeout has expired. Settles the received messages if possible, because
    /// a deleted queue cannot requeue them.
    async fn handle_cancel(&mut self, job: &mut Job) -> SessionEnd {
        let reason = "the broker canceled the consumer: the queue was probably deleted, its node may be down, or the \
                      acknowledgement timeout may have expired";
        match tokio::time::timeout(GRACE, self.settle_all(job)).await {
            Ok(Err(end @ (SessionEnd::Fault(_) | SessionEnd::Lost(_)))) => end,
            Ok(Ok(()) | Err(SessionEnd::Stopped)) | Err(_) => Fault::SourceGone { reason: reason.to_owned() }.into(),
        }
    }

    /// Publishes a delivery to the target.
    async fn forward(&mut self, job: &mut Job, mut delivery: Delivery) -> Result<(), SessionEnd> {
        self.received += 1;
        self.emptiness.reset();
        job.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_source_empty));
        delivery.properties = without_counts(delivery.properties);
        let claimed_user = RawProperties::extract(&delivery.properties).and_then(RawProperties::user_id);
        match claimed_user {
            Some(user) if user != job.connection.options.username && !job.impersonates => {
                self.forward_of_other_user(job, delivery, user).await
            }
            Some(_) | None => {
                self.pipeline.push(&self.channel, job.order.target.as_str(), delivery);
                Ok(())
            }
        }
    }

    /// Forwards a message with the `user_id` of another user. Unless topo's user has the `impersonator` tag, the broker
    /// refuses the message and closes the channel. The message is therefore published on a separate channel, after all
    /// other messages are settled.
    async fn forward_of_other_user(
        &mut self,
        job: &mut Job,
        delivery: Delivery,
        user_id: String,
    ) -> Result<(), SessionEnd> {
        self.settle_all(job).await?;
        let channel = job.connection.channel().await.map_err(SessionEnd::Lost)?;
        let select = channel.confirm_select(ConfirmSelectOptions::default()).await;
        select.map_err(|error| job.end(&error))?;
        self.pipeline.push(&channel, job.order.target.as_str(), delivery);
        self.report_in_flight(job);
        match self.pipeline.settle().await {
            Ok(()) => {
                job.impersonates = true;
                self.acknowledge_confirmed(job).await
            }
            Err(error) => Err(match protocol_error(&error) {
                Some(reply) if reply.get_id() == 406 => {
                    // The message was refused, so it is still in the source and not at the target.
                    self.pipeline = Pipeline::default();
                    Fault::ForeignUser { user_id, reason: error_text(&error) }.into()
                }
                Some(_) | None => job.end(&error),
            }),
        }
    }

    /// Acknowledges confirmed messages, and publishes rejected messages again. Ends the session with
    /// [`Fault::Unroutable`] if a message was returned.
    async fn acknowledge_confirmed(&mut self, job: &mut Job) -> Result<(), SessionEnd> {
        if self.pipeline.has_only_confirms() {
            let tags = self.pipeline.take_confirmed();
            if let Some(last) = tags.last() {
                self.acknowledging.push(&self.channel, *last, true, tags.len() as u64);
            }
            return Ok(());
        }
        self.write_acknowledgements(job).await?;
        let outcomes = self.pipeline.drain().await.map_err(|error| job.end(&error))?;
        let mut rejected = Vec::new();
        let mut unroutable = None;
        // Sends one acknowledgement for all messages before the first unconfirmed message, to keep the number of
        // pending acknowledgements low (see `close`).
        let safe = outcomes.iter().take_while(|(_, outcome)| matches!(outcome, Outcome::Confirmed)).count();
        if let Some((tag, _)) = safe.checked_sub(1).and_then(|last| outcomes.get(last)) {
            self.acknowledge(job, *tag, true, safe as u64).await?;
        }
        for (tag, outcome) in outcomes.into_iter().skip(safe) {
            match outcome {
                Outcome::Confirmed => self.acknowledge(job, tag, false, 1).await?,
                Outcome::Returned { reason } => unroutable = Some(reason),
                Outcome::Unknown { reason } => {
                    job.progress.send_modify(|progress| progress.possible_duplicates += 1);
                    unroutable = Some(reason);
                }
                Outcome::Rejected(delivery) => rejected.push(delivery),
                // The channel has failed, so the message returns to the source. The next operation reports the failure.
                Outcome::Failed => {}
            }
        }
        if let Some(reason) = unroutable {
            return Err(Fault::Unroutable { target: job.order.target.clone(), reason }.into());
        }
        let mut pause = FIRST_PAUSE;
        for delivery in rejected {
            self.republish(job, *delivery, &mut pause).await?;
        }
        job.progress.send_modify(|progress| progress.state = State::Moving);
        Ok(())
    }

    /// Publishes a rejected message repeatedly until the target accepts the message. To preserve the order, receives no
    /// other messages during this time. The pause before the next attempt grows with each rejection, and is reset to
    /// zero when a message is accepted.
    async fn republish(&mut self, job: &mut Job, delivery: Delivery, pause: &mut Duration) -> Result<(), SessionEnd> {
        let mut delivery = Some(delivery);
        while let Some(message) = delivery.take() {
            job.progress.send_modify(|progress| progress.state = State::Rejected);
            tokio::select! {
                biased;
                _ = wait_for_stop(&mut job.stop) => return Err(SessionEnd::Stopped),
                () = tokio::time::sleep(*pause) => {}
            }
            self.pipeline.push(&self.channel, job.order.target.as_str(), message);
            let outcomes = self.pipeline.drain().await.map_err(|error| job.end(&error))?;
            for (tag, outcome) in outcomes {
                match outcome {
                    Outcome::Confirmed => {
                        *pause = Duration::ZERO;
                        self.acknowledge(job, tag, false, 1).await?;
                    }
                    Outcome::Failed => {}
                    Outcome::Rejected(rejected) => {
                        *pause = MAX_PAUSE.min(FIRST_PAUSE.max(*pause * 2));
                        delivery = Some(*rejected);
                    }
                    Outcome::Returned { reason } | Outcome::Unknown { reason } => {
                        return Err(Fault::Unroutable { target: job.order.target.clone(), reason }.into());
                    }
                }
            }
        }
        Ok(())
    }

    async fn acknowledge(&mut self, job: &Job, tag: DeliveryTag, multiple: bool, count: u64) -> Result<(), SessionEnd> {
        self.acknowledging.push(&self.channel, tag, multiple, count);
        self.write_acknowledgements(job).await
    }

    async fn write_acknowledgements(&mut self, job: &Job) -> Result<(), SessionEnd> {
        while let Some(written) = self.acknowledging.next().await {
            self.count_acknowledged(job, written)?;
        }
        Ok(())
    }

    /// Adds to the progress the messages that a written acknowledgement covers.
    fn count_acknowledged(&self, job: &Job, written: lapin::Result<u64>) -> Result<(), SessionEnd> {
        let count = written.map_err(|error| job.end(&error))?;
        job.progress.send_modify(|progress| {
            progress.moved = progress.moved.map(|moved| moved + count);
            progress.last_moved = Some(Instant::now());
            progress.first_moved = progress.first_moved.or(progress.last_moved);
            progress.in_flight = self.in_flight();
        });
        Ok(())
    }
}

impl Job {
    /// Converts an error from the AMQP library to the reason why the session ends.
    fn end(&self, error: &lapin::Error) -> SessionEnd {
        if let Some(reason) = not_carried_reason(error) {
            return Fault::NotCarried { reason }.into();
        }
        let Some(reply) = protocol_error(error).filter(|reply| is_channel_error(reply)) else {
            return SessionEnd::Lost(self.connection.request_error("the move", error));
        };
        let reason = error_text(error);
        match reply.get_id() {
            404 if reason.contains("no exchange") => Fault::TargetGone { reason }.into(),
            404 => Fault::SourceGone { reason }.into(),
            // The reason is "delivery acknowledgement … timed out". The target rejected a message for so long that the
            // source's acknowledgement timeout (30 min by default) expired.
            406 if reason.contains("timed out") => SessionEnd::Lost(self.connection.request_error("the move", error)),
            _ => Fault::Broker(self.connection.request_error("the move", error)).into(),
        }
    }
}

/// Waits until the move is stopped or dropped.
async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The reason why a session ended.
pub(super) enum SessionEnd {
    /// The move was stopped.
    Stopped,
    /// A fault ended the move.
    Fault(Fault),
    /// The connection or the channel was lost. Another session can continue the move.
    Lost(BrokerError),
}

impl From<Fault> for SessionEnd {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
