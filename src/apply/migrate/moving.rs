//! Moves messages from a queue to the target of a fanout exchange, and detects when all are moved.

mod back;
mod fallback;
mod full;
mod meanwhile;
mod switch;

pub(super) use back::Return;
pub(super) use full::Limit;

use super::stall_detector::{StallDetector, prefetch};
use super::stall_reason::held_by;
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
/// Between two looks at a transport of our own, when its idle moment is waited for.
const INSTANT: Duration = Duration::from_millis(1);
/// A transport that has received nothing for this time has moved all messages.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// A stopped transport has 20 s for messages in transit, and a shovel 30 s to disappear.
const LONGEST_STOP: Duration = Duration::from_secs(60);
/// During an alarm, messages in transit make no progress.
const LONGEST_BLOCKED_STOP: Duration = Duration::from_secs(5);
/// Nothing comes to a queue that nothing leads to any more, but what was under way to it: from another node, longer.
const SETTLED: Duration = Duration::from_secs(1);
const SETTLED_ON_A_CLUSTER: Duration = Duration::from_secs(5);
/// Between two looks at what leads to a queue that does not get empty, and at the policies.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// What comes as fast as it is moved does not get less; after so long it is as little as it will be.
const LONG_ENOUGH: Duration = Duration::from_secs(10);
/// The moves of one migration: at most one at a time.
pub(super) struct Moving<'a> {
    broker: &'a LockedBroker,
    means: ApplyResources<'a>,
    current: Option<Current>,
    moved: Option<u64>,
    /// How many were moved out of the old queue, but for those that came back into it before they were moved out again.
    drained: Option<u64>,
    /// How many came back, and how many of them from where those are held that were moved out.
    returned: Option<u64>,
    from_drained: Option<u64>,
    /// Whether they came back into a queue that was not empty.
    is_behind: bool,
    possible_duplicates: u64,
    /// How many were held when new ones were let through before them.
    reordered: Option<u64>,
    /// How many a transport may have under way: less where messages are large.
    prefetch: u16,
    /// Whether the old queue has run empty before.
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
    /// What was on its way back when another run ended goes to the end of it, to be drained again.
    WayBack,
    /// The messages of the old queue return.
    ReturnDrained,
    /// The messages that were published meanwhile return.
    ReturnHeld,
}

impl<'a> Moving<'a> {
    pub(super) fn new(broker: &'a LockedBroker, means: ApplyResources<'a>) -> Self {
        Self {
            broker,
            means,
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

    /// The number of returned messages, by all moves so far.
    pub(super) fn returned(&self) -> Option<u64> {
        self.returned
    }

    /// The number of messages that returned behind newer ones.
    pub(super) fn behind(&self) -> Option<u64> {
        self.from_drained.filter(|back| self.is_behind && *back > 0)
    }

    /// How many did not come back of those that were moved out of the old queue: of use when all was brought back. What a
    /// shovel counts is not exact.
    pub(super) fn missing(&self) -> Option<Missing> {
        let (of, back) = self.drained.zip(self.from_drained).filter(|_| !self.is_shovel())?;
        of.checked_sub(back).filter(|missing| *missing > 0).map(|messages| Missing { messages, of })
    }

    /// How many were held when new ones were let through before them, because those came as fast as they were moved.
    pub(super) fn reordered(&self) -> Option<u64> {
        self.reordered
    }

    pub(super) fn possible_duplicates(&self) -> u64 {
        self.possible_duplicates
    }

    /// Starts to move, unless that is what is done already.
    async fn start(&mut self, from: &QueueName, to: &ExchangeName, purpose: Purpose) -> Result<(), Fault> {
        if self.current.as_ref().is_some_and(|current| current.from == *from && current.to == *to) {
            return Ok(());
        }
        self.stop().await;
        let Some(transport) = self.means.transport else {
            let reason = "no transport was selected".to_owned();
            return Err(BrokerError::NotMoved { queue: from.clone(), reason }.into());
        };
        // Without statistics, as if they were small.
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

    /// Ends the move: no message is in transit afterwards.
    pub(super) async fn stop(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        let before = current.handle.progress().await.ok();
        let is_blocked = before.as_ref().is_some_and(|before| before.state == State::Blocked);
        let longest = if is_blocked { LONGEST_BLOCKED_STOP } else { LONGEST_STOP };
        let (last, broken_off) = match timeout(longest, current.handle.stop()).await {
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
            // By another run they were moved out, as a rule.
            Purpose::WayBack => {
                self.drained = self.drained.zip(last.moved).map(|(sum, less)| sum.saturating_sub(less));
            }
            Purpose::ReturnDrained => {
                add(&mut self.from_drained);
                add(&mut self.returned);
            }
            Purpose::ReturnHeld => add(&mut self.returned),
        }
        if broken_off > 0 {
            // Some more, perhaps.
            self.from_drained = None;
        }
        self.possible_duplicates += last.possible_duplicates + broken_off;
    }

    /// Waits until the transport has noticed that the source is gone: only then it no longer holds the old queue.
    pub(super) async fn ended(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Some(current) = &mut self.current {
            match current.handle.progress().await {
                Ok(progress) if progress.state.is_over() => break,
                Ok(_) if Instant::now() < deadline => sleep(INSTANT).await,
                Ok(_) | Err(_) => break,
            }
        }
        self.stop().await;
    }

    /// The transport over AMQP, if it is in use.
    pub(super) fn amqp(&self) -> Option<&AmqpTransport> {
        self.means.transport.and_then(Transport::amqp)
    }

    /// Whether only topo's transport consumes from a queue, as far as that is certain. A quorum queue without a leader
    /// reports no consumers at all, so its count is not trusted.
    pub(super) async fn is_alone(&self, queue: &QueueName, is_quorum: bool) -> bool {
        let is_ours = self.current.as_ref().is_some_and(|current| current.from == *queue);
        match self.amqp() {
            Some(amqp) if is_ours || !is_quorum => {
                let counted = amqp.counted(queue).await.ok().flatten();
                counted.is_some_and(|counted| counted.consumers == u32::from(is_ours))
            }
            Some(_) | None => false,
        }
    }

    /// Whether a shovel is running.
    pub(super) fn is_shovel(&self) -> bool {
        self.fallback.is_some() || matches!(self.means.transport, Some(Transport::Shovel(_)))
    }

    /// Shovels that a killed run left would go on, and declare a queue that is deleted; whatever moves now. Where
    /// one is left that this user may not see, the plan is blocked.
    pub(super) async fn remove_leftovers(&self, migration: &Migration) -> Result<(), BrokerError> {
        if self.current.is_some() {
            return Ok(());
        }
        let shovels = match self.means.transport {
            Some(Transport::Shovel(shovels) | Transport::AmqpOrShovel(_, shovels)) => shovels.clone(),
            Some(Transport::Amqp(_)) | None => {
                ShovelTransport::new(self.broker.broker().clone(), self.broker.vhost(), BrokerVersion::NEWEST_KNOWN)
            }
        };
        let leftovers =
            match shovels.leftovers().await {
                Ok(leftovers) => leftovers,
                // Who may not see shovels can still move over AMQP. Without the plugin, there are none.
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

    /// The messages and consumers of a queue; `None` if it does not exist.
    pub(super) async fn live(&self, queue: &QueueName) -> Result<Option<QueueActivity>, BrokerError> {
        Ok(self.broker.broker().activity(self.broker.vhost()).await?.queues.remove(queue))
    }

    /// How far the current move is, and what it waits for or why it failed; then there is none any more.
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

    /// Empties the old queue: by its own consumers as long as they do it, because a transport beside them would tear the order;
    /// else by a transport.
    pub(super) async fn drain(
        &mut self,
        (from, to): (&QueueName, &ExchangeName),
        (migration, seen): (&Migration, &Snapshot),
        interrupt: &Interrupt,
        tell: impl Fn(Option<u64>, Option<u64>, Option<&str>),
    ) -> Result<(), StepFailure> {
        let settled = match (self.broker.broker().is_cluster().await, std::mem::replace(&mut self.has_settled, true)) {
            (true, _) => SETTLED_ON_A_CLUSTER,
            (false, false) => SETTLED,
            // An application that binds it again and again is outrun only without a pause.
            (false, true) => Duration::ZERO,
        };
        let old = seen.topology.queues.get(from);
        let has_ticks = old.is_some_and(|old| old.queue_type() == Some(QueueType::Quorum));
        let mut pace = StallDetector::new(self.patience(has_ticks), self.broker.broker().intervals());
        let mut looked = Instant::now();
        // Messages that an interrupted rollback moves first do not count.
        let before = self.moved.unwrap_or(0);
        loop {
            self.broker.check()?;
            if interrupt.is_requested() {
                return Err(StepFailure::Interrupted);
            }
            let Some(live) = self.live(from).await? else {
                let reason = "it was deleted meanwhile".to_owned();
                return Err(StepFailure::Again(BrokerError::NotMoved { queue: from.clone(), reason }));
            };
            let is_ours = self.current.as_ref().is_some_and(|current| current.from == *from);
            let theirs = self.without_ours(live.consumers.as_deref().unwrap_or_default(), is_ours);
            let mut refused = None;
            let wants_transport = theirs.is_empty() || pace.has_stalled() || pace.is_half_over();
            if !is_ours && wants_transport && live.messages != Some(0) {
                refused = match self.start(from, to, Purpose::Drain).await {
                    Ok(()) => None,
                    Err(fault) => Some(self.refused(from, fault).await?),
                };
            }
            let (progress, fault) = self.progress().await?;
            let in_flight = progress.as_ref().map_or(0, |progress| progress.in_flight);
            if let Some(fault) = fault {
                refused = Some(self.refused(from, fault).await?);
            }
            let moved = self.moved_with(progress.as_ref());
            let is_counted = progress.as_ref().is_none_or(|progress| progress.moved.is_some());
            pace.saw(live.messages, moved);
            let held = || held_by(&live, &theirs, refused.as_ref(), self.tick(has_ticks));
            let stalled = (pace.has_stopped() && live.messages != Some(0)).then(held);
            tell(is_counted.then_some(moved.saturating_sub(before)), live.messages, stalled.as_deref());
            if in_flight == 0 && pace.is_empty_for(settled) {
                return Ok(());
            }
            if looked.elapsed() >= BETWEEN_LOOKS {
                looked = Instant::now();
                self.expect_no_eater(migration, seen.profile.version).await?;
                // What an application bound meanwhile is taken away again; else it would never get empty.
                if pace.is_level() {
                    self.unbound(from).await?;
                }
            }
            if let Some(moved) = pace.is_fed() {
                let reason = format!(
                    "messages come to it as fast as they are taken ({moved} of them): through the default exchange or as \
                     dead letters, which cannot be redirected"
                );
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            if pace.is_over() {
                let reason = held_by(&live, &theirs, refused.as_ref(), self.tick(has_ticks));
                let waited = i64::try_from(self.patience(has_ticks).as_millis()).ok().and_then(duration);
                let waited = waited.unwrap_or_else(|| "0s".to_owned());
                let reason = format!("{reason}; nothing changed for {waited} (--drain-timeout)");
                return Err(StepFailure::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// How long nothing may change. The counts of a queue that `has_ticks` change with its ticks only.
    fn patience(&self, has_ticks: bool) -> Duration {
        let asked = self.means.patience;
        if has_ticks { self.broker.broker().intervals().patience(asked) } else { asked }
    }

    /// How old the counts of a queue that `has_ticks` can be.
    fn tick(&self, has_ticks: bool) -> Option<Duration> {
        has_ticks.then(|| self.broker.broker().intervals().tick())
    }

    /// The consumers that are not our own shovel, which is on the broker and has no address.
    fn without_ours<'c>(&self, consumers: &'c [String], is_ours: bool) -> Vec<&'c str> {
        let mut theirs: Vec<&str> = consumers.iter().map(String::as_str).collect();
        if let Some(ours) = theirs.iter().position(|peer| is_ours && self.is_shovel() && peer.is_empty()) {
            theirs.remove(ours);
        }
        theirs
    }

    fn moved_with(&self, progress: Option<&Progress>) -> u64 {
        let now = progress.map_or(Some(0), |progress| progress.moved);
        self.moved.zip(now).map_or(0, |(before, now)| before + now)
    }
}
