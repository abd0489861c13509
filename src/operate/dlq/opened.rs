//! Opens a dead-letter queue for a run: connects over AMQP, acquires the lock, and counts the messages.

use super::error::DlqError;
use super::hazard::Hazard;
use super::hazards::{self, returns_uncounted};
use super::state::VhostState;
use crate::broker::transport::{
    AmqpTransport, MAX_CONSUMERS, MessageHandler, Observer, ProcessCounts, ProcessEnd, ProcessOrder, Processed,
    QueueCounts, RunLock,
};
use crate::broker::{Access, BrokerError};
use crate::model::{Queue, QueueName, QueueType};
use std::time::{Duration, Instant};

/// The default limit on the memory for messages that topo has received but not yet processed, in bytes.
const DEFAULT_BUFFERED: u64 = 64 << 20;
/// The limit on this memory, in bytes, if all consumers together cannot hold the queue's messages within
/// [`DEFAULT_BUFFERED`]. This limit is sufficient for a million messages of 1 KB.
const MAX_BUFFERED: u64 = 112 << 20;
/// The memory for a received message in addition to its body, in bytes: properties and partly filled buffers. In a test
/// with 25,000 bodies of 1 KB each, topo used 3.1 KiB for each message.
const OVERHEAD: u64 = 2 << 10;
/// The assumed size of a body if the broker does not report it, in bytes.
const ASSUMED_BYTES: u64 = 4 << 10;
/// The number of messages that topo may always hold, even if they exceed the memory limit.
const MIN_HELD: u64 = 16;
/// The maximum time to wait for the queue to contain the returned messages again.
const MAX_RETURN_WAIT: Duration = Duration::from_secs(30);
/// How long the number of ready messages must remain unchanged before topo stops waiting. By then, the missing
/// messages have probably expired or been consumed.
const MAX_UNCHANGED: Duration = Duration::from_secs(2);
/// The maximum time to wait for the broker to remove the consumers of a closed connection. Only then does a quorum
/// queue requeue their messages. Messages that are requeued during a run end up behind the messages that the run holds.
const MAX_LEFTOVER_WAIT: Duration = Duration::from_secs(5);
/// The interval between two counts while topo waits.
const RETURN_INTERVAL: Duration = Duration::from_millis(100);
/// The reply code for a queue that is exclusive to another connection.
const RESOURCE_LOCKED: u16 = 405;

/// A dead-letter queue that is locked for a run, with the connection to the broker.
pub(super) struct Opened {
    pub(super) transport: AmqpTransport,
    pub(super) lock: RunLock,
    /// The locks on the targets of a replay.
    targets: Vec<RunLock>,
    /// Receives the messages that are dead-lettered to the queue during the run; `None` if the run does not observe
    /// them.
    observer: Option<Observer>,
    pub(super) order: ProcessOrder,
    /// The number of other consumers that the management API lists.
    listed_consumers: u64,
}

/// The limits on the unacknowledged messages that topo holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimits {
    /// The maximum number of messages that are held at the same time.
    pub messages: u32,
    /// The time after which topo requeues the held messages. This time must be shorter than the broker's
    /// `consumer_timeout` (30 minutes by default, 15 minutes in 3.8.15 and 3.8.16), after which the broker closes the
    /// channel.
    pub time: Duration,
}

impl HoldLimits {
    /// The limits of a run that receives no messages.
    pub(super) const NONE: Self = Self { messages: 1, time: Duration::ZERO };
}

impl Opened {
    /// Opens a queue. A run does not start during an apply, and an apply does not start during a run. A run acquires
    /// its own lock and then checks the lock of the vhost. An apply uses the reverse order.
    ///
    /// # Errors
    /// Returns an error if an apply is in progress, AMQP is not available, another `topo dlq` command is using the
    /// queue, or the queue has consumers that the statistics do not list and the hazard is not allowed.
    pub(super) async fn open(
        access: &Access,
        state: &VhostState,
        queue: &QueueName,
        (hold, window): (HoldLimits, u16),
        allowed: &[Hazard],
    ) -> Result<Self, DlqError> {
        let vhost = &state.snapshot.topology.vhost;
        state.refuse_during_apply(access).await?;
        let transport = access.amqp(vhost).await.map_err(|reason| DlqError::Amqp { reason })?;
        let lock = match transport.lock_run(queue).await {
            Ok(lock) => lock,
            Err(error) => {
                transport.close().await;
                return Err(if is_locked(&error) { DlqError::Locked { queue: queue.clone() } } else { error.into() });
            }
        };
        let kind = state.kind(queue);
        let listed_consumers = state.consumers(queue).unwrap_or(0);
        let checked = async {
            state.refuse_during_apply(access).await?;
            let counts = settled_counts(&transport, queue, listed_consumers).await?;
            let consumers = counts.map_or(0, |counts| u64::from(counts.consumers));
            if consumers > listed_consumers {
                hazards::refuse(vec![hazards::of_other_consumers(queue, consumers)], allowed)?;
            }
            Ok(counts)
        };
        let counts: Option<QueueCounts> = match checked.await {
            Ok(counts) => counts,
            Err(error) => {
                lock.release().await;
                transport.close().await;
                return Err(error);
            }
        };
        let counted = counts.map(|counts| u64::from(counts.ready));
        let listed = state.activity.queues.get(queue).and_then(|it| it.ready).unwrap_or(0);
        // Without statistics, the size is unknown.
        let known = access.broker.queue_state(vhost, queue).await.ok().flatten().and_then(|it| it.average_bytes());
        let live = state.snapshot.topology.queues.get(queue);
        let has_single_consumer = live.is_some_and(Queue::has_single_active_consumer);
        let others = usize::try_from(listed_consumers).unwrap_or(usize::MAX);
        let max_consumers = if has_single_consumer { 1 } else { MAX_CONSUMERS.saturating_sub(others).max(1) };
        let expected = counted.unwrap_or(listed);
        let each = known.unwrap_or(ASSUMED_BYTES).saturating_add(OVERHEAD);
        let fitting = |bytes: u64| (bytes / each).max(MIN_HELD);
        let per_consumer = expected.div_ceil(max_consumers as u64);
        let prefetch = fitting(DEFAULT_BUFFERED).max(per_consumer.min(fitting(MAX_BUFFERED))).min(hold.messages.into());
        let order = ProcessOrder {
            queue: queue.clone(),
            kind,
            expected,
            prefetch: u16::try_from(prefetch).unwrap_or(u16::MAX),
            hold: hold.messages.into(),
            hold_time: hold.time,
            max_consumers,
            window,
            returns_by_nack: kind == Some(QueueType::Quorum) && returns_uncounted(state.snapshot.profile.version),
            earlier: ProcessCounts::default(),
        };
        Ok(Self { transport, lock, targets: Vec::new(), observer: None, order, listed_consumers })
    }

    /// Returns the number of ready messages; `None` if the broker does not report it.
    pub(super) async fn ready(&self) -> Option<u64> {
        self.transport.queue_counts(&self.order.queue).await.ok().flatten().map(|counts| u64::from(counts.ready))
    }

    /// Returns true if the run immediately receives messages that arrive while it is in progress.
    pub(super) fn receives_arrivals(&self) -> bool {
        receives_arrivals(self.order.expected, self.order.prefetch)
    }

    /// Also locks the target of a replay, so that no apply deletes the target and no other replay uses its temporary
    /// exchange.
    ///
    /// # Errors
    /// Another command is using the target, or the broker refuses the request.
    pub(super) async fn lock_target(&mut self, target: &QueueName) -> Result<(), DlqError> {
        match self.transport.lock_run(target).await {
            Ok(lock) => self.targets.push(lock),
            // A user who may declare only the lock of the dead-letter queue replays through an existing exchange.
            Err(BrokerError::AccessRefused { .. }) => {}
            Err(error) if is_locked(&error) => return Err(DlqError::Locked { queue: target.clone() }),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Processes the messages in the queue. When the hold time expires, the held messages return to the queue. topo
    /// starts another pass if the last pass moved messages, no message is in doubt, and the handler permits another
    /// pass.
    ///
    /// # Errors
    /// Returns an error if the first pass cannot start. In that case, topo has received no messages.
    pub(super) async fn process<H: MessageHandler>(&mut self, handler: &mut H) -> Result<Processed, BrokerError> {
        let mut order = self.order.clone();
        let mut total = self.transport.process(&order, handler, self.observer.as_mut()).await?;
        let mut moved = total.counts.moved();
        while total.end == ProcessEnd::TimeLimit && total.counts.in_doubt == 0 && moved > 0 && handler.reopen() {
            order.expected = order.expected.saturating_sub(moved);
            // The next pass receives the kept messages again.
            total.counts.received = total.counts.moved();
            order.earlier = total.counts;
            // If the connection failed, the next pass reports the error.
            let _ = settled_counts(&self.transport, &order.queue, self.listed_consumers).await;
            self.wait_for_returned(order.expected).await;
            match self.transport.process(&order, handler, self.observer.as_mut()).await {
                Ok(pass) => {
                    moved = pass.counts.moved();
                    total = Processed {
                        counts: total.counts.plus(pass.counts),
                        end: pass.end,
                        other_users: pass.other_users,
                        of_other_users: pass.of_other_users,
                    };
                }
                Err(error) => total.end = ProcessEnd::Failed(error),
            }
        }
        Ok(total)
    }

    /// Binds the lock queue to the exchanges to which the dead-letter queue is bound, and observes the messages that
    /// are dead-lettered.
    ///
    /// # Errors
    /// The user is not allowed to bind or read the queue.
    pub(super) async fn observe(&mut self, state: &VhostState) -> Result<(), BrokerError> {
        for binding in state.bindings_of(&self.order.queue) {
            self.lock.bind(binding).await?;
        }
        self.observer = Some(self.lock.observer().await?);
        Ok(())
    }

    /// Waits until the queue contains at least `expected` ready messages, or until the number no longer changes. After
    /// topo closes the channel, a busy broker takes some time to requeue many messages. Returns the last count of
    /// ready messages; `None` if the broker does not report it.
    pub(super) async fn wait_for_returned(&self, expected: u64) -> Option<u64> {
        let started = Instant::now();
        let (mut last, mut changed) = (None, started);
        while started.elapsed() < MAX_RETURN_WAIT && changed.elapsed() < MAX_UNCHANGED {
            let ready = self.ready().await;
            if ready.is_some_and(|ready| ready >= expected) {
                return ready;
            }
            if ready != last {
                (last, changed) = (ready, Instant::now());
            }
            tokio::time::sleep(RETURN_INTERVAL).await;
        }
        last
    }

    /// Releases all locks, and closes the connection.
    pub(super) async fn close(self) {
        for lock in self.targets.into_iter().chain([self.lock]) {
            lock.release().await;
        }
        self.transport.close().await;
    }
}

/// Returns true if the first consumer can hold twice as many messages as the queue contains. A run on such a queue
/// immediately receives messages that arrive.
pub(super) fn receives_arrivals(messages: u64, prefetch: u16) -> bool {
    messages <= u64::from(prefetch) / 2
}

/// Waits until the broker has removed the consumers of closed channels and connections, for at most
/// [`MAX_LEFTOVER_WAIT`]. Returns the counts of the queue; `None` if the broker does not report them.
async fn settled_counts(
    transport: &AmqpTransport,
    queue: &QueueName,
    listed_consumers: u64,
) -> Result<Option<QueueCounts>, BrokerError> {
    let started = Instant::now();
    loop {
        let counts = transport.queue_counts(queue).await?;
        let has_more = counts.is_some_and(|counts| u64::from(counts.consumers) > listed_consumers);
        if !has_more || started.elapsed() >= MAX_LEFTOVER_WAIT {
            return Ok(counts);
        }
        tokio::time::sleep(RETURN_INTERVAL).await;
    }
}

fn is_locked(error: &BrokerError) -> bool {
    matches!(error, BrokerError::Refused { status: RESOURCE_LOCKED, .. })
}
