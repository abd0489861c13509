//! Opens a dead-letter queue for a run: connects over AMQP, acquires the lock, and counts the messages.

use super::error::DlqError;
use super::state::VhostState;
use crate::broker::transport::{AmqpTransport, ProcessOrder, RunLock};
use crate::broker::{Access, BrokerError};
use crate::model::{QueueName, QueueType};

/// The memory for messages that topo has received but not processed yet, in bytes.
const MAX_BUFFERED: u64 = 24 << 20;
/// The assumed size of a message if the broker does not report it, in bytes.
const ASSUMED_BYTES: u64 = 4 << 10;
/// The minimum number of messages that topo holds, whatever their size.
const MIN_HELD: u64 = 16;
/// The argument of a queue with a single active consumer.
const SINGLE_ACTIVE_CONSUMER: &str = "x-single-active-consumer";
/// The reply code for an exclusive queue of another connection.
const RESOURCE_LOCKED: u16 = 405;

/// A dead-letter queue that no other run changes.
pub(super) struct Opened {
    pub(super) transport: AmqpTransport,
    pub(super) lock: RunLock,
    pub(super) order: ProcessOrder,
}

impl Opened {
    /// Opens a queue. Holds at most `hold` messages. Each of this run and an apply refuses to start while the other is
    /// running: the run acquires its lock before it reads the lock of the vhost, and an apply does the opposite.
    pub(super) async fn open(
        access: &Access,
        state: &VhostState,
        queue: &QueueName,
        (hold, window): (u32, u16),
    ) -> Result<Self, DlqError> {
        let vhost = &state.snapshot.topology.vhost;
        state.refuse_during_apply(access).await?;
        let transport = access.amqp(vhost).await.map_err(|reason| DlqError::Amqp { reason })?;
        let lock = match transport.lock_run(queue).await {
            Ok(lock) => lock,
            Err(error) => {
                transport.close().await;
                let is_locked = matches!(error, BrokerError::Refused { status: RESOURCE_LOCKED, .. });
                return Err(if is_locked { DlqError::Locked { queue: queue.clone() } } else { error.into() });
            }
        };
        if let Err(error) = state.refuse_during_apply(access).await {
            lock.release().await;
            transport.close().await;
            return Err(error.into());
        }
        let kind = state.kind(queue);
        let counted = transport.queue_counts(queue).await?.map(|counts| u64::from(counts.ready));
        let listed = state.activity.queues.get(queue).and_then(|it| it.ready).unwrap_or(0);
        // Without statistics, the size is unknown.
        let known = access.broker.queue_state(vhost, queue).await.ok().flatten().and_then(|it| it.average_bytes);
        let fitting = MAX_BUFFERED.checked_div(known.unwrap_or(ASSUMED_BYTES)).unwrap_or(u64::MAX).max(MIN_HELD);
        let prefetch = u16::try_from(fitting.min(hold.into())).unwrap_or(u16::MAX);
        let live = state.snapshot.topology.queues.get(queue);
        let has_single_consumer = live.is_some_and(|it| it.arguments.contains_key(SINGLE_ACTIVE_CONSUMER));
        let order = ProcessOrder {
            queue: queue.clone(),
            kind,
            expected: counted.unwrap_or(listed),
            prefetch,
            // A further consumer of a queue with a single active consumer receives nothing.
            hold: if has_single_consumer { u64::from(prefetch).min(hold.into()) } else { hold.into() },
            window,
            returns_by_nack: kind == Some(QueueType::Quorum) && state.snapshot.profile.version.is_at_least(4, 3),
            tap: None,
        };
        Ok(Self { transport, lock, order })
    }

    /// Returns the number of ready messages; `None` if the queue does not respond.
    pub(super) async fn ready(&self) -> Option<u64> {
        self.transport.queue_counts(&self.order.queue).await.ok().flatten().map(|counts| u64::from(counts.ready))
    }

    /// Releases the lock, and closes the connection.
    pub(super) async fn close(self) {
        self.lock.release().await;
        self.transport.close().await;
    }
}
