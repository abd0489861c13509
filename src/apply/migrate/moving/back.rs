//! Returns the messages of a holding queue to the queue, and decides when to stop.

use super::super::stall_reason::{held_by, takes_none};
use super::super::{StepFailure, fault::setback};
use super::full::Limit;
use super::{LONG_ENOUGH, Moving, Purpose, StallDetector};
use crate::broker::BrokerError;
use crate::broker::transport::{Fault, State};
use crate::model::{Binding, ExchangeName, QueueName};
use crate::plan::{Level, QueueActivity};
use std::time::Duration;
use tokio::time::sleep;

/// What is held is not left behind for want of patience with somebody else's messages, which is what a user says.
const LONGEST_RETURN: Duration = Duration::from_secs(60);

/// What comes back, and until when.
pub(in super::super) struct Return<'m> {
    /// The holding queue; only this transport consumes from it.
    pub(in super::super) from: &'m QueueName,
    /// The exchange through which it comes back.
    pub(in super::super) through: &'m ExchangeName,
    /// The queue into which it comes back.
    pub(in super::super) into: &'m QueueName,
    /// What that queue takes at most.
    pub(in super::super) limit: Limit,
    /// What it is moved for.
    pub(in super::super) purpose: Purpose,
    /// When it is enough.
    pub(in super::super) until: Level,
    /// Where more comes: bound as soon as next to nothing is left.
    pub(in super::super) switch: Option<&'m Binding>,
    /// Whether the totals are those of the last tick of a quorum queue.
    pub(in super::super) has_ticks: bool,
}

impl Moving<'_> {
    /// Returns the messages of a holding queue.
    pub(in super::super) async fn bring_back(
        &mut self,
        back: &Return<'_>,
        tell: impl Fn(Option<u64>, Option<u64>),
    ) -> Result<(), StepFailure> {
        let intervals = self.broker.broker().intervals();
        let mut pace = StallDetector::new(self.patience(back.has_ticks).max(LONG_ENOUGH), intervals);
        let mut before = None;
        if back.purpose == Purpose::ReturnDrained && !self.is_behind {
            self.is_behind = self.live(back.into).await?.is_some_and(|into| into.ready.is_some_and(|ready| ready > 0));
        }
        loop {
            self.broker.check()?;
            let mut refused = match self.start(back.from, back.through, back.purpose).await {
                Ok(()) => None,
                Err(fault) => Some(self.refused(back.from, fault).await?),
            };
            match self.is_idle(back.until, back.switch).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => refused = Some(setback(back.from, error.into())?),
            }
            let Some(live) = self.live(back.from).await? else { return Ok(()) };
            let (progress, fault) = self.progress().await?;
            let is_rejected = progress.as_ref().is_some_and(|progress| progress.state == State::Rejected);
            if let Some(fault) = fault {
                refused = Some(self.refused(back.from, fault).await?);
            }
            let moved = self.moved_with(progress.as_ref());
            // By this step: the same messages were moved once already, out of the old queue.
            let before = *before.get_or_insert(self.moved.unwrap_or(0));
            let is_counted = progress.as_ref().is_none_or(|progress| progress.moved.is_some());
            let so_far = is_counted.then_some(moved.saturating_sub(before));
            tell(so_far, live.messages.filter(|_| !back.has_ticks));
            pace.saw(live.messages, moved);
            if self.is_shovel() && pace.is_reached(back.until, back.has_ticks) {
                return Ok(());
            }
            if back.until == Level::NearlyEmpty && self.is_outrun(back, &pace).await {
                self.reordered = live.messages;
                return Ok(());
            }
            if let Some(reason) = self.why_stuck(back, &pace, (&live, refused.as_ref(), is_rejected)).await? {
                // A shovel counts as moved what is rejected, and tries it again.
                if self.is_shovel() {
                    (self.returned, self.from_drained) = (None, None);
                }
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: back.from.clone(), reason }));
            }
            sleep(super::POLL).await;
        }
    }

    /// Whether more comes as fast as it is moved, or faster: the order of the last ones is lost, and nothing else.
    async fn is_outrun(&self, back: &Return<'_>, pace: &StallDetector) -> bool {
        pace.is_not_falling() && takes_none(self.broker, back.into).await.is_none()
    }

    /// Why it will not get on, if it seems so: what counts is that what is held gets less.
    async fn why_stuck(
        &self,
        back: &Return<'_>,
        pace: &StallDetector,
        (live, refused, is_rejected): (&QueueActivity, Option<&Fault>, bool),
    ) -> Result<Option<String>, BrokerError> {
        if !pace.is_not_falling() {
            return Ok(None);
        }
        if let Some(target) = self.live(back.into).await?
            && let Some(reason) = back.limit.rejects(back.into, &target, is_rejected)
        {
            // Who waits for consumers where there are none waits in vain.
            let is_consumed = target.consumers.is_none_or(|consumers| !consumers.is_empty());
            return Ok(Some(reason).filter(|_| !is_consumed || pace.has_not_fallen_for(LONGEST_RETURN)));
        }
        if !pace.has_not_fallen_for(self.patience(back.has_ticks).max(LONGEST_RETURN)) {
            return Ok(None);
        }
        let reason = takes_none(self.broker, back.into).await;
        Ok(Some(reason.unwrap_or_else(|| held_by(live, &[], refused, self.tick(back.has_ticks)))))
    }
}
