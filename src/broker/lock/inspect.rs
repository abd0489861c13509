//! Reads the lock of a vhost without taking it, and deletes one whose holder does not end.

use super::{Holder, LEASE, Lock, Other, Seen};
use crate::broker::{Broker, BrokerError};
use crate::model::{BrokerVersion, QueueName, VhostName};
use std::time::Duration;
use tokio::time::Instant;

/// A lock that is held, as far as the broker shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The holder in its own words; of a queue that topo did not declare, what it is instead.
    pub holder: String,
    /// How long it outlives its holder; `None` without an expiry.
    pub lease: Option<Duration>,
    /// The node of its queue.
    pub node: Option<String>,
    /// Whether that node is up; `None` where this user may not see it (tag `monitoring`).
    pub node_is_up: Option<bool>,
    token: Option<String>,
}

impl HeldLock {
    /// Whether topo declared it. Other queues of that name may hold messages.
    pub fn is_of_topo(&self) -> bool {
        self.token.is_some()
    }
}

impl Broker {
    /// The lock of a vhost, if it is held. The vhost must exist: the broker answers the same (404) for both.
    pub async fn held_lock(&self, vhost: &VhostName, queue: &QueueName) -> Result<Option<HeldLock>, BrokerError> {
        // A new holder has a new token, so no lock is taken for its own.
        let lock = Lock {
            broker: self.clone(),
            vhost: vhost.clone(),
            queue: queue.clone(),
            holder: Holder::new(""),
            durable: true,
        };
        let Seen::Others(Other { words: holder, token, node, lease }) = lock.look().await? else { return Ok(None) };
        let node_is_up = match &node {
            Some(node) => self.is_up(node).await,
            None => None,
        };
        Ok(Some(HeldLock { holder, lease, node, node_is_up, token }))
    }

    /// Deletes that lock, and no other that came in its place. Returns the lock that is held then, which is another one.
    ///
    /// The right to delete it is a lock of its own, held in the words of `holder`: of two runs that break the same lock, one
    /// does not delete the lock of a third one.
    pub async fn break_lock(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        (holder, version): (Holder, BrokerVersion),
        held: &HeldLock,
    ) -> Result<Option<HeldLock>, BrokerError> {
        let durable = version.is_at_least(4, 0);
        let lock = Lock { broker: self.clone(), vhost: vhost.clone(), queue: queue.clone(), holder, durable };
        let deadline = Instant::now() + LEASE;
        loop {
            match self.held_lock(vhost, queue).await? {
                Some(now) if now.token == held.token => {
                    if Instant::now() >= deadline {
                        let down = now.node.filter(|_| now.node_is_up == Some(false));
                        return Err(BrokerError::LockHeld {
                            vhost: lock.vhost,
                            queue: lock.queue,
                            holder: now.holder,
                            down,
                        });
                    }
                    match lock.take_away(held.token.as_deref()).await {
                        // A user may be allowed to configure the lock alone.
                        Err(BrokerError::AccessRefused { .. }) => lock.delete_of(held.token.as_deref()).await?,
                        done => done?,
                    }
                }
                other => return Ok(other),
            }
        }
    }
}
