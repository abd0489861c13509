//! Moves messages from a queue to the target of a fanout exchange, and detects when all are moved.

mod back;
mod fallback;
mod full;
mod meanwhile;
mod switch;

pub(super) use back::Return;
pub(super) use full::Limit;

use super::stall_detector::{StallDetector, prefetch};
use super::stall_reason::describe_stall;
use super::{ApplyResources, Missing, StepFailure};
use crate::apply::Interrupt;
use crate::broker::transport::{AmqpTransport, Fault, Move, Order, Progress, ShovelTransport, State, Transport};
use crate::broker::{BrokerError, LockedBroker, Snapshot};
use crate::model::naming::MigrationNames;
use crate::model::units::duration;
use crate::model::{BrokerVersion, ExchangeName, QueueName, QueueType};
use crate::plan::{Migration, QueueActivity};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The pause between two checks of a queue.
const POLL: Duration = Duration::from_millis(300);
/// The pause between two checks of a transport whose end is imminent.
const END_POLL: Duration = Duration::from_millis(1);
/// A transport that has received nothing for this time has moved all messages.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// The maximum time to stop a transport. AMQP takes up to 20 s for messages in transit, and a shovel takes up to 30 s
/// to disappear.
const LONGEST_STOP: Duration = Duration::from_secs(60);
/// The maximum time to stop a blocked transport: during an alarm, messages in transit make no progress.
const LONGEST_BLOCKED_STOP: Duration = Duration::from_secs(5);
/// The time after which no message in transit arrives at an unbound queue. Messages from other nodes take longer.
const SETTLE_TIME: Duration = Duration::from_secs(1);
const CLUSTER_SETTLE_TIME: Duration = Duration::from_secs(5);
/// The pause between two checks of the bindings of a queue that does not drain, and of the policies.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum time without a decrease before a number of messages counts as steady. It is steady if messages arrive as
/// fast as topo moves them.
const STEADY_TIME: Duration = Duration::from_secs(10);

/// The moves of one migration, of which at most one runs at a time.
pub(super) struct Moving<'a> {
    broker: &'a LockedBroker,
    resources: ApplyResources<'a>,
    current: Option<Current>,
    moved: Option<u64>,
    /// The number of messages that were moved out of the old queue, without those that returned to it before they were
    /// moved again.
    drained: Option<u64>,
    /// The number of returned messages, and the number of those that returned from the queue of drained messages.
    returned: Option<u64>,
    from_drained: Option<u64>,
    /// True if drained messages returned to a queue that was not empty.
    is_behind: bool,
    possible_duplicates: u64,
    /// The number of messages that were held when new messages overtook them.
    reordered: Option<u64>,
    /// The maximum number of messages in transit, which is smaller for large messages.
    prefetch: u16,
    /// True if the old queue has been empty before.
    has_settled: bool,
    /// The reason why a shovel took over from AMQP.
    fallback: Option<String>,
}

struct Current {
    from: QueueName,
    to: ExchangeName,
    purpose: Purpose,
    since: Instant,
    handle: Move,
}

/// The purpose of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The old queue drains.
    Drain,
    /// Messages that an interrupted run was returning move to the end of the old queue, to be drained again.
    Redrain,
    /// The messages of the old queue return.
    ReturnDrained,
    /// The messages that were published meanwhile return.
    ReturnHeld,
}

impl<'a> Moving<'a> {
    pub(super) fn new(broker: &'a LockedBroker, resources: ApplyResources<'a>) -> Self {
        Self {
            broker,
            resources,
            current: None,
            moved: Some(0),
            drained: Some(0),
            returned: Some(0),
            from_drained: Some(0),
            is_behind: false,
            possible_duplicates: 0,
            reordered: None,
            prefetch: Order::PREFETCH,
            has_settled: false,
            fallback: None,
        }
    }

    /// Returns the number of messages that all moves have returned so far.
    pub(super) fn returned(&self) -> Option<u64> {
        self.returned
    }

    /// Returns the number of messages that returned behind newer ones.
    pub(super) fn behind(&self) -> Option<u64> {
        self.from_drained.filter(|back| self.is_behind && *back > 0)
    }

    /// Returns the number of drained messages that did not return, after everything was returned. `None` for a shovel,
    /// whose counts are not exact.
    pub(super) fn missing(&self) -> Option<Missing> {
        let (of, back) = self.drained.zip(self.from_drained).filter(|_| !self.is_shovel())?;
        of.checked_sub(back).filter(|missing| *missing > 0).map(|messages| Missing { messages, of })
    }

    /// Returns the number of messages that were held when new messages overtook them, because those arrived as fast as
    /// topo moved messages.
    pub(super) fn reordered(&self) -> Option<u64> {
        self.reordered
    }

    pub(super) fn possible_duplicates(&self) -> u64 {
        self.possible_duplicates
    }

    /// Starts a move, unless it is already running.
    async fn start(&mut self, from: &QueueName, to: &ExchangeName, purpose: Purpose) -> Result<(), Fault> {
        if self.current.as_ref().is_some_and(|current| current.from == *from && current.to == *to) {
            return Ok(());
        }
        self.stop().await;
        let Some(transport) = self.resources.transport else {
            let reason = "no transport was selected".to_owned();
            return Err(BrokerError::NotMoved { queue: from.clone(), reason }.into());
        };
        // Without statistics, the messages count as small.
        let state = self.broker.broker().queue_state(self.broker.vhost(), from).await.ok().flatten();
        let average = state.and_then(|state| state.average_bytes).unwrap_or(0);
        self.prefetch = self.prefetch.min(prefetch(average));
        let order = Order { prefetch: self.prefetch, ..Order::new(from, to) };
        let handle = match (transport, &self.fallback) {
            (Transport::AmqpOrShovel(_, shovel), Some(_)) => Move::Shovel(shovel.start(order).await?),
            (Transport::Amqp(_) | Transport::AmqpOrShovel(..) | Transport::Shovel(_), _) => {
                transport.start(order).await?
            }
        };
        self.current = Some(Current { from: from.clone(), to: to.clone(), purpose, since: Instant::now(), handle });
        Ok(())
    }

    /// Stops the move. Afterwards, no message is in transit.
    pub(super) async fn stop(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        let before = current.handle.progress().await.ok();
        let is_blocked = before.as_ref().is_some_and(|before| before.state == State::Blocked);
        let longest = if is_blocked { LONGEST_BLOCKED_STOP } else { LONGEST_STOP };
        let (last, in_doubt) = match timeout(longest, current.handle.stop()).await {
            Ok(Ok(last)) => (last, 0),
            Ok(Err(_)) | Err(_) => match before {
                // The last acknowledgements may be lost, too.
                Some(before) if before.in_flight > 0 => (before, self.prefetch.into()),
                Some(before) => (before, 0),
                None => return,
            },
        };
        let add = |sum: &mut Option<u64>| *sum = sum.zip(last.moved).map(|(sum, more)| sum + more);
        add(&mut self.moved);
        match current.purpose {
            Purpose::Drain => add(&mut self.drained),
            // As a rule, an earlier run has moved these messages out of the queue.
            Purpose::Redrain => {
                self.drained = self.drained.zip(last.moved).map(|(sum, less)| sum.saturating_sub(less));
            }
            Purpose::ReturnDrained => {
                add(&mut self.from_drained);
                add(&mut self.returned);
            }
            Purpose::ReturnHeld => add(&mut self.returned),
        }
        if in_doubt > 0 {
            // More messages may have returned than were counted.
            self.from_drained = None;
        }
        self.possible_duplicates += last.possible_duplicates + in_doubt;
    }

    /// Waits until the transport has detected that the source no longer exists. Until then, it still uses the old
    /// queue.
    pub(super) async fn await_end(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Some(current) = &mut self.current {
            match current.handle.progress().await {
                Ok(progress) if progress.state.is_over() => break,
                Ok(_) if Instant::now() < deadline => sleep(END_POLL).await,
                Ok(_) | Err(_) => break,
            }
        }
        self.stop().await;
    }

    /// Returns the transport over AMQP, if it is in use.
    pub(super) fn amqp(&self) -> Option<&AmqpTransport> {
        self.resources.transport.and_then(Transport::amqp)
    }

    /// Returns true if certainly only topo's transport consumes from a queue. A quorum queue without a leader reports
    /// no consumers at all, so its count is not trusted.
    pub(super) async fn is_only_consumer(&self, queue: &QueueName, is_quorum: bool) -> bool {
        let is_ours = self.current.as_ref().is_some_and(|current| current.from == *queue);
        match self.amqp() {
            Some(amqp) if is_ours || !is_quorum => {
                let counted = amqp.counted(queue).await.ok().flatten();
                counted.is_some_and(|counted| counted.consumers == u32::from(is_ours))
            }
            Some(_) | None => false,
        }
    }

    /// Returns true if shovels move the messages.
    pub(super) fn is_shovel(&self) -> bool {
        self.fallback.is_some() || matches!(self.resources.transport, Some(Transport::Shovel(_)))
    }

    /// Removes the shovels of killed runs, whatever transport is used now. They would continue to move messages, and
    /// declare a deleted queue again. A shovel that this user cannot see blocks the plan.
    pub(super) async fn remove_leftovers(&self, migration: &Migration) -> Result<(), BrokerError> {
        if self.current.is_some() {
            return Ok(());
        }
        let shovels = match self.resources.transport {
            Some(Transport::Shovel(shovels) | Transport::AmqpOrShovel(_, shovels)) => shovels.clone(),
            Some(Transport::Amqp(_)) | None => {
                ShovelTransport::new(self.broker.broker().clone(), self.broker.vhost(), BrokerVersion::NEWEST_KNOWN)
            }
        };
        let leftovers =
            match shovels.leftovers().await {
                Ok(leftovers) => leftovers,
                // A user who may not see shovels can still use AMQP. Without the plugin, no shovels exist.
                Err(
                    BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. } | BrokerError::NotFound { .. },
                ) if !self.is_shovel() => return Ok(()),
                Err(error) => return Err(error),
            };
        let MigrationNames { hold, drained, .. } = migration.names();
        for leftover in leftovers {
            let source = leftover.source.as_str();
            if [migration.queue.as_str(), &hold, &drained].contains(&source) {
                shovels.remove(&leftover.name).await?;
            }
        }
        Ok(())
    }

    /// Returns the messages and consumers of a queue; `None` if it does not exist.
    pub(super) async fn live(&self, queue: &QueueName) -> Result<Option<QueueActivity>, BrokerError> {
        Ok(self.broker.broker().activity(self.broker.vhost()).await?.queues.remove(queue))
    }

    /// Returns the progress of the current move, and the fault that it waits for or failed with. A failed move is
    /// stopped.
    async fn progress(&mut self) -> Result<(Option<Progress>, Option<Fault>), BrokerError> {
        let Some(current) = &mut self.current else { return Ok((None, None)) };
        let progress = current.handle.progress().await?;
        match &progress.state {
            State::Moving | State::Rejected | State::Reconnecting | State::Stopped => Ok((Some(progress), None)),
            State::Blocked => Ok((Some(progress), Some(Fault::Blocked))),
            State::Failed(fault) => {
                let fault = fault.clone();
                self.stop().await;
                Ok((None, Some(fault)))
            }
        }
    }

    /// Drains the old queue. Its consumers drain it while they make progress, because a concurrent transport would
    /// break the order. Otherwise a transport drains it.
    pub(super) async fn drain(
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
                // If an application repeatedly binds the queue again, topo is fast enough only without a pause.
                (false, true) => Duration::ZERO,
            };
        let old = seen.topology.queues.get(from);
        let has_ticks = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        let mut detector = StallDetector::new(self.drain_timeout(has_ticks), self.broker.broker().intervals());
        let mut last_check = Instant::now();
        // Does not count messages that are drained again after an interrupted rollback.
        let before = self.moved.unwrap_or(0);
        loop {
            self.broker.check()?;
            if interrupt.is_requested() {
                return Err(StepFailure::Interrupted);
            }
            let Some(live) = self.live(from).await? else {
                let reason = "the queue was deleted meanwhile".to_owned();
                return Err(StepFailure::Retry(BrokerError::NotMoved { queue: from.clone(), reason }));
            };
            let is_ours = self.current.as_ref().is_some_and(|current| current.from == *from);
            let others = self.other_consumers(live.consumers.as_deref().unwrap_or_default(), is_ours);
            let mut refused = None;
            let wants_transport = others.is_empty() || detector.has_stalled() || detector.is_half_timed_out();
            if !is_ours && wants_transport && live.messages != Some(0) {
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
                // Deletes bindings that an application added meanwhile; otherwise the queue would never drain.
                if detector.is_flat() {
                    self.expect_unbound(from).await?;
                }
            }
            if let Some(moved) = detector.moved_without_decrease() {
                let reason = format!(
                    "messages arrive as fast as they are moved ({moved} so far), through the default exchange or as \
                     dead-lettered messages; topo cannot redirect them"
                );
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            if detector.is_timed_out() {
                let reason = describe_stall(&live, &others, refused.as_ref(), self.tick(has_ticks));
                let waited = i64::try_from(self.drain_timeout(has_ticks).as_millis()).ok().and_then(duration);
                let waited = waited.unwrap_or_else(|| "0s".to_owned());
                let reason = format!("{reason}; nothing changed for {waited} (--drain-timeout)");
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// Returns the maximum time without progress. The counts of a queue that `has_ticks` change only with its ticks.
    fn drain_timeout(&self, has_ticks: bool) -> Duration {
        let drain_timeout = self.resources.drain_timeout;
        if has_ticks { self.broker.broker().intervals().drain_timeout(drain_timeout) } else { drain_timeout }
    }

    /// Returns the maximum age of the counts of a queue that `has_ticks`.
    fn tick(&self, has_ticks: bool) -> Option<Duration> {
        has_ticks.then(|| self.broker.broker().intervals().tick())
    }

    /// Returns the consumers other than topo's shovel, which runs on the broker and has no address.
    fn other_consumers<'c>(&self, consumers: &'c [String], is_ours: bool) -> Vec<&'c str> {
        let mut others: Vec<&str> = consumers.iter().map(String::as_str).collect();
        if let Some(ours) = others.iter().position(|peer| is_ours && self.is_shovel() && peer.is_empty()) {
            others.remove(ours);
        }
        others
    }

    fn total_moved(&self, progress: Option<&Progress>) -> u64 {
        let now = progress.map_or(Some(0), |progress| progress.moved);
        self.moved.zip(now).map_or(0, |(before, now)| before + now)
    }
}
