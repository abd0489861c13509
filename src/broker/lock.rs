//! The lock of an apply: a queue in the vhost. While it exists, the lock is held; an argument names the holder.
//!
//! GET; absent, so PUT; GET again and compare the holder. The answer to the PUT proves nothing: of several that put at
//! once, several get 201 (7 of 8 on 3.10.8), and a stranger's later PUT gets 204 and leaves the arguments alone, because
//! unknown ones are not compared. What is seen after one's own PUT is the same for all. `x-expires` is the lease: a PUT counts as
//! use and starts it anew, and a crash ends it. (A PUT does not count as use of a quorum queue: seen on 3.10.8 and 4.3.6. Hence a
//! classic one, though a cluster can lose its node.)
//!
//! When the node of the lock dies, a durable queue of 3.x could be neither declared nor deleted until the node is back; a
//! transient one is gone at once. From 4.0 on a queue stays in the lists, as if it were running, and nothing renews or expires
//! it; but it can be deleted. That is done when its holder must have noticed, and by one at a time, who has a second lock for
//! it: a DELETE cannot say whose lock it means, and that of the second would hit what the first has put in its place.

mod inspect;
mod process;

pub use inspect::HeldLock;
pub use process::Process;

use super::connection::Broker;
use super::error::BrokerError;
use super::guard::OnProof;
use super::perform::{Performed, gone_is_done};
use super::redact::foreign;
use super::wire::{ClusterNode, LockQueue};
use crate::model::{ArgumentValue, Arguments, BrokerVersion, Queue, QueueName, VhostName};
use crate::plan::Action;
use crate::plan::request::{Request, path, request};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long a lock outlives its holder.
pub const LEASE: Duration = Duration::from_secs(60);
/// The time between two renewals: three may fail before the lease expires.
const RENEWAL: Duration = Duration::from_secs(15);
/// The pause between two checks of a lock that another apply holds.
const POLL: Duration = Duration::from_secs(1);
/// What is added to its name for the right to take it away. Reserved, whatever the lock is called.
const TAKING_AWAY: &str = ".topo.taking-away";
/// The argument with the words of the holder.
const HOLDER: &str = "x-topo-holder";
/// The argument that distinguishes two holders with the same description.
const TOKEN: &str = "x-topo-token";

/// Serializes the renewal and the release.
type Turn = tokio::sync::Mutex<()>;

/// Why a lock is lost of which the broker may not have said so.
const EXPIRED: &str = "it could not be renewed before it expired";

/// Who holds a lock, for people: `me@host pid 4711 since 2026-11-20T12:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    words: String,
    token: String,
}

impl Holder {
    /// With these words, and a random token.
    pub fn new(words: impl Into<String>) -> Self {
        // The hasher's keys are random; std has no other source of randomness.
        let random = || RandomState::new().build_hasher().finish();
        Self { words: words.into(), token: format!("{:016x}{:016x}", random(), random()) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// A broker with a vhost that is locked for us. [Release](Self::release) it; dropped, it is free when the lease ran out.
#[derive(Debug)]
pub struct LockedBroker {
    lock: Lock,
    lost: Arc<OnceLock<String>>,
    /// When the lock expires without a renewal. A process that was suspended detects the loss by this time.
    held_until: Arc<Mutex<Instant>>,
    turn: Arc<Turn>,
    renewal: JoinHandle<()>,
}

/// The data needed to renew a lock.
#[derive(Clone, Debug)]
struct Lock {
    broker: Broker,
    vhost: VhostName,
    queue: QueueName,
    holder: Holder,
    durable: bool,
}

/// The result of a check of the lock.
enum Seen {
    Free,
    Ours,
    Others(Other),
}

/// The lock of another apply.
struct Other {
    words: String,
    token: Option<String>,
    /// The node of its queue.
    node: Option<String>,
    /// Its lease.
    lease: Option<Duration>,
}

impl Broker {
    /// Locks an existing vhost of a broker of this version. While another apply holds the lock, checks it again until
    /// `patience` is over or `give_up`, which receives the holder, returns true. Then the error is [`BrokerError::LockHeld`]. A lock whose node has been down for a
    /// lease is taken away; who may not see the nodes (tag `monitoring`) cannot tell.
    ///
    /// Must run inside a tokio runtime: a task of its own renews the lock.
    pub async fn lock(
        &self,
        vhost: &VhostName,
        queue: &QueueName,
        (holder, version): (Holder, BrokerVersion),
        patience: Duration,
        give_up: impl Fn(&str) -> bool,
    ) -> Result<LockedBroker, BrokerError> {
        let durable = version.is_at_least(4, 0);
        let lock = Lock { broker: self.clone(), vhost: vhost.clone(), queue: queue.clone(), holder, durable };
        let deadline = Instant::now() + patience;
        // When the last was sent. The broker's lease begins later.
        let mut put: Option<Instant> = None;
        let mut down_since: Option<(Instant, Option<String>)> = None;
        let put_at = loop {
            let step = match (lock.look().await, put) {
                (Ok(Seen::Ours), Some(at)) => break at,
                (Ok(Seen::Others(Other { words: holder, token, node, .. })), _) => {
                    let down = self.down(node).await;
                    // Another's lock on the same node may be one of a minute ago.
                    down_since = down_since.filter(|(_, of)| down.is_some() && *of == token);
                    if down.is_some() && down_since.is_none() {
                        down_since = Some((Instant::now(), token.clone()));
                    }
                    if down_since.as_ref().is_some_and(|(since, _)| since.elapsed() >= LEASE) {
                        lock.take_away(token.as_deref()).await
                    } else if Instant::now() >= deadline || give_up(&holder) {
                        return Err(BrokerError::LockHeld { vhost: lock.vhost, queue: lock.queue, holder, down });
                    } else {
                        sleep(POLL.min(deadline.saturating_duration_since(Instant::now()))).await;
                        Ok(())
                    }
                }
                (Ok(Seen::Free | Seen::Ours), _) => {
                    put = Some(Instant::now());
                    lock.put().await.map(|_| ())
                }
                (Err(error), _) => Err(error),
            };
            if let Err(error) = step {
                // The lock may have been acquired after all; then the next apply would wait in vain.
                if put.is_some() {
                    let _ = timeout(LEASE, lock.free()).await;
                }
                return Err(error);
            }
        };
        let lost = Arc::new(OnceLock::new());
        let held_until = Arc::new(Mutex::new(put_at + LEASE));
        let turn = Arc::default();
        let renewal = tokio::spawn(keep(lock.clone(), lost.clone(), held_until.clone(), Arc::clone(&turn)));
        Ok(LockedBroker { lock, lost, held_until, turn, renewal })
    }

    /// Returns the node if it is known to be down.
    async fn down(&self, node: Option<String>) -> Option<String> {
        let node = node?;
        (self.is_up(&node).await == Some(false)).then_some(node)
    }

    /// Whether a node is running; `None` if unknown.
    async fn is_up(&self, node: &str) -> Option<bool> {
        let nodes: Vec<ClusterNode> = self.get("/api/nodes?columns=name,running").await.ok()?;
        nodes.iter().find(|one| one.name == node).map(|one| one.running)
    }
}

impl LockedBroker {
    /// The broker, for reading.
    pub fn broker(&self) -> &Broker {
        &self.lock.broker
    }

    /// The vhost that is locked.
    pub fn vhost(&self) -> &VhostName {
        &self.lock.vhost
    }

    /// Whether this run has lost the lock. Then nothing may be changed any more.
    pub fn lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Returns [`BrokerError::LockLost`] if this run has lost the lock.
    pub fn check(&self) -> Result<(), BrokerError> {
        match self.loss() {
            None => Ok(()),
            Some(reason) => Err(BrokerError::LockLost { vhost: self.lock.vhost.clone(), reason }),
        }
    }

    /// Why it is not ours any more. A process that was stopped for longer than the lease (a laptop that slept) goes on where
    /// it was, before the renewal has its turn.
    fn loss(&self) -> Option<String> {
        let is_over = || Instant::now() >= *self.held_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.lost.get().cloned().or_else(|| is_over().then(|| EXPIRED.to_owned()))
    }

    /// Asks the broker whether the lock is still ours, so that a lock that was taken away is noticed before the next
    /// renewal. [`BrokerError::LockLost`] if it is not.
    pub async fn confirm(&self) -> Result<(), BrokerError> {
        self.check()?;
        let reason = match self.lock.look().await? {
            Seen::Ours => return Ok(()),
            Seen::Free => "it had expired or was deleted".to_owned(),
            Seen::Others(other) => format!("it is held by {}", other.words),
        };
        // The renewal may have detected the loss first.
        let _ = self.lost.set(reason);
        self.check()
    }

    /// Carries out an action in the locked vhost, if the lock is still ours; see [`Broker::perform`].
    pub async fn perform(&self, action: &Action) -> Result<Performed, BrokerError> {
        self.check()?;
        self.lock.broker.perform(&self.lock.vhost, action).await
    }

    /// [`Self::perform`], which calls `observe` while the proof of a guard waits for ticks.
    pub async fn perform_observed(&self, action: &Action, observe: OnProof<'_>) -> Result<Performed, BrokerError> {
        self.check()?;
        self.lock.broker.perform_observed(&self.lock.vhost, action, observe).await
    }

    /// Releases the lock. A lost lock belongs to another apply and is left alone. However long a broker hangs, it is tried for no
    /// longer than the lease runs, but for 15 s at least: a lock whose node is down outlives it.
    pub async fn release(self) -> Result<(), BrokerError> {
        // A renewal that is under way could reach the broker after the delete, and the lock would be there again. It ends with
        // the lease at the latest.
        let _turn = self.turn.lock().await;
        self.renewal.abort();
        let held_until = *self.held_until.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let enough = held_until.max(began + RENEWAL);
        timeout_at(enough, self.lock.free()).await.unwrap_or_else(|_| {
            let (url, request) = (self.lock.broker.shown_url(), Request::delete(self.lock.path()).to_string());
            Err(BrokerError::Timeout { url, request, after: Duration::from_secs((enough - began).as_secs()) })
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

    async fn look(&self) -> Result<Seen, BrokerError> {
        self.broker.retrying(|| self.look_once()).await
    }

    async fn look_once(&self) -> Result<Seen, BrokerError> {
        let request = Request::get(self.path() + "?disable_stats=true");
        let listed: LockQueue = match self.broker.send_once(&request).await {
            Ok(answer) => answer.json(&request)?,
            Err(BrokerError::NotFound { .. }) => return Ok(Seen::Free),
            Err(error) => return Err(error),
        };
        let text = |name: &str| listed.arguments.get(name).and_then(|value| value.as_text());
        let (words, token) = (text(HOLDER), text(TOKEN));
        if token == Some(&self.holder.token) {
            return Ok(Seen::Ours);
        }
        let stranger = || format!("a queue named `{}` that topo did not create", self.queue);
        Ok(Seen::Others(Other {
            words: words.map_or_else(stranger, foreign),
            token: token.map(str::to_owned),
            node: listed.node.clone(),
            lease: listed.arguments.get("x-expires").and_then(lease),
        }))
    }

    /// Makes the queue, or starts its lease anew; true if it was not there.
    async fn put(&self) -> Result<bool, BrokerError> {
        let lease = i64::try_from(LEASE.as_millis()).expect("a minute in milliseconds is a small number");
        let arguments: Arguments = [
            // Else it would become a quorum queue where those are the default, and those start in seconds.
            ("x-queue-type".to_owned(), "classic".into()),
            ("x-expires".to_owned(), lease.into()),
            (HOLDER.to_owned(), self.holder.words.as_str().into()),
            (TOKEN.to_owned(), self.holder.token.as_str().into()),
        ]
        .into();
        let queue = Queue { durable: self.durable, auto_delete: false, exclusive: false, arguments };
        let declare = Action::DeclareQueue { name: self.queue.clone(), queue };
        let put = request(&self.vhost, &declare).expect("a declare is one request");
        Ok(self.broker.send(&put).await?.status == 201)
    }

    /// Deletes the queue if this run holds the lock.
    async fn free(&self) -> Result<(), BrokerError> {
        // What is tried again is the look with the delete: after a lost answer, the lock may be somebody else's.
        let look_and_delete = async || match self.look_once().await? {
            Seen::Free | Seen::Others(_) => Ok(()),
            Seen::Ours => self.delete_once().await,
        };
        self.broker.retrying(look_and_delete).await
    }

    async fn delete_once(&self) -> Result<(), BrokerError> {
        gone_is_done(self.broker.send_once(&Request::delete(self.path())).await).map(|_| ())
    }

    /// Deletes the lock with that token, whose node is down. While another is about to, nothing: the next look shows what
    /// became of it.
    async fn take_away(&self, token: Option<&str>) -> Result<(), BrokerError> {
        let name = format!("{}{TAKING_AWAY}", self.queue);
        let right = Self { queue: QueueName::new(name), ..self.clone() };
        // A PUT beside the right of another would start its lease anew, and that of a killed run would never end.
        if !matches!(right.look().await?, Seen::Others(_)) {
            right.put().await?;
        }
        let taken = match right.look().await? {
            // Only now: what was seen before may have been taken away since, and be somebody's.
            Seen::Ours => self.delete_of(token).await,
            Seen::Others(_) | Seen::Free => {
                sleep(POLL).await;
                Ok(())
            }
        };
        right.free().await?;
        taken
    }

    /// Deletes the lock with that token.
    async fn delete_of(&self, token: Option<&str>) -> Result<(), BrokerError> {
        match self.look().await? {
            Seen::Others(other) if other.token.as_deref() == token => self.delete_once().await,
            Seen::Others(_) | Seen::Ours | Seen::Free => Ok(()),
        }
    }

    /// Renews the lock. Returns the reason if it is lost.
    async fn renew(&self) -> Result<Option<String>, BrokerError> {
        if self.put().await? {
            return Ok(Some("it had expired or was deleted".to_owned()));
        }
        Ok(match self.look().await? {
            Seen::Ours => None,
            Seen::Free => Some("it was deleted".to_owned()),
            Seen::Others(other) => Some(format!("it is held by {}", other.words)),
        })
    }
}

/// The value of `x-expires`.
fn lease(milliseconds: &ArgumentValue) -> Option<Duration> {
    milliseconds.as_integer().and_then(|it| u64::try_from(it).ok()).map(Duration::from_millis)
}

/// Renews the lock until it is lost: by an answer that says so, or because no renewal came through for a whole lease.
async fn keep(lock: Lock, lost: Arc<OnceLock<String>>, until: Arc<Mutex<Instant>>, turn: Arc<Turn>) {
    loop {
        sleep(RENEWAL).await;
        let _turn = turn.lock().await;
        let started = Instant::now();
        let held_until = *until.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match timeout_at(held_until, lock.renew()).await {
            Ok(Ok(None)) => {
                // From before the request was sent: the broker's lease began later.
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
