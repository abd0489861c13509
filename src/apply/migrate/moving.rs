//! Moves messages from one queue to where a fanout exchange leads, and knows when that is done.

mod switch;

use super::fault::setback;
use super::held::{held_by, takes_none};
use super::pace::{Pace, prefetch};
use super::{Means, Setback};
use crate::apply::Interrupt;
use crate::broker::mover::{AmqpMover, Fault, Move, Mover, Order, Progress, ShovelMover, State};
use crate::broker::{BrokerError, LockedBroker};
use crate::model::naming::Beside;
use crate::model::{Binding, BrokerVersion, ExchangeName, QueueName};
use crate::plan::{Level, Migration, QueueActivity};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Between two looks at a queue.
const POLL: Duration = Duration::from_millis(300);
/// Between two looks at a mover of our own, when its idle moment is waited for.
const INSTANT: Duration = Duration::from_millis(1);
/// A mover that has had nothing for so long has got all there was.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// A mover that is told to stop has 10 s for what is under way, and a shovel 30 s to be gone.
const LONGEST_STOP: Duration = Duration::from_secs(60);
/// While an alarm lasts, nothing of what is under way gets anywhere.
const LONGEST_BLOCKED_STOP: Duration = Duration::from_secs(5);
/// Nothing comes to a queue that nothing leads to any more, but what was under way to it: from another node, longer.
const SETTLED: Duration = Duration::from_secs(1);
const SETTLED_ON_A_CLUSTER: Duration = Duration::from_secs(5);
/// Between two looks at what leads to a queue that does not get empty.
const BINDINGS: Duration = Duration::from_secs(2);
/// What comes as fast as it is moved does not get less; after so long it is as little as it will be.
const LONG_ENOUGH: Duration = Duration::from_secs(10);
/// What is held is not left behind for want of patience with somebody else's messages, which is what a user says.
const LONGEST_RETURN: Duration = Duration::from_secs(60);

/// The mover of one migration: at most one move at a time.
pub(super) struct Moving<'a> {
    broker: &'a LockedBroker,
    means: Means<'a>,
    current: Option<Current>,
    moved: Option<u64>,
    returned: Option<u64>,
    maybe_twice: u64,
    /// How many were held when new ones were let through before them.
    overtaken: Option<u64>,
    /// How many a mover may have under way: less where messages are large.
    prefetch: u16,
    /// Whether the old queue has run empty before.
    has_settled: bool,
}

struct Current {
    from: QueueName,
    to: ExchangeName,
    /// Whether what it moves comes back into the queue.
    brings_back: bool,
    since: Instant,
    handle: Move,
}

impl<'a> Moving<'a> {
    pub(super) fn new(broker: &'a LockedBroker, means: Means<'a>) -> Self {
        Self {
            broker,
            means,
            current: None,
            moved: Some(0),
            returned: Some(0),
            maybe_twice: 0,
            overtaken: None,
            prefetch: Order::PREFETCH,
            has_settled: false,
        }
    }

    /// How many messages were brought back, by all moves so far.
    pub(super) fn returned(&self) -> Option<u64> {
        self.returned
    }

    /// How many were held when new ones were let through before them, because those came as fast as they were moved.
    pub(super) fn overtaken(&self) -> Option<u64> {
        self.overtaken
    }

    pub(super) fn maybe_twice(&self) -> u64 {
        self.maybe_twice
    }

    /// Starts to move, unless that is what is done already.
    async fn start(&mut self, from: &QueueName, to: &ExchangeName, brings_back: bool) -> Result<(), Fault> {
        if self.current.as_ref().is_some_and(|current| current.from == *from && current.to == *to) {
            return Ok(());
        }
        self.stop().await;
        let Some(mover) = self.means.mover else {
            let reason = "nothing was chosen to move them".to_owned();
            return Err(BrokerError::NotMoved { queue: from.clone(), reason }.into());
        };
        // Without statistics, as if they were small.
        let state = self.broker.broker().queue_state(self.broker.vhost(), from).await.ok().flatten();
        let average = state.and_then(|state| state.average_bytes).unwrap_or(0);
        self.prefetch = self.prefetch.min(prefetch(average));
        let handle = mover.start(Order { prefetch: self.prefetch, ..Order::new(from, to) }).await?;
        self.current = Some(Current { from: from.clone(), to: to.clone(), brings_back, since: Instant::now(), handle });
        Ok(())
    }

    /// Ends the move: nothing is under way any more.
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
        let add = |sum: Option<u64>| sum.zip(last.moved).map(|(sum, more)| sum + more);
        self.moved = add(self.moved);
        if current.brings_back {
            self.returned = add(self.returned);
        }
        self.maybe_twice += last.maybe_twice + broken_off;
    }

    /// Waits until the source is gone for the mover, too: only then nobody holds the old queue any more.
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

    /// The mover over AMQP, if it is that one.
    pub(super) fn amqp(&self) -> Option<&AmqpMover> {
        match self.means.mover {
            Some(Mover::Amqp(mover)) => Some(mover),
            Some(Mover::Shovel(_)) | None => None,
        }
    }

    /// Whether nobody but our own mover consumes from a queue, as far as that is certain.
    pub(super) async fn is_alone(&self, queue: &QueueName) -> bool {
        let is_ours = self.current.as_ref().is_some_and(|current| current.from == *queue);
        match self.amqp() {
            Some(amqp) if is_ours => amqp.consumers(queue).await.is_ok_and(|count| count == 1),
            Some(_) | None => false,
        }
    }

    /// Whether a mover of the broker's is at work.
    pub(super) fn is_shovel(&self) -> bool {
        matches!(self.means.mover, Some(Mover::Shovel(_)))
    }

    /// Shovels that a killed run left would go on, and declare a queue that is deleted; whatever moves now. Who may not see
    /// them did not make them.
    pub(super) async fn remove_leftovers(&self, migration: &Migration) -> Result<(), BrokerError> {
        if self.current.is_some() {
            return Ok(());
        }
        let shovels = match self.means.mover {
            Some(Mover::Shovel(shovels)) => shovels.clone(),
            Some(Mover::Amqp(_)) | None => {
                ShovelMover::new(self.broker.broker().clone(), self.broker.vhost(), BrokerVersion::NEWEST_KNOWN)
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
        let Beside { hold, drained, .. } = migration.beside();
        for leftover in leftovers {
            let source = leftover.source.as_str();
            if [migration.queue.as_str(), &hold, &drained].contains(&source) {
                shovels.remove(&leftover.name).await?;
            }
        }
        Ok(())
    }

    /// What is in a queue, and who consumes from it; `None` if there is no such queue.
    pub(super) async fn live(&self, queue: &QueueName) -> Result<Option<QueueActivity>, BrokerError> {
        Ok(self.broker.broker().activity(self.broker.vhost()).await?.queues.remove(queue))
    }

    /// How far the current move is, if there is one.
    /// And what it waits for, or why it failed; then it is none any more.
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

    /// Empties the old queue: by its own consumers as long as they do it, because a mover beside them would tear the order;
    /// else by a mover.
    pub(super) async fn drain(
        &mut self,
        (from, to): (&QueueName, &ExchangeName),
        interrupt: &Interrupt,
        tell: impl Fn(u64, Option<u64>),
    ) -> Result<(), Setback> {
        let settled = match (self.broker.broker().is_cluster().await, std::mem::replace(&mut self.has_settled, true)) {
            (true, _) => SETTLED_ON_A_CLUSTER,
            (false, false) => SETTLED,
            // An application that binds it again and again is outrun only without a pause.
            (false, true) => Duration::ZERO,
        };
        let mut pace = Pace::new(self.means.patience);
        let mut looked = Instant::now();
        loop {
            self.broker.check()?;
            if interrupt.is_requested() {
                return Err(Setback::Interrupted);
            }
            let Some(live) = self.live(from).await? else {
                let reason = "it was deleted meanwhile".to_owned();
                return Err(Setback::Again(BrokerError::NotMoved { queue: from.clone(), reason }));
            };
            let is_ours = self.current.as_ref().is_some_and(|current| current.from == *from);
            let theirs = self.without_ours(live.consumers.as_deref().unwrap_or_default(), is_ours);
            let mut refused = None;
            let wants_mover = theirs.is_empty() || pace.has_stalled() || pace.is_half_over();
            if !is_ours && wants_mover && live.messages != Some(0) {
                refused = match self.start(from, to, false).await {
                    Ok(()) => None,
                    Err(fault) => Some(setback(from, fault)?),
                };
            }
            let (progress, fault) = self.progress().await?;
            let in_flight = progress.as_ref().map_or(0, |progress| progress.in_flight);
            if let Some(fault) = fault {
                refused = Some(setback(from, fault)?);
            }
            let moved = self.moved_with(progress.as_ref());
            tell(moved, live.messages);
            pace.saw(live.messages, moved);
            if in_flight == 0 && pace.is_empty_for(settled) {
                return Ok(());
            }
            // What an application bound meanwhile is taken away again; else it would never get empty.
            if pace.is_level() && looked.elapsed() >= BINDINGS {
                looked = Instant::now();
                self.unbound(from).await?;
            }
            if let Some(moved) = pace.is_fed() {
                let reason = format!(
                    "messages come to it as fast as they are taken ({moved} of them): through the default exchange or as \
                     dead letters, which cannot be redirected"
                );
                return Err(Setback::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            if pace.is_over() {
                let reason = held_by(&live, &theirs, refused.as_ref());
                return Err(Setback::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
            }
            sleep(POLL).await;
        }
    }

    /// Fails when something leads to the queue: whoever bound it did so meanwhile.
    pub(super) async fn unbound(&self, queue: &QueueName) -> Result<(), Setback> {
        let (bindings, _) = self.broker.broker().bindings(self.broker.vhost()).await?;
        bindings.into_iter().find(|binding| binding.touches_queue(queue)).map_or(Ok(()), |binding| {
            let (object, binding) = (queue.to_string(), binding.to_string());
            Err(Setback::Again(BrokerError::BoundMeanwhile { object, binding }))
        })
    }

    /// The consumers that are not our own shovel, which is on the broker and has no address.
    fn without_ours<'c>(&self, consumers: &'c [String], is_ours: bool) -> Vec<&'c str> {
        let mut theirs: Vec<&str> = consumers.iter().map(String::as_str).collect();
        if let Some(ours) = theirs.iter().position(|peer| is_ours && self.is_shovel() && peer.is_empty()) {
            theirs.remove(ours);
        }
        theirs
    }

    /// Brings back what a holding queue holds; nobody but this mover takes from it. Where more comes, `switch` is bound
    /// as soon as next to nothing is left. `has_ticks` is for a quorum queue.
    pub(super) async fn bring_back(
        &mut self,
        (from, to, into): (&QueueName, &ExchangeName, &QueueName),
        (until, switch, has_ticks): (Level, Option<&Binding>, bool),
        tell: impl Fn(u64, Option<u64>),
    ) -> Result<(), Setback> {
        let mut pace = Pace::new(self.means.patience.max(LONG_ENOUGH));
        let longest = self.means.patience.max(LONGEST_RETURN);
        loop {
            self.broker.check()?;
            let mut refused = match self.start(from, to, true).await {
                Ok(()) => None,
                Err(fault) => Some(setback(from, fault)?),
            };
            match self.is_idle(until, switch).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => refused = Some(setback(from, error.into())?),
            }
            let Some(live) = self.live(from).await? else { return Ok(()) };
            let (progress, fault) = self.progress().await?;
            if let Some(fault) = fault {
                refused = Some(setback(from, fault)?);
            }
            let moved = self.moved_with(progress.as_ref());
            tell(moved, live.messages.filter(|_| !has_ticks));
            pace.saw(live.messages, moved);
            if self.is_shovel() && pace.is_low(until, has_ticks) {
                return Ok(());
            }
            match until {
                // It comes as fast as it is moved, or faster: the order of the last ones is lost, and nothing else.
                Level::NearlyEmpty if pace.is_not_falling() && takes_none(self.broker, into).await.is_none() => {
                    self.overtaken = live.messages;
                    return Ok(());
                }
                // A shovel counts as moved what is rejected, and tries it again: what counts is that it gets less.
                Level::Empty | Level::NearlyEmpty if pace.has_not_fallen_for(longest) => {
                    if self.is_shovel() {
                        self.returned = None;
                    }
                    let reason = takes_none(self.broker, into).await;
                    let reason = reason.unwrap_or_else(|| held_by(&live, &[], refused.as_ref()));
                    return Err(Setback::GiveUp(BrokerError::NotMoved { queue: from.clone(), reason }));
                }
                Level::Empty | Level::NearlyEmpty => sleep(POLL).await,
            }
        }
    }

    fn moved_with(&self, progress: Option<&Progress>) -> u64 {
        let now = progress.map_or(Some(0), |progress| progress.moved);
        self.moved.zip(now).map_or(0, |(before, now)| before + now)
    }
}
