//! One channel's worth of a move: takes, publishes, acknowledges what is confirmed. A lost connection ends it, and the next one
//! goes on.

mod ending;

use self::ending::{GRACE, PATIENCE};
use super::acknowledging::Acknowledging;
use super::connection::{Connection, is_of_channel, not_carried, protocol_error, words};
use super::pipeline::{Outcome, Pipeline};
use super::progress::{Fault, Order, Progress, State};
use super::publish_permission::may_publish;
use super::raw_properties::{RawProperties, without_counts};
use super::session_end::Over;
use super::subscription::{CAREFUL, subscribe, was_delivered_before};
use crate::broker::error::BrokerError;
use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::ConfirmSelectOptions;
use lapin::types::DeliveryTag;
use lapin::{Channel, Consumer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between attempts at a queue that rejects.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// One move, through all of its sessions.
pub(super) struct Job {
    pub(super) connection: Arc<Connection>,
    pub(super) order: Order,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) stop: watch::Receiver<bool>,
    /// Whether the broker takes messages of other users from this one, once that was seen.
    pub(super) impersonates: bool,
}

pub(super) struct Session {
    channel: Channel,
    consumer: Consumer,
    pipeline: Pipeline,
    acknowledging: Acknowledging,
    /// How many messages may be under way.
    window: u16,
    /// How many messages came.
    taken: usize,
    /// How many consumed from the source before this one was canceled, where that is known.
    consumers: Option<u32>,
    /// Whether it ended with nothing left under way.
    pub(super) is_finished: bool,
}

impl Session {
    /// Subscribes, after it is certain that what will come may be published.
    pub(super) async fn open(connection: &Connection, order: &Order) -> Result<Self, Fault> {
        match may_publish(connection, &order.target).await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::TargetGone { reason }),
            permitted => permitted?,
        }
        let channel = connection.channel().await?;
        let request = format!("basic.consume of {}", order.source);
        let subscribed = connection.answer(&request, async {
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            subscribe(&channel, &order.source, CAREFUL).await
        });
        match subscribed.await {
            Ok(consumer) => Ok(Self {
                channel,
                consumer,
                pipeline: Pipeline::default(),
                acknowledging: Acknowledging::default(),
                window: CAREFUL,
                taken: 0,
                consumers: None,
                is_finished: false,
            }),
            Err(BrokerError::NotFound { reason, .. }) => Err(Fault::SourceGone { reason }),
            Err(BrokerError::AccessRefused { reason, .. }) if reason.contains("exclusive") => {
                Err(Fault::Exclusive { reason })
            }
            Err(BrokerError::Refused { status: 405, reason, .. }) => Err(Fault::Exclusive { reason }),
            Err(error) => Err(error.into()),
        }
    }

    /// The number of messages that may be in both queues if the channel is lost now: acknowledgements have no reply, so the last
    /// of them may be lost with it.
    pub(super) fn doubtful(&self, order: &Order) -> usize {
        self.taken.min(order.prefetch.into())
    }

    /// The number of received messages that are not acknowledged.
    pub(super) fn in_flight(&self) -> usize {
        self.pipeline.len() + usize::try_from(self.acknowledging.messages()).unwrap_or(usize::MAX)
    }

    /// Moves messages until the session ends. After a stop, this takes at most 20 s.
    pub(super) async fn run(&mut self, job: &mut Job) -> Over {
        let mut stop = job.stop.clone();
        let too_long = async move {
            stop_requested(&mut stop).await;
            tokio::time::sleep(PATIENCE + GRACE).await;
        };
        tokio::select! {
            biased;
            over = self.go_on(job) => over,
            () = too_long => Over::Stopped,
        }
    }

    async fn go_on(&mut self, job: &mut Job) -> Over {
        loop {
            let over = tokio::select! {
                biased;
                _ = stop_requested(&mut job.stop) => break,
                Some(written) = self.acknowledging.next() => self.written(job, written),
                settled = self.pipeline.settle(), if !self.pipeline.is_empty() => match settled {
                    Ok(()) => self.book(job).await,
                    Err(error) => Err(job.over(&error)),
                },
                next = self.consumer.next() => self.take(job, next).await,
            };
            if let Err(over) = over {
                return over;
            }
        }
        match self.finish(job).await {
            Ok(()) => Over::Stopped,
            Err(over) => over,
        }
    }

    /// Sends on what was delivered, and all that is there already.
    async fn take(&mut self, job: &mut Job, next: Option<lapin::Result<Delivery>>) -> Result<(), Over> {
        let mut next = Some(next);
        while let Some(delivered) = next {
            match delivered {
                Some(Ok(delivery)) => {
                    let is_new = !was_delivered_before(&delivery);
                    self.forward(job, delivery).await?;
                    // While it is under way, no other is handed out, which would go back. That of another user is safe already.
                    if is_new && self.window < job.order.prefetch && !self.pipeline.is_empty() {
                        self.widen(job).await?;
                    }
                }
                Some(Err(error)) => return Err(job.over(&error)),
                None => return Err(self.canceled(job).await),
            }
            next = self.consumer.next().now_or_never();
        }
        self.tell(job);
        Ok(())
    }

    /// Says how many are under way, before something is waited for that may last.
    fn tell(&self, job: &Job) {
        job.progress.send_modify(|progress| progress.in_flight = self.in_flight());
    }

    /// No more come that were delivered before: many may be under way. How many holds for a consumer that begins.
    async fn widen(&mut self, job: &mut Job) -> Result<(), Over> {
        self.tell(job);
        self.unsubscribe(job).await?;
        let consumer = subscribe(&self.channel, &job.order.source, job.order.prefetch).await;
        self.consumer = consumer.map_err(|error| job.over(&error))?;
        self.window = job.order.prefetch;
        Ok(())
    }

    /// Waits until all that was taken is at the target, and acknowledged.
    async fn all_safe(&mut self, job: &mut Job) -> Result<(), Over> {
        while !self.pipeline.is_empty() {
            self.pipeline.settle().await.map_err(|error| job.over(&error))?;
            self.book(job).await?;
        }
        self.all_written(job).await
    }

    /// The broker canceled the consumer: the queue is gone. What was taken from it is safe or is not; nothing goes back.
    async fn canceled(&mut self, job: &mut Job) -> Over {
        let reason = "the broker canceled the consumer".to_owned();
        match tokio::time::timeout(GRACE, self.all_safe(job)).await {
            Ok(Err(over @ (Over::Fault(_) | Over::Lost(_)))) => over,
            Ok(Ok(()) | Err(Over::Stopped)) | Err(_) => Fault::SourceGone { reason }.into(),
        }
    }

    async fn forward(&mut self, job: &mut Job, mut delivery: Delivery) -> Result<(), Over> {
        self.taken += 1;
        delivery.properties = without_counts(delivery.properties);
        let of = RawProperties::hidden_in(&delivery.properties).and_then(RawProperties::user_id);
        match of {
            Some(user) if user != job.connection.options.username && !job.impersonates => {
                self.forward_of_another(job, delivery, user).await
            }
            Some(_) | None => {
                self.pipeline.push(&self.channel, job.order.target.as_str(), delivery);
                Ok(())
            }
        }
    }

    /// A message that says it is of another user. The broker refuses it, and closes the channel, unless this user has the tag
    /// `impersonator`: so it is tried on a channel of its own, and after all others are safe.
    async fn forward_of_another(&mut self, job: &mut Job, delivery: Delivery, user_id: String) -> Result<(), Over> {
        self.all_safe(job).await?;
        let channel = job.connection.channel().await.map_err(Over::Lost)?;
        let select = channel.confirm_select(ConfirmSelectOptions::default()).await;
        select.map_err(|error| job.over(&error))?;
        self.pipeline.push(&channel, job.order.target.as_str(), delivery);
        self.tell(job);
        match self.pipeline.settle().await {
            Ok(()) => {
                job.impersonates = true;
                self.book(job).await
            }
            Err(error) => Err(match protocol_error(&error) {
                Some(reply) if reply.get_id() == 406 => {
                    // It was refused, so it is at one place only.
                    self.pipeline = Pipeline::default();
                    Fault::ForeignUser { user_id, reason: words(&error) }.into()
                }
                Some(_) | None => job.over(&error),
            }),
        }
    }

    /// Acknowledges what is safe, without waiting for it where all goes well.
    async fn book(&mut self, job: &mut Job) -> Result<(), Over> {
        if self.pipeline.is_going_well() {
            if let Some((tag, count)) = self.pipeline.take_confirmed() {
                self.acknowledging.push(&self.channel, tag, true, count);
            }
            return Ok(());
        }
        self.all_written(job).await?;
        let outcomes = self.pipeline.drain().await.map_err(|error| job.over(&error))?;
        let mut rejected = Vec::new();
        let mut lost_way = None;
        // One acknowledgement for all before the first that is not safe: as few as can be (see `close`).
        let safe = outcomes.iter().take_while(|(_, outcome)| matches!(outcome, Outcome::Confirmed)).count();
        if let Some((tag, _)) = safe.checked_sub(1).and_then(|last| outcomes.get(last)) {
            self.acknowledge(job, *tag, true, safe as u64).await?;
        }
        for (tag, outcome) in outcomes.into_iter().skip(safe) {
            match outcome {
                Outcome::Confirmed => self.acknowledge(job, tag, false, 1).await?,
                Outcome::Returned { reason } => lost_way = Some(reason),
                Outcome::Unknown { reason } => {
                    job.progress.send_modify(|progress| progress.possible_duplicates += 1);
                    lost_way = Some(reason);
                }
                Outcome::Rejected(delivery) => rejected.push(delivery),
            }
        }
        if let Some(reason) = lost_way {
            return Err(Fault::Unroutable { target: job.order.target.clone(), reason }.into());
        }
        let mut pause = FIRST_PAUSE;
        for delivery in rejected {
            self.insist(job, *delivery, &mut pause).await?;
        }
        job.progress.send_modify(|progress| progress.state = State::Moving);
        Ok(())
    }

    /// Tries one message until it is taken. Nothing else is taken meanwhile, so that the order stays. The pause before the
    /// next attempt grows with each rejection, and is none after a message that was taken.
    async fn insist(&mut self, job: &mut Job, delivery: Delivery, pause: &mut Duration) -> Result<(), Over> {
        let mut delivery = Some(delivery);
        while let Some(again) = delivery.take() {
            job.progress.send_modify(|progress| progress.state = State::Rejected);
            tokio::select! {
                biased;
                _ = stop_requested(&mut job.stop) => return Err(Over::Stopped),
                () = tokio::time::sleep(*pause) => {}
            }
            self.pipeline.push(&self.channel, job.order.target.as_str(), again);
            let outcomes = self.pipeline.drain().await.map_err(|error| job.over(&error))?;
            for (tag, outcome) in outcomes {
                match outcome {
                    Outcome::Confirmed => {
                        *pause = Duration::ZERO;
                        self.acknowledge(job, tag, false, 1).await?;
                    }
                    Outcome::Rejected(rejected) => {
                        *pause = LONGEST_PAUSE.min(FIRST_PAUSE.max(*pause * 2));
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

    async fn acknowledge(&mut self, job: &Job, tag: DeliveryTag, multiple: bool, count: u64) -> Result<(), Over> {
        self.acknowledging.push(&self.channel, tag, multiple, count);
        self.all_written(job).await
    }

    async fn all_written(&mut self, job: &Job) -> Result<(), Over> {
        while let Some(written) = self.acknowledging.next().await {
            self.written(job, written)?;
        }
        Ok(())
    }

    /// So many more are acknowledged.
    fn written(&self, job: &Job, written: lapin::Result<u64>) -> Result<(), Over> {
        let count = written.map_err(|error| job.over(&error))?;
        job.progress.send_modify(|progress| {
            progress.moved = progress.moved.map(|moved| moved + count);
            progress.last_moved = Some(Instant::now());
            progress.in_flight = self.in_flight();
        });
        Ok(())
    }
}

impl Job {
    /// Converts an error of the channel to the end of a session.
    fn over(&self, error: &lapin::Error) -> Over {
        if let Some(reason) = not_carried(error) {
            return Fault::NotCarried { reason }.into();
        }
        let Some(reply) = protocol_error(error).filter(|reply| is_of_channel(reply)) else {
            return Over::Lost(self.connection.refused("the move", error));
        };
        let reason = words(error);
        match reply.get_id() {
            404 if reason.contains("no exchange") => Fault::TargetGone { reason }.into(),
            404 => Fault::SourceGone { reason }.into(),
            // Held for half an hour, because a queue rejected for so long: "delivery acknowledgement … timed out".
            406 if reason.contains("timed out") => Over::Lost(self.connection.refused("the move", error)),
            _ => Fault::Broker(self.connection.refused("the move", error)).into(),
        }
    }
}

/// Returns when the move is stopped, or its owner is gone.
async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
