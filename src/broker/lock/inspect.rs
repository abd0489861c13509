//! Reads a vhost's lock without acquiring the lock, detects locks whose process has ended, and deletes a lock on
//! request.

use super::{HOLDER, Holder, LEASE, Lock, LockState, OtherLock};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::broker::redact::sanitize;
use crate::model::{BrokerVersion, QueueName, Topology, VhostName};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A held lock, as the broker reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// A description of the holder, or of a queue that topo did not create.
    pub holder: String,
    /// The time after which the lock expires unless it is renewed; `None` if the queue does not expire.
    pub lease: Option<Duration>,
    /// The node that hosts the queue; `None` if the broker does not report the node.
    pub node: Option<String>,
    /// Whether the node is running; `None` if unknown, for example because the connected user does not have the
    /// `monitoring` tag.
    pub node_is_up: Option<bool>,
    token: Option<String>,
}

impl HeldLock {
    /// Returns true if topo created the queue. A queue that topo did not create may contain messages.
    pub fn is_created_by_topo(&self) -> bool {
        self.token.is_some()
    }
}

impl Broker {
    /// Returns the lock on an existing vhost; `None` if the lock is free. Also returns `None` for a missing vhost,
    /// because the broker returns 404 in both cases.
    pub async fn held_lock(&self, vhost: &VhostName, queue: &QueueName) -> Result<Option<HeldLock>, BrokerError> {
        // A new holder has a new token, so every existing lock belongs to another holder.
        let lock = Lock {
            broker: self.clone(),
            vhost: vhost.clone(),
            queue: queue.clone(),
            holder: Holder::new(""),
            durable: true,
        };
        let LockState::Others(OtherLock { description: holder, token, node, lease }) = lock.read().await? else {
            return Ok(None);
        };
        let node_is_up = match &node {
            Some(node) => self.is_up(node).await,
            None => None,
        };
        Ok(Some(HeldLock { holder, lease, node, node_is_up, token }))
    }

    /// Deletes the lock `held`, but not a lock that has replaced `held`. Returns the lock that another run has acquired
    /// since `held` was read; `None` if no run has acquired the lock.
    ///
    /// `holder` acquires a second lock for the deletion. Without the second lock, two runs that break the same lock
    /// could delete the lock of a third run.
    ///
    /// # Errors
    /// [`BrokerError::LockHeld`] if `held` still exists after the duration of a lease.
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
                    match lock.delete_exclusively(held.token.as_deref()).await {
                        // The user may have permission to configure the lock, but not the second lock.
                        Err(BrokerError::AccessRefused { .. }) => lock.delete_if_token(held.token.as_deref()).await?,
                        done => done?,
                    }
                }
                other => return Ok(other),
            }
        }
    }
}

/// A topo process on a machine, as a lock holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    user: String,
    host: String,
    id: u32,
}

impl Process {
    /// Returns the current process, which `user` runs on `host`.
    pub fn new(user: impl Into<String>, host: impl Into<String>) -> Self {
        Self { user: user.into(), host: host.into(), id: std::process::id() }
    }

    /// Returns a holder description with the current time, such as `me@host, pid 4711, since 2026-11-20T12:00:00Z`.
    pub fn description(&self) -> String {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        format!("{}@{}, pid {}, since {now}", self.user, self.host, self.id)
    }

    /// Returns the holder's description if another apply holds a lock in `topology`. Ignores the locks of this process.
    /// If this machine has `/proc`, also ignores unexpired locks of processes that have ended on this machine.
    pub fn other_holder(&self, topology: &Topology) -> Option<String> {
        let description = topology.queues.values().find_map(|queue| queue.arguments.get(HOLDER)?.as_text())?;
        let own = self.description();
        let (Some((host, id)), Some((here, own_id))) = (host_and_id(description), host_and_id(&own)) else {
            return Some(sanitize(description));
        };
        let has_ended = || Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{id}")).exists();
        let is_free = host == here && (id == own_id || has_ended());
        (!is_free).then(|| sanitize(description))
    }
}

/// Parses the host and the process ID from a holder description.
fn host_and_id(description: &str) -> Option<(&str, u32)> {
    let (machine, rest) = description.split_once(", pid ")?;
    let (_, host) = machine.split_once('@')?;
    Some((host, rest.split(',').next()?.parse().ok()?))
}
