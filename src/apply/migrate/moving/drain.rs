//! Drains the old queue of a migration into its holding queue, and detects when the old queue is empty.

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

/// How long an unbound queue must be empty before topo treats it as drained, if the broker is a single node. Messages
/// that were routed before the queue was unbound can still arrive during this time.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// How long an unbound queue must be empty before topo treats it as drained, if the broker is a cluster. Messages from
/// other nodes can arrive later than messages from the same node.
const CLUSTER_SETTLE_TIME: Duration = Duration::from_secs(5);
/// The interval between checks of the policies and, if the queue does not drain, of the bindings.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

impl Moving<'_> {
    /// Drains the old queue. As long as the queue's consumers make progress, topo lets them drain it, because a
    /// concurrent transport would break the message order. If there are no consumers, if they stall, or after half of
    /// the drain timeout, a transport moves the remaining messages to the holding queue.
    pub(in super::super) async fn drain(
        &mut self,
        (from, to): (&QueueName, &ExchangeName),
        (migration, seen): (&Migration, &Snapshot),
        interrupt: &Interrupt,
        notify: impl Fn(Option<u64>, Option<u64>, Option<&str>),
    ) -> Result<(), StepFailure> {
        let settle_time =
            match (self.broker.broker().is_cluster().await, std::mem::replace(&mut self.is_repeated_drain, true)) {
                (true, _) => CLUSTER_SETTLE_TIME,
                (false, false) => SETTLE_TIME,
                // An application may repeatedly rebind the queue. Later drains end without waiting, because a wait
                // would give the application time to rebind it.
                (false, true) => Duration::ZERO,
            };
        let old = seen.topology.queues.get(from);
        let has_ticks = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        let mut detector = StallDetector::new(self.drain_timeout(has_ticks), self.broker.broker().intervals());
        let mut last_check = Instant::now();
        // The reported number excludes messages that were moved before this drain.
        let moved_before = self.moved.unwrap_or(0);
        loop {
            self.broker.check()?;
            if interrupt.is_requested() {
                return Err(StepFailure::Interrupted);
            }
            let Some(live) = self.queue_activity(from).await? else {
                let reason = "the queue no longer exists: another client deleted it, or it expired".to_owned();
                return Err(StepFailure::Retry(BrokerError::NotMoved { queue: from.clone(), reason }));
            };
            let has_transport = self.current.as_ref().is_some_and(|current| current.from == *from);
            let others = self.other_consumers(live.consumers.as_deref().unwrap_or_default(), has_transport);
            let mut current_fault = None;
            let needs_transport =
                others.is_empty() || detector.seems_stalled() || detector.is_past_half_of_drain_timeout();
            if !has_transport && needs_transport && live.messages != Some(0) {
                current_fault = match self.start(from, to, Purpose::Drain).await {
                    Ok(()) => None,
                    Err(fault) => Some(self.handle_fault(from, fault).await?),
                };
            }
            let (progress, fault) = self.progress().await?;
            let in_flight = progress.as_ref().map_or(0, |progress| progress.in_flight);
            if let Some(fault) = fault {
                current_fault = Some(self.handle_fault(from, fault).await?);
            }
            let moved = self.total_moved(progress.as_ref());
            let is_counted = progress.as_ref().is_none_or(|progress| progress.moved.is_some());
            detector.record(live.messages, moved);
            let stall = || describe_stall(&live, &others, current_fault.as_ref(), self.tick(has_ticks));
            let stalled = (detector.is_idle() && live.messages != Some(0)).then(stall);
            notify(is_counted.then_some(moved.saturating_sub(moved_before)), live.messages, stalled.as_deref());
            if in_flight == 0 && detector.has_been_empty_for(settle_time) {
                return Ok(());
            }
            if last_check.elapsed() >= CHECK_INTERVAL {
                last_check = Instant::now();
                self.expect_no_conflicting_policy(migration, seen.profile.version).await?;
                // Detects bindings that an application has added. The next pass deletes these bindings. Otherwise, the
                // queue would never drain.
                if detector.is_flat() {
                    self.expect_unbound(from).await?;
                }
            }
            if let Some(moved) = detector.moved_without_decrease() {
                let reason = format!(
                    "messages are arriving as fast as topo can move them ({moved} moved so far), through the default \
                     exchange or as dead-lettered messages, which topo cannot redirect"
                );
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            if detector.has_progress_timed_out() {
                let reason = describe_stall(&live, &others, current_fault.as_ref(), self.tick(has_ticks));
                let waited = i64::try_from(self.drain_timeout(has_ticks).as_millis()).ok().and_then(duration);
                let waited = waited.unwrap_or_else(|| "0s".to_owned());
                let reason = format!("{reason}; no progress for {waited} (--drain-timeout)");
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// Returns the client addresses of a queue's consumers, excluding topo's own shovel. `has_transport` is true if
    /// topo's transport consumes from the queue. A shovel has no client address, because the shovel runs on the broker.
    fn other_consumers<'c>(&self, consumers: &'c [String], has_transport: bool) -> Vec<&'c str> {
        let mut others: Vec<&str> = consumers.iter().map(String::as_str).collect();
        let is_own_shovel = |peer: &&str| has_transport && self.is_shovel() && peer.is_empty();
        if let Some(own_shovel) = others.iter().position(is_own_shovel) {
            others.remove(own_shovel);
        }
        others
    }
}
