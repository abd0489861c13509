//! Moves messages from a queue through a fanout exchange to another queue, and detects when all messages have been
//! moved.

mod concurrent_changes;
mod drain;
pub(super) mod length_limit;
pub(super) mod return_messages;

use super::step_failure::{StepFailure, classify_fault};
use crate::apply::outcome::Missing;
use crate::apply::request::ApplyResources;
use crate::broker::transport::{AmqpTransport, Fault, Move, Order, Progress, ShovelTransport, State, Transport};
use crate::broker::{BrokerError, LockedBroker};
use crate::model::naming::MigrationNames;
use crate::model::{BrokerVersion, ExchangeName, QueueName};
use crate::plan::{Migration, QueueActivity};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The pause between two checks of a queue.
const POLL: Duration = Duration::from_millis(300);
/// The pause between two checks of a transport that is about to end.
const END_POLL: Duration = Duration::from_millis(1);
/// The maximum time to wait for a transport to stop. AMQP takes up to 20 s to finish moving the messages in transit,
/// and a shovel takes up to 30 s to disappear.
const MAX_STOP_TIME: Duration = Duration::from_secs(60);
/// The maximum time to wait for a blocked transport to stop. During an alarm, messages in transit make no progress.
const MAX_BLOCKED_STOP_TIME: Duration = Duration::from_secs(5);
/// How long a message count must not decrease before topo treats the count as steady. A steady count means that
/// messages arrive as fast as topo moves them.
const STEADY_TIME: Duration = Duration::from_secs(10);

/// The maximum total size of the messages in transit, in bytes, estimated from the average size. For an average size of
/// up to 64 KiB, this limit does not reduce [`Order::PREFETCH`]. A message that is larger than the limit is moved on
/// its own.
const BYTES_IN_TRANSIT: u64 = 64 << 20;

/// The moves in one migration. At most one of them runs at a time.
pub(super) struct Moving<'a> {
    broker: &'a LockedBroker,
    resources: ApplyResources<'a>,
    current: Option<Current>,
    /// The total number of messages moved by completed moves; `None` if unknown.
    moved: Option<u64>,
    /// The number of messages that were moved out of the old queue, minus the messages that were moved back into the
    /// old queue to be drained again; `None` if unknown.
    drained: Option<u64>,
    /// The number of returned messages; `None` if unknown.
    returned: Option<u64>,
    /// The number of messages that returned from the queue of drained messages; `None` if unknown.
    from_drained: Option<u64>,
    /// True if drained messages returned to a queue that already contained ready messages.
    is_behind: bool,
    possible_duplicates: u64,
    /// The number of messages that were in the holding queue when new messages overtook them; `None` if unknown, or if
    /// new messages overtook none.
    reordered: Option<u64>,
    /// The maximum number of messages in transit, which is smaller for large messages.
    prefetch: u16,
    /// True if this run has previously started to drain the old queue.
    is_repeated_drain: bool,
    /// The reason why a shovel took over from AMQP; `None` if no shovel took over.
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
    /// Drains the old queue.
    Drain,
    /// Moves drained messages back to the end of the old queue, to drain them again. An interrupted run had started to
    /// return these messages.
    Redrain,
    /// Returns the messages that were drained from the old queue.
    ReturnDrained,
    /// Returns the messages that were published during the migration.
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
            is_repeated_drain: false,
            fallback: None,
        }
    }

    /// Returns the total number of messages returned by completed moves; `None` if unknown.
    pub(super) fn returned_messages(&self) -> Option<u64> {
        self.returned
    }

    /// Returns the number of messages that returned behind newer messages; `None` if there are none, or if the number
    /// is unknown.
    pub(super) fn messages_behind(&self) -> Option<u64> {
        self.from_drained.filter(|back| self.is_behind && *back > 0)
    }

    /// Returns the number of drained messages that did not return. The result is valid only after the return is
    /// complete. `None` if all messages returned, if a count is unknown, and for a shovel, whose counts are not exact.
    pub(super) fn missing_messages(&self) -> Option<Missing> {
        let (of, back) = self.drained.zip(self.from_drained).filter(|_| !self.is_shovel())?;
        of.checked_sub(back).filter(|missing| *missing > 0).map(|messages| Missing { messages, total: of })
    }

    /// Returns the number of messages that were in the holding queue when new messages overtook them; `None` if
    /// unknown, or if new messages overtook none.
    pub(super) fn reordered_messages(&self) -> Option<u64> {
        self.reordered
    }

    /// Returns the number of messages that may be duplicated.
    pub(super) fn possible_duplicates(&self) -> u64 {
        self.possible_duplicates
    }

    /// Starts a move, unless the same move is already running. Stops any other running move first.
    async fn start(&mut self, from: &QueueName, to: &ExchangeName, purpose: Purpose) -> Result<(), Fault> {
        if self.current.as_ref().is_some_and(|current| current.from == *from && current.to == *to) {
            return Ok(());
        }
        self.stop().await;
        let Some(transport) = self.resources.transport else {
            let reason = "no transport was selected".to_owned();
            return Err(BrokerError::NotMoved { queue: from.clone(), reason }.into());
        };
        // Without statistics, topo assumes that the messages are small.
        let state = self.broker.broker().queue_state(self.broker.vhost(), from).await.ok().flatten();
        let average = state.and_then(|state| state.average_bytes()).unwrap_or(0);
        self.prefetch = self.prefetch.min(prefetch(average));
        let reports_empty = purpose != Purpose::Drain;
        let order = Order { prefetch: self.prefetch, reports_empty, ..Order::new(from, to) };
        let handle = match (transport, &self.fallback) {
            (Transport::AmqpOrShovel(_, shovel), Some(_)) => Move::Shovel(shovel.start(order).await?),
            (Transport::Amqp(_) | Transport::AmqpOrShovel(..) | Transport::Shovel(_), _) => {
                transport.start(order).await?
            }
        };
        self.current = Some(Current { from: from.clone(), to: to.clone(), purpose, since: Instant::now(), handle });
        Ok(())
    }

    /// Stops the current move, if any, and adds its counts to the totals. Afterwards, no message is in transit, unless
    /// the stop fails or times out. In that case, uses the counts from before the stop, if known. If messages were in
    /// transit at that time, counts a whole prefetch window as possible duplicates. Returns the fault that ended the
    /// move, if any.
    pub(super) async fn stop(&mut self) -> Option<Fault> {
        let mut current = self.current.take()?;
        let before = current.handle.progress().await.ok();
        let is_blocked = before.as_ref().is_some_and(|before| before.state == State::Blocked);
        let longest = if is_blocked { MAX_BLOCKED_STOP_TIME } else { MAX_STOP_TIME };
        let (last, in_doubt) = match timeout(longest, current.handle.stop()).await {
            Ok(Ok(last)) => (last, 0),
            Ok(Err(_)) | Err(_) => match before {
                // Counts a whole prefetch window, because the last acknowledgements may also have been lost.
                Some(before) if before.in_flight > 0 => (before, self.prefetch.into()),
                Some(before) => (before, 0),
                None => return None,
            },
        };
        let add = |sum: &mut Option<u64>| *sum = sum.zip(last.moved).map(|(sum, more)| sum + more);
        add(&mut self.moved);
        match current.purpose {
            Purpose::Drain => add(&mut self.drained),
            // Usually, an earlier run drained these messages, so `drained` can be smaller than their number.
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
        match last.state {
            State::Failed(fault) => Some(fault),
            State::Moving | State::Rejected | State::Blocked | State::Reconnecting | State::Stopped => None,
        }
    }

    /// Waits up to 5 s for the transport to detect that its source no longer exists, and stops the move. Until
    /// then, the transport still uses the deleted queue.
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

    /// Returns the AMQP transport; `None` if only shovels can move messages, or if no transport was selected.
    pub(super) fn amqp(&self) -> Option<&AmqpTransport> {
        self.resources.transport.and_then(Transport::amqp)
    }

    /// Returns true if it is certain that no client except topo's transport consumes from a queue. Without AMQP, this
    /// is never certain. The broker reports no consumers for a quorum queue without a leader, so a count of 0 proves
    /// nothing for a quorum queue.
    pub(super) async fn has_no_other_consumers(&self, queue: &QueueName, is_quorum: bool) -> bool {
        let has_transport = self.current.as_ref().is_some_and(|current| current.from == *queue);
        match self.amqp() {
            Some(amqp) if has_transport || !is_quorum => {
                let counted = amqp.queue_counts(queue).await.ok().flatten();
                counted.is_some_and(|counted| counted.consumers == u32::from(has_transport))
            }
            Some(_) | None => false,
        }
    }

    /// Returns true if shovels move the messages.
    pub(super) fn is_shovel(&self) -> bool {
        self.fallback.is_some() || matches!(self.resources.transport, Some(Transport::Shovel(_)))
    }

    /// Removes the shovels that were left behind by killed runs of this migration, even if the current transport is
    /// AMQP. These shovels would continue to move messages, and would declare a deleted queue again. A shovel that the
    /// connected user cannot remove blocks the plan. Does nothing while a move of this migration is in progress.
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
                // A user who is not allowed to see shovels can still use AMQP. Without the plugin, no shovels exist.
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

    /// Returns the current message counts and consumers of a queue; `None` if the queue does not exist.
    pub(super) async fn queue_activity(&self, queue: &QueueName) -> Result<Option<QueueActivity>, BrokerError> {
        Ok(self.broker.broker().activity(self.broker.vhost()).await?.queues.remove(queue))
    }

    /// Returns the progress of the current move, and the fault that blocks the move or has ended the move. The progress
    /// is `None` if no move is running. Stops a failed move.
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

    /// Returns the maximum time without progress. `has_ticks` is true for a quorum queue, whose counts change only at
    /// its ticks.
    fn drain_timeout(&self, has_ticks: bool) -> Duration {
        let drain_timeout = self.resources.drain_timeout;
        if has_ticks { self.broker.broker().intervals().drain_timeout(drain_timeout) } else { drain_timeout }
    }

    /// Returns the maximum age of a quorum queue's counts; `None` if `has_ticks` is false.
    fn tick(&self, has_ticks: bool) -> Option<Duration> {
        has_ticks.then(|| self.broker.broker().intervals().tick())
    }

    /// Handles a fault. Returns the fault if the fault can clear on its own, or if a shovel takes over because AMQP
    /// cannot carry a message. Otherwise, returns a step failure.
    async fn handle_fault(&mut self, from: &QueueName, fault: Fault) -> Result<Fault, StepFailure> {
        let Fault::NotCarried { reason } = &fault else { return classify_fault(from, fault) };
        let advice = match self.resources.transport {
            Some(Transport::AmqpOrShovel(_, shovel)) => match shovel.check().await {
                Ok(()) => {
                    self.fallback = Some(reason.clone());
                    return Ok(fault);
                }
                Err(why) => format!("a shovel cannot take over: {why}"),
            },
            Some(Transport::Amqp(_) | Transport::Shovel(_)) | None => "use `--transport shovel`".to_owned(),
        };
        classify_fault(from, Fault::NotCarried { reason: format!("{reason}; {advice}") })
    }

    /// Returns the reason why a shovel took over from AMQP; `None` if no shovel took over.
    pub(super) fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Returns the total number of messages moved so far, including by the current move; 0 if unknown.
    fn total_moved(&self, progress: Option<&Progress>) -> u64 {
        let now = progress.map_or(Some(0), |progress| progress.moved);
        self.moved.zip(now).map_or(0, |(before, now)| before + now)
    }
}

/// Returns the maximum number of messages in transit. `average` is the average message size in bytes.
fn prefetch(average: u64) -> u16 {
    let fitting = BYTES_IN_TRANSIT.checked_div(average).unwrap_or(u64::MAX);
    u16::try_from(fitting).unwrap_or(u16::MAX).clamp(1, Order::PREFETCH)
}
