//! Drains the old queue of a migration into its holding queue, and detects when it is empty.

use super::super::stall::{StallDetector, describe_stall};
use super::super::step_failure::StepFailure;
use super::{Moving, POLL, Purpose};
use crate::apply::request::Interrupt;
use crate::broker::{BrokerError, Snapshot};
use crate::model::units::duration;
use crate::model::{ExchangeName, QueueName, QueueType};
use crate::plan::Migration;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time after which no more messages arrive at an unbound queue, if the broker is a single node.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// The time after which no more messages arrive at an unbound queue in a cluster. Messages from other nodes take
/// longer.
const CLUSTER_SETTLE_TIME: Duration = Duration::from_secs(5);
/// The interval between checks of the policies and, if the queue does not drain, of the bindings.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

impl Moving<'_> {
    /// Drains the old queue. While the queue's consumers make progress, they drain the queue, because a concurrent
    /// transport would break the order. Otherwise, a transport moves the messages to the holding queue.
    pub(in super::super) async fn drain(
        &mut self,
        (from, to): (&QueueName, &ExchangeName),
        (migration, seen): (&Migration, &Snapshot),
        interrupt: &Interrupt,
        notify: impl Fn(Option<u64>, Option<u64>, Option<&str>),
    ) -> Result<(), StepFailure> {
        let settle_time =
            match (self.broker.broker().is_cluster().await, std::mem::replace(&mut self.has_settled, true)) {
                (true, _) => CLUSTER_SETTLE_TIME,
                (false, false) => SETTLE_TIME,
                // If an application repeatedly binds the queue again, a pause would make topo too slow.
                (false, true) => Duration::ZERO,
            };
        let old = seen.topology.queues.get(from);
        let has_ticks = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        let mut detector = StallDetector::new(self.drain_timeout(has_ticks), self.broker.broker().intervals());
        let mut last_check = Instant::now();
        // Excludes messages that were moved before this drain.
        let before = self.moved.unwrap_or(0);
        loop {
            self.broker.check()?;
            if interrupt.is_requested() {
                return Err(StepFailure::Interrupted);
            }
            let Some(live) = self.queue_activity(from).await? else {
                let reason = "another client has deleted the queue".to_owned();
                return Err(StepFailure::Retry(BrokerError::NotMoved { queue: from.clone(), reason }));
            };
            let is_ours = self.current.as_ref().is_some_and(|current| current.from == *from);
            let others = self.other_consumers(live.consumers.as_deref().unwrap_or_default(), is_ours);
            let mut refused = None;
            let needs_transport = others.is_empty() || detector.has_stalled() || detector.is_half_timed_out();
            if !is_ours && needs_transport && live.messages != Some(0) {
                refused = match self.start(from, to, Purpose::Drain).await {
                    Ok(()) => None,
                    Err(fault) => Some(self.handle_fault(from, fault).await?),
                };
            }
            let (progress, fault) = self.progress().await?;
            let in_flight = progress.as_ref().map_or(0, |progress| progress.in_flight);
            if let Some(fault) = fault {
                refused = Some(self.handle_fault(from, fault).await?);
            }
            let moved = self.total_moved(progress.as_ref());
            let is_counted = progress.as_ref().is_none_or(|progress| progress.moved.is_some());
            detector.record(live.messages, moved);
            let stall = || describe_stall(&live, &others, refused.as_ref(), self.tick(has_ticks));
            let stalled = (detector.has_stopped() && live.messages != Some(0)).then(stall);
            notify(is_counted.then_some(moved.saturating_sub(before)), live.messages, stalled.as_deref());
            if in_flight == 0 && detector.is_empty_for(settle_time) {
                return Ok(());
            }
            if last_check.elapsed() >= CHECK_INTERVAL {
                last_check = Instant::now();
                self.expect_no_conflicting_policy(migration, seen.profile.version).await?;
                // Detects bindings that an application has added. The next pass deletes them, because the queue would
                // never drain otherwise.
                if detector.is_flat() {
                    self.expect_unbound(from).await?;
                }
            }
            if let Some(moved) = detector.moved_without_decrease() {
                let reason = format!(
                    "messages arrive as fast as topo moves them ({moved} so far), through the default exchange or as \
                     dead-lettered messages, which topo cannot redirect"
                );
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            if detector.is_timed_out() {
                let reason = describe_stall(&live, &others, refused.as_ref(), self.tick(has_ticks));
                let waited = i64::try_from(self.drain_timeout(has_ticks).as_millis()).ok().and_then(duration);
                let waited = waited.unwrap_or_else(|| "0s".to_owned());
                let reason = format!("{reason}; no progress for {waited} (--drain-timeout)");
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// Returns the consumers without topo's shovel, which has no address because it runs on the broker.
    fn other_consumers<'c>(&self, consumers: &'c [String], is_ours: bool) -> Vec<&'c str> {
        let mut others: Vec<&str> = consumers.iter().map(String::as_str).collect();
        if let Some(ours) = others.iter().position(|peer| is_ours && self.is_shovel() && peer.is_empty()) {
            others.remove(ours);
        }
        others
    }
}
