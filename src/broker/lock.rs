//! The lock that an apply acquires on a vhost. The lock is a queue in the vhost, and is held as long as the queue
//! exists. Queue arguments identify the holder.
//!
//! If a GET finds no queue, topo declares the queue with a PUT, and reads the holder with a second GET. The response to
//! the PUT does not identify the holder, because several concurrent PUTs can return 201 (7 of 8 on 3.10.8). A later PUT
//! from another run returns 204 and does not change the arguments, because the broker does not compare unknown
//! arguments. After its own PUT, every run reads the same holder.
//!
//! `x-expires` is the lease. A PUT renews the lease, because the broker treats a declaration as use of the queue. The
//! lock of a crashed run expires. A cluster can lose the node of a classic queue. The lock is nevertheless a classic
//! queue, because a PUT does not renew the lease of a quorum queue (observed on 3.10.8 and 4.3.6).
//!
//! If the node of a durable queue is down, 3.x can neither declare nor delete the queue until the node returns. A
//! transient queue disappears immediately, so the lock is transient on 3.x. On RabbitMQ 4.0 and later, the lock is
//! durable. If the queue's node is down, the broker lists the queue as if the node were running. The broker then
//! neither renews nor expires the queue, but can delete it. topo deletes such a lock after the node has been down for
//! the duration of a lease. By that time, the holder will have detected the loss.
//!
//! A second lock serializes these deletes. A DELETE cannot specify the holder, so without the second lock, one run
//! could delete the new lock of another run.

mod holder;
mod inspect;

pub use holder::Holder;
pub use inspect::{HeldLock, Process};

use super::connection::Broker;
use super::deletion::{Performed, accept_not_found};
use super::error::BrokerError;
use super::guard::OnProof;
use super::redact::sanitize;
use super::wire::{ClusterNode, LockQueue};
use crate::model::{ArgumentValue, Arguments, BrokerVersion, Queue, QueueName, VhostName};
use crate::plan::Action;
use crate::plan::request::{Request, path, request};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The time after which the lock of a killed run expires.
pub const LEASE: Duration = Duration::from_secs(60);
/// The interval between renewals. Three renewals can fail before the lease expires.
const RENEWAL: Duration = Duration::from_secs(15);
/// The interval between checks of a lock that another apply holds.
const POLL: Duration = Duration::from_secs(1);
/// The suffix of the second lock, which serializes the deletion of a lock.
const DELETION_SUFFIX: &str = ".topo.deleting";
/// The queue argument that contains the holder's description.
const HOLDER: &str = "x-topo-holder";
/// The queue argument that distinguishes holders with the same description.
const TOKEN: &str = "x-topo-token";

/// The mutex that serializes renewals and the release.
type RenewalMutex = tokio::sync::Mutex<()>;

/// The reason for a loss that topo detects by a timeout instead of a response.
const EXPIRED: &str = "it could not be renewed before it expired";

/// A broker client for a vhost that this run has locked. If [`Self::release`] is not called, the lock expires with its
/// lease.
#[derive(Debug)]
pub struct LockedBroker {
    lock: Lock,
    lost: Arc<OnceLock<String>>,
    /// The time at which the lock expires unless it is renewed. A process that was suspended uses this time to detect
    /// the loss.
    held_until: Arc<Mutex<Instant>>,
    mutex: Arc<RenewalMutex>,
    renewal: JoinHandle<()>,
}

/// The data required to declare, renew and delete a lock.
#[derive(Clone, Debug)]
struct Lock {
    broker: Broker,
    vhost: VhostName,
    queue: QueueName,
    holder: Holder,
    durable: bool,
}

/// The state of a lock, as read from the broker.
enum LockState {
    Free,
    Ours,
    Others(OtherLock),
}

/// The lock of another apply.
struct OtherLock {
    description: String,
    token: Option<String>,
    /// The node that hosts the lock's queue.
    node: Option<String>,
    lease: Option<Duration>,
}

impl Broker {
    /// Locks an existing vhost, and starts a tokio task that renews the lock. `version` is the broker's version.
    ///
    /// While another apply holds the lock, checks the lock every second. Deletes a lock whose node has been down for
    /// the duration of a lease. Only a user with the `monitoring` tag can see whether a node is down.
    ///
    /// # Errors
    /// [`BrokerError::LockHeld`] if another apply still holds the lock after `lock_timeout`, or if `give_up` returns
    /// true for the holder's description.
    pub async fn lock(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        (holder, version): (Holder, BrokerVersion),
        lock_timeout: Duration,
        give_up: impl Fn(&str) -> bool,
    ) -> Result<LockedBroker, BrokerError> {
        let durable = version.is_at_least(4, 0);
        let lock = Lock { broker: self.clone(), vhost: vhost.clone(), queue: queue.clone(), holder, durable };
        let deadline = Instant::now() + lock_timeout;
        // The time at which the last PUT was sent. The broker starts the lease later.
        let mut put: Option<Instant> = None;
        let mut down_since: Option<(Instant, Option<String>)> = None;
        let put_at = loop {
            let step = match (lock.read().await, put) {
                (Ok(LockState::Ours), Some(at)) => break at,
                (Ok(LockState::Others(OtherLock { description: holder, token, node, .. })), _) => {
                    // Without a token, the queue is not a topo lock and may contain messages.
                    let down = match &token {
                        Some(_) => self.node_if_down(node).await,
                        None => None,
                    };
                    // If another holder has acquired the lock, the measurement of the downtime starts again.
                    down_since = down_since.filter(|(_, previous)| down.is_some() && *previous == token);
                    if down.is_some() && down_since.is_none() {
                        down_since = Some((Instant::now(), token.clone()));
                    }
                    if down_since.as_ref().is_some_and(|(since, _)| since.elapsed() >= LEASE) {
                        lock.delete_exclusively(token.as_deref()).await
                    } else if Instant::now() >= deadline || give_up(&holder) {
                        return Err(BrokerError::LockHeld { vhost: lock.vhost, queue: lock.queue, holder, down });
                    } else {
                        sleep(POLL.min(deadline.saturating_duration_since(Instant::now()))).await;
                        Ok(())
                    }
                }
                (Ok(LockState::Free | LockState::Ours), _) => {
                    put = Some(Instant::now());
                    lock.put().await.map(|_| ())
                }
                (Err(error), _) => Err(error),
            };
            if let Err(error) = step {
                // The broker may have created the lock. Without a release, the next apply would wait for it to expire.
                if put.is_some() {
                    let _ = timeout(LEASE, lock.release()).await;
                }
                return Err(error);
            }
        };
        let lost = Arc::new(OnceLock::new());
        let held_until = Arc::new(Mutex::new(put_at + LEASE));
        let mutex = Arc::default();
        let renewal = tokio::spawn(keep_renewed(lock.clone(), lost.clone(), held_until.clone(), Arc::clone(&mutex)));
        Ok(LockedBroker { lock, lost, held_until, mutex, renewal })
    }

    /// Returns `node` if the broker reports that the node is down.
    async fn node_if_down(&self, node: Option<String>) -> Option<String> {
        let node = node?;
        (self.is_up(&node).await == Some(false)).then_some(node)
    }

    /// Returns whether a node is running; `None` if unknown.
    async fn is_up(&self, node: &str) -> Option<bool> {
        let nodes: Vec<ClusterNode> = self.get("/api/nodes?columns=name,running").await.ok()?;
        nodes.iter().find(|one| one.name == node).map(|one| one.running)
    }
}

impl LockedBroker {
    /// Returns the broker, for reading.
    pub fn broker(&self) -> &Broker {
        &self.lock.broker
    }

    /// Returns the locked vhost.
    pub fn vhost(&self) -> &VhostName {
        &self.lock.vhost
    }

    /// Returns true if this run has lost the lock and must not make further changes.
    pub fn is_lost(&self) -> bool {
        self.loss_reason().is_some()
    }

    /// Returns [`BrokerError::LockLost`] if this run has lost the lock.
    pub fn check(&self) -> Result<(), BrokerError> {
        match self.loss_reason() {
            None => Ok(()),
            Some(reason) => Err(BrokerError::LockLost { vhost: self.lock.vhost.clone(), reason }),
        }
    }

    /// Returns the reason why this run has lost the lock; `None` if this run still holds the lock. Also checks the
    /// expiry time, because a process that was suspended for longer than the lease may continue before the renewal task
    /// detects the loss.
    fn loss_reason(&self) -> Option<String> {
        let has_expired = || Instant::now() >= *self.held_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.get().cloned().or_else(|| has_expired().then(|| EXPIRED.to_owned()))
    }

    /// Reads the lock from the broker to detect a loss before the next renewal.
    ///
    /// # Errors
    /// [`BrokerError::LockLost`] if this run has lost the lock.
    pub async fn confirm(&self) -> Result<(), BrokerError> {
        self.check()?;
        let reason = match self.lock.read().await? {
            LockState::Ours => return Ok(()),
            LockState::Free => "it had expired or was deleted".to_owned(),
            LockState::Others(other) => format!("it is held by {}", other.description),
        };
        // The renewal may have detected the loss first.
        let _ = self.lost.set(reason);
        self.check()
    }

    /// Performs an action in the locked vhost if this run still holds the lock; see [`Broker::perform`].
    pub async fn perform(&self, action: &Action) -> Result<Performed, BrokerError> {
        self.check()?;
        self.lock.broker.perform(&self.lock.vhost, action).await
    }

    /// Performs an action like [`Self::perform`], and calls `observe` while the proof of a delete guard waits for
    /// ticks.
    pub async fn perform_observed(&self, action: &Action, observe: OnProof<'_>) -> Result<Performed, BrokerError> {
        self.check()?;
        self.lock.broker.perform_observed(&self.lock.vhost, action, observe).await
    }

    /// Releases the lock. Does not delete a lock that another apply has acquired.
    ///
    /// Retries after transient errors until the lease expires or 15 s have passed, whichever is later. A lock whose
    /// node is down does not expire with its lease.
    pub async fn release(self) -> Result<(), BrokerError> {
        // A renewal in progress could reach the broker after the delete and create the lock again. Every renewal ends
        // by the time the lease expires.
        let _renewal = self.mutex.lock().await;
        self.renewal.abort();
        let held_until = *self.held_until.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let deadline = held_until.max(started + RENEWAL);
        timeout_at(deadline, self.lock.release()).await.unwrap_or_else(|_| {
            let (url, request) = (self.lock.broker.shown_url(), Request::delete(self.lock.path()).to_string());
            Err(BrokerError::Timeout { url, request, after: Duration::from_secs((deadline - started).as_secs()) })
        })
    }
}

impl Drop for LockedBroker {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Lock {
    fn path(&self) -> String {
        path("queues", &[self.vhost.as_str(), self.queue.as_str()])
    }

    async fn read(&self) -> Result<LockState, BrokerError> {
        self.broker.retrying(|| self.read_once()).await
    }

    async fn read_once(&self) -> Result<LockState, BrokerError> {
        let request = Request::get(self.path() + "?disable_stats=true");
        let listed: LockQueue = match self.broker.send_once(&request).await {
            Ok(answer) => answer.json(&request)?,
            Err(BrokerError::NotFound { .. }) => return Ok(LockState::Free),
            Err(error) => return Err(error),
        };
        let text = |name: &str| listed.arguments.get(name).and_then(|value| value.as_text());
        let (description, token) = (text(HOLDER), text(TOKEN));
        if token == Some(&self.holder.token) {
            return Ok(LockState::Ours);
        }
        let unknown_queue = || format!("a queue named `{}` that topo did not create", self.queue);
        Ok(LockState::Others(OtherLock {
            description: description.map_or_else(unknown_queue, sanitize),
            token: token.map(str::to_owned),
            node: listed.node.clone(),
            lease: listed.arguments.get("x-expires").and_then(lease),
        }))
    }

    /// Declares the queue or renews its lease. Returns true if the queue did not exist.
    async fn put(&self) -> Result<bool, BrokerError> {
        let lease = i64::try_from(LEASE.as_millis()).expect("a minute in milliseconds is a small number");
        let arguments: Arguments = [
            // Without this argument, the queue could be a quorum queue by default, which takes seconds to start.
            ("x-queue-type".to_owned(), "classic".into()),
            ("x-expires".to_owned(), lease.into()),
            (HOLDER.to_owned(), self.holder.description.as_str().into()),
            (TOKEN.to_owned(), self.holder.token.as_str().into()),
        ]
        .into();
        let queue = Queue { durable: self.durable, auto_delete: false, exclusive: false, arguments };
        let declare = Action::DeclareQueue { name: self.queue.clone(), queue };
        let put = request(&self.vhost, &declare).expect("a declaration is one request");
        Ok(self.broker.send(&put).await?.status == 201)
    }

    /// Deletes the queue if this run holds the lock.
    async fn release(&self) -> Result<(), BrokerError> {
        // Every retry reads the lock again, because another run may have acquired the lock after a delete whose
        // response was lost.
        let read_and_delete = async || match self.read_once().await? {
            LockState::Free | LockState::Others(_) => Ok(()),
            LockState::Ours => self.delete_once().await,
        };
        self.broker.retrying(read_and_delete).await
    }

    async fn delete_once(&self) -> Result<(), BrokerError> {
        accept_not_found(self.broker.send_once(&Request::delete(self.path())).await).map(|_| ())
    }

    /// While holding the second lock, deletes the lock if it has this token. If another run holds the second lock,
    /// waits instead, and the caller must read the lock again.
    async fn delete_exclusively(&self, token: Option<&str>) -> Result<(), BrokerError> {
        let name = format!("{}{DELETION_SUFFIX}", self.queue);
        let second = Self { queue: QueueName::new(name), ..self.clone() };
        // A PUT would renew the second lock of another run, so the second lock of a killed run would never expire.
        if !matches!(second.read().await?, LockState::Others(_)) {
            second.put().await?;
        }
        let deleted = match second.read().await? {
            // Compares the token again, because another run may have replaced the lock since the last read.
            LockState::Ours => self.delete_if_token(token).await,
            LockState::Others(_) | LockState::Free => {
                sleep(POLL).await;
                Ok(())
            }
        };
        second.release().await?;
        deleted
    }

    /// Deletes the lock if it has this token.
    async fn delete_if_token(&self, token: Option<&str>) -> Result<(), BrokerError> {
        match self.read().await? {
            LockState::Others(other) if other.token.as_deref() == token => self.delete_once().await,
            LockState::Others(_) | LockState::Ours | LockState::Free => Ok(()),
        }
    }

    /// Renews the lock. Returns the reason if the lock is lost, and `None` otherwise.
    async fn renew(&self) -> Result<Option<String>, BrokerError> {
        if self.put().await? {
            return Ok(Some("it had expired or was deleted".to_owned()));
        }
        Ok(match self.read().await? {
            LockState::Ours => None,
            LockState::Free => Some("it was deleted".to_owned()),
            LockState::Others(other) => Some(format!("it is held by {}", other.description)),
        })
    }
}

/// Converts the value of `x-expires` into the duration of the lease; `None` if the value is not valid.
fn lease(milliseconds: &ArgumentValue) -> Option<Duration> {
    milliseconds.as_integer().and_then(|it| u64::try_from(it).ok()).map(Duration::from_millis)
}

/// Renews the lock until it is lost. The lock is lost if a response shows the loss, if a renewal fails with a permanent
/// error, or if no renewal succeeds for the duration of the lease.
async fn keep_renewed(lock: Lock, lost: Arc<OnceLock<String>>, until: Arc<Mutex<Instant>>, mutex: Arc<RenewalMutex>) {
    loop {
        sleep(RENEWAL).await;
        let _renewal = mutex.lock().await;
        let started = Instant::now();
        let held_until = *until.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match timeout_at(held_until, lock.renew()).await {
            Ok(Ok(None)) => {
                // Counts from the time before the request was sent. The broker started the lease later.
                *until.lock().unwrap_or_else(PoisonError::into_inner) = started + LEASE;
                continue;
            }
            Ok(Ok(Some(reason))) => reason,
            Ok(Err(error)) if Instant::now() < held_until && error.is_transient() => continue,
            Ok(Err(error)) => format!("it could not be renewed: {error}"),
            Err(_) => EXPIRED.to_owned(),
        };
        // `confirm` may have detected the loss first.
        let _ = lost.set(reason);
        return;
    }
}
