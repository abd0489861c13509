//! Moves the messages in a holding queue back to the migrated queue, and detects when to stop. If messages are still
//! arriving, routes new messages to the migrated queue at a moment when few or no older messages are in transit.

use super::super::stall::{IDLE, StallDetector, describe_stall, unavailability};
use super::super::step_failure::{StepFailure, classify_fault};
use super::length_limit::Limit;
use super::{Current, Moving, POLL, Purpose, STEADY_TIME};
use crate::broker::BrokerError;
use crate::broker::transport::{Fault, Move, QueueCounts, State};
use crate::model::{Binding, ExchangeName, QueueName};
use crate::plan::{Level, QueueActivity};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the message count must go without decreasing before a return fails, unless the migrated queue is full and
/// has no consumers. `--drain-timeout` may be shorter, because it is intended for messages that other clients have not
/// acknowledged.
const MIN_RETURN_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum number of messages in transit that new messages may overtake.
const MAX_IN_FLIGHT: usize = 3;
/// The maximum number of ready messages that new messages may overtake, after twice [`STEADY_TIME`]. At 300
/// messages per second, these messages arrive in a third of a second.
const MAX_READY: u32 = 100;
/// The pause between two checks for an idle moment.
const PAUSE: Duration = Duration::from_millis(2);

/// The messages to return, and the level at which to stop.
pub(in super::super) struct Return<'m> {
    /// The holding queue, from which only this transport consumes.
    pub(in super::super) from: &'m QueueName,
    /// The exchange through which the messages return.
    pub(in super::super) through: &'m ExchangeName,
    /// The queue to which the messages return.
    pub(in super::super) into: &'m QueueName,
    /// The length limit of the queue `into`.
    pub(in super::super) limit: Limit,
    /// The purpose of the move.
    pub(in super::super) purpose: Purpose,
    /// The level of the holding queue at which the return ends.
    pub(in super::super) until: Level,
    /// The binding that topo adds when the holding queue is almost empty, to route new messages to the migrated queue
    /// again. `None` if the return adds no binding.
    pub(in super::super) switch: Option<&'m Binding>,
    /// True if the holding queue is a quorum queue, whose total comes from its last tick.
    pub(in super::super) has_ticks: bool,
}

impl Moving<'_> {
    /// Moves the messages in a holding queue back to the migrated queue, until the level `back.until` is reached. Also
    /// stops if the holding queue no longer exists. If the level is `NearlyEmpty`, also stops if messages arrive as
    /// fast as topo moves them.
    pub(in super::super) async fn return_messages(
        &mut self,
        back: &Return<'_>,
        notify: impl Fn(Option<u64>, Option<u64>),
    ) -> Result<(), StepFailure> {
        let intervals = self.broker.broker().intervals();
        let mut detector = StallDetector::new(self.drain_timeout(back.has_ticks).max(STEADY_TIME), intervals);
        let mut moved_before = None;
        if back.purpose == Purpose::ReturnDrained && !self.is_behind {
            self.is_behind =
                self.queue_activity(back.into).await?.is_some_and(|into| into.ready.is_some_and(|ready| ready > 0));
        }
        loop {
            self.broker.check()?;
            let mut current_fault = match self.start(back.from, back.through, back.purpose).await {
                Ok(()) => None,
                Err(fault) => Some(self.handle_fault(back.from, fault).await?),
            };
            match self.wait_until_idle(back.until, back.switch).await {
                Ok(true) if back.until == Level::NearlyEmpty => return Ok(()),
                Ok(true) => match self.stop_and_recheck(back.from).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(fault) => current_fault = Some(self.handle_fault(back.from, fault).await?),
                },
                Ok(false) => {}
                Err(error) => current_fault = Some(classify_fault(back.from, error.into())?),
            }
            let Some(live) = self.queue_activity(back.from).await? else { return Ok(()) };
            let (progress, fault) = self.progress().await?;
            let is_rejected = progress.as_ref().is_some_and(|progress| progress.state == State::Rejected);
            if let Some(fault) = fault {
                current_fault = Some(self.handle_fault(back.from, fault).await?);
            }
            let moved = self.total_moved(progress.as_ref());
            // The reported number excludes messages that earlier steps moved, such as the drained messages.
            let moved_before = *moved_before.get_or_insert(self.moved.unwrap_or(0));
            let is_counted = progress.as_ref().is_none_or(|progress| progress.moved.is_some());
            let so_far = is_counted.then_some(moved.saturating_sub(moved_before));
            notify(so_far, live.messages.filter(|_| !back.has_ticks));
            detector.record(live.messages, moved);
            if self.is_shovel() && detector.has_reached(back.until, back.has_ticks) {
                return Ok(());
            }
            let has_moved = !is_counted || moved > moved_before;
            let moving_time = progress.as_ref().and_then(|progress| progress.first_moved).map(|first| first.elapsed());
            // First waits for a moment at which new messages overtake fewer messages.
            let has_waited = moving_time.is_none_or(|time| time >= STEADY_TIME * 3);
            if back.until == Level::NearlyEmpty && has_moved && has_waited && self.is_outrun(back, &detector).await {
                self.reordered = live.messages.filter(|messages| *messages > 0);
                return Ok(());
            }
            let situation = (&live, current_fault.as_ref(), is_rejected);
            if let Some(reason) = self.stuck_reason(back, &detector, situation).await? {
                // The counts are not exact, because a shovel counts rejected messages as moved and moves them again.
                if self.is_shovel() {
                    (self.returned, self.from_drained) = (None, None);
                }
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: back.from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// Returns true if the number of messages in the holding queue is not decreasing although the migrated queue is
    /// available. This means that messages are arriving at least as fast as topo moves them. In this case, the return
    /// ends, and only the order of the last messages is lost.
    async fn is_outrun(&self, back: &Return<'_>, detector: &StallDetector) -> bool {
        detector.has_decrease_timed_out() && unavailability(self.broker, back.into).await.is_none()
    }

    /// Returns the reason why the return fails; `None` while the number of messages in the holding queue is decreasing,
    /// or while topo should wait longer.
    async fn stuck_reason(
        &self,
        back: &Return<'_>,
        detector: &StallDetector,
        (live, current_fault, is_rejected): (&QueueActivity, Option<&Fault>, bool),
    ) -> Result<Option<String>, BrokerError> {
        if !detector.has_decrease_timed_out() {
            return Ok(None);
        }
        if let Some(target) = self.queue_activity(back.into).await?
            && let Some(reason) = back.limit.rejection_reason(back.into, &target, is_rejected)
        {
            // Without consumers, the queue does not drain, so waiting is pointless.
            let is_consumed = target.consumers.is_none_or(|consumers| !consumers.is_empty());
            return Ok(Some(reason).filter(|_| !is_consumed || detector.has_not_decreased_for(MIN_RETURN_TIMEOUT)));
        }
        if !detector.has_not_decreased_for(self.drain_timeout(back.has_ticks).max(MIN_RETURN_TIMEOUT)) {
            return Ok(None);
        }
        let reason = unavailability(self.broker, back.into).await;
        Ok(Some(reason.unwrap_or_else(|| describe_stall(live, &[], current_fault, self.tick(back.has_ticks)))))
    }

    /// Stops the move from a holding queue that seems to be empty. Returns false if the queue contains messages again,
    /// because the broker requeued messages that were still in transit. Without AMQP, always returns true.
    async fn stop_and_recheck(&mut self, from: &QueueName) -> Result<bool, Fault> {
        if let Some(fault) = self.stop().await {
            return Err(fault);
        }
        let Some(amqp) = self.amqp() else { return Ok(true) };
        Ok(amqp.queue_counts(from).await?.is_none_or(|counted| counted.ready == 0))
    }

    /// Watches an AMQP move for up to [`POLL`]. Returns true if the holding queue has reached the level `until`. The
    /// transport detects this before the message counts are updated. Returns false for shovels.
    ///
    /// If messages are still arriving, the timing is critical. As soon as the tap routes new messages to the queue
    /// again, these messages could overtake messages in transit. topo therefore adds the binding `switch` over the same
    /// connection, as soon as the last message is confirmed. At 300 messages per second, the next message usually
    /// arrives a few milliseconds later.
    async fn wait_until_idle(&mut self, until: Level, switch: Option<&Binding>) -> Result<bool, BrokerError> {
        let amqp = self.amqp().cloned();
        let Some(amqp) = amqp else { return Ok(false) };
        let Some(Current { from, since, handle: Move::Amqp(moving), .. }) = &mut self.current else { return Ok(false) };
        let may_be_nearly_empty = until == Level::NearlyEmpty;
        let binder = if may_be_nearly_empty { Some(amqp.binder().await?) } else { None };
        let deadline = Instant::now() + POLL;
        let mut progress = moving.progress();
        loop {
            let idle_time = progress.last_moved.map_or(since.elapsed(), |last| last.elapsed());
            let is_empty =
                progress.is_source_empty && (idle_time >= IDLE || may_be_nearly_empty && progress.last_moved.is_some());
            // If the transport is never idle, new messages may overtake the last few messages. At first, they may
            // overtake only messages in transit, because a slow broker may still be catching up. The time is measured
            // from the first moved message, because the first delivery can take a long time.
            let moving_time = progress.first_moved.map_or(Duration::ZERO, |first| first.elapsed());
            let is_steady = may_be_nearly_empty && moving_time >= STEADY_TIME;
            let max_ready = if moving_time >= STEADY_TIME * 2 { MAX_READY } else { 0 };
            let is_nearly_empty = match &binder {
                Some(binder) if is_steady && progress.state == State::Moving && progress.in_flight <= MAX_IN_FLIGHT => {
                    let counted = binder.queue_counts(from).await?;
                    counted.and_then(QueueCounts::ready_with_consumer).is_some_and(|ready| ready <= max_ready)
                }
                Some(_) | None => false,
            };
            if is_empty || is_nearly_empty {
                if let (Some(binder), Some(switch)) = (binder, switch) {
                    binder.bind(switch).await?;
                }
                return Ok(true);
            }
            if progress.state.is_over() || Instant::now() >= deadline {
                return Ok(false);
            }
            // Without a pause, the queries would load the broker.
            if is_steady || progress.is_source_empty {
                sleep(PAUSE).await;
            }
            let limit = if is_steady { PAUSE } else { deadline.saturating_duration_since(Instant::now()) };
            progress = moving.wait_until_source_empty(limit).await;
        }
    }
}
