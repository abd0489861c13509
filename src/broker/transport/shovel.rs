//! The broker's own transport: a dynamic shovel, made, watched and removed over HTTP. For where the AMQP port is closed.
//!
//! A shovel never says that it is done (`src-delete-after: never`): where it does, it counts what was *ready* when it
//! started, and counts a rejected message as moved. And it publishes without `mandatory`: what its target does not route
//! is lost, so it is started only when the target is bound.

use super::progress::{Fault, Order, Progress, State};
use crate::broker::connection::Broker;
use crate::broker::error::BrokerError;
use crate::broker::perform::gone_is_done;
use crate::broker::redact::foreign;
use crate::model::address::encode;
use crate::model::naming::{is_shovel, shovel};
use crate::model::{BrokerVersion, QueueName, VhostName};
use crate::plan::request::{Request, path};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// As for the transport over AMQP.
pub(super) const PRIORITY: i64 = 1000;
/// Between looks at a shovel that starts or ends.
const PAUSE: Duration = Duration::from_millis(100);
/// Until a shovel that failed is tried again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// For a shovel to be running, and for one to be gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Moves by shovels on the broker. Cheap to clone.
#[derive(Clone)]
pub struct ShovelTransport {
    broker: Broker,
    vhost: VhostName,
    pub(super) version: BrokerVersion,
}

/// A shovel. Dropping it leaves it on the broker: it is removed by [`Self::stop`], or by name.
pub struct ShovelMove {
    transport: ShovelTransport,
    name: String,
}

/// A shovel that an earlier run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its name.
    pub name: String,
    /// The queue that it moves from.
    pub source: QueueName,
}

/// An entry of `GET /api/shovels/VHOST`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Status {
    /// Shovels of the configuration file have no vhost; those are not listed here.
    name: String,
    state: String,
    reason: Option<String>,
    timestamp: Option<String>,
    /// From 4.2 on.
    forwarded: Option<u64>,
    /// `running`, `flow` or `blocked`, from 3.11 on.
    blocked_status: Option<String>,
}

impl Status {
    /// Whether it may be all that is left of a shovel.
    fn says_its_last(&self) -> bool {
        matches!(self.state.as_str(), "starting" | "terminated")
    }
}

/// An entry of `GET /api/consumers/VHOST`.
#[derive(Debug, Deserialize)]
struct Consumer {
    exclusive: bool,
    queue: ConsumedQueue,
}

#[derive(Debug, Deserialize)]
struct ConsumedQueue {
    name: String,
}

/// An entry of `GET /api/parameters/shovel/VHOST`.
#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    value: Definition,
}

#[derive(Debug, Deserialize)]
struct Definition {
    #[serde(rename = "src-queue")]
    source: Option<String>,
}

impl ShovelTransport {
    /// By the shovels of that broker, of that version.
    pub fn new(broker: Broker, vhost: &VhostName, version: BrokerVersion) -> Self {
        Self { broker, vhost: vhost.clone(), version }
    }

    /// Whether shovels can be made and watched here, asked before anything is done: the plugins are on, and this user may
    /// see shovels (`monitoring`) and their definitions (`policymaker`).
    pub async fn check(&self) -> Result<(), Fault> {
        match self.statuses().await {
            Err(BrokerError::NotFound { .. }) => return Err(Fault::NoShovels),
            statuses => statuses?,
        };
        self.leftovers().await?;
        Ok(())
    }

    /// Starts to move, or says why it cannot. A shovel of the same queue that a killed run left is replaced.
    pub async fn start(&self, order: Order) -> Result<ShovelMove, Fault> {
        self.check().await?;
        // A shovel would declare it.
        match self.look("queues", order.source.as_str(), "").await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::SourceGone { reason }),
            source => source?,
        };
        // First the exchange itself: the bindings of one that is not there are an empty list.
        match self.look("exchanges", order.target.as_str(), "").await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::TargetGone { reason }),
            target => target?,
        };
        let bindings = self.look("exchanges", order.target.as_str(), "/bindings/source").await?;
        if bindings.as_array().is_none_or(Vec::is_empty) {
            let reason = "nothing is bound to it".to_owned();
            return Err(Fault::Unroutable { target: order.target, reason });
        }
        let name = shovel(&order.source);
        self.remove(&name).await?;
        let old = self.status(&name).await?;
        match self.broker.send(&Request::put(self.parameter(&name), self.definition(&order))).await {
            Err(BrokerError::Refused { reason, .. }) if reason.contains("component shovel not found") => {
                return Err(Fault::NoShovels);
            }
            made => made?,
        };
        let mut moving = ShovelMove { transport: self.clone(), name };
        match moving.until_running(old).await {
            Ok(()) => Ok(moving),
            Err(fault) => {
                moving.stop().await?;
                // The shovel says no more than that it could not subscribe.
                Err(if self.is_taken(&order.source).await? {
                    Fault::Exclusive { reason: "it is listed as exclusive".to_owned() }
                } else {
                    fault
                })
            }
        }
    }

    /// The shovels of killed runs in this vhost.
    pub async fn leftovers(&self) -> Result<Vec<Leftover>, BrokerError> {
        let listed: Vec<Parameter> = self.broker.get(path("parameters", &["shovel", self.vhost.as_str()])).await?;
        let own = listed.into_iter().filter(|parameter| is_shovel(&parameter.name));
        let leftover = |Parameter { name, value }: Parameter| {
            value.source.map(|source| Leftover { name, source: QueueName::new(source) })
        };
        Ok(own.filter_map(leftover).collect())
    }

    /// Removes a shovel, and waits until the broker has ended it: while it runs, it would declare a queue that is deleted.
    pub async fn remove(&self, name: &str) -> Result<(), BrokerError> {
        let parameter = self.parameter(name);
        gone_is_done(self.broker.send(&Request::delete(parameter.clone())).await)?;
        let deadline = Instant::now() + PATIENCE;
        let (mut since, mut last) = (Instant::now(), None);
        loop {
            let is_defined = match self.broker.send(&Request::get(parameter.clone())).await {
                Ok(_) => true,
                Err(BrokerError::NotFound { .. }) => false,
                Err(error) => return Err(error),
            };
            let status = self.status(name).await?;
            // A shovel that runs takes its status back when it is stopped. From 3.13 on, one that had failed does not, nor one
            // that had not connected yet, because it is killed: their last words stay for ever (mended after 4.3.5,
            // rabbitmq-server f6565763). But the broker answers a DELETE when the shovel is stopped, and one that lived would
            // say more.
            let is_over = match &status {
                None => true,
                Some(status) if status.says_its_last() => since.elapsed() > RECONNECT_DELAY * 3,
                Some(_) => false,
            };
            if is_defined || last != status {
                (since, last) = (Instant::now(), status);
            }
            if !is_defined && is_over {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(BrokerError::NotVerified { object: format!("shovel {name}"), expected: false });
            }
            sleep(PAUSE).await;
        }
    }

    /// Whether a consumer has the queue for itself. Consumers are listed a while after they subscribed.
    async fn is_taken(&self, queue: &QueueName) -> Result<bool, BrokerError> {
        let deadline = Instant::now() + self.broker.intervals().listing();
        loop {
            let consumers: Vec<Consumer> = self.broker.get(path("consumers", &[self.vhost.as_str()])).await?;
            if consumers.iter().any(|consumer| consumer.exclusive && consumer.queue.name == queue.as_str()) {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            sleep(PAUSE).await;
        }
    }

    fn parameter(&self, name: &str) -> String {
        path("parameters", &["shovel", self.vhost.as_str(), name])
    }

    fn definition(&self, order: &Order) -> Value {
        // Without a host it is a connection inside the broker; without a path it would be the vhost `/`.
        let uri = format!("amqp:///{}", encode(self.vhost.as_str()));
        let mut value = json!({
            "src-protocol": "amqp091",
            "src-uri": uri,
            "src-queue": order.source,
            "src-delete-after": "never",
            "src-prefetch-count": order.prefetch,
            "dest-protocol": "amqp091",
            "dest-uri": uri,
            // And no key: each message keeps its own.
            "dest-exchange": order.target,
            "ack-mode": "on-confirm",
            "reconnect-delay": RECONNECT_DELAY.as_secs(),
        });
        // Refused as an unknown key before.
        if self.version >= BrokerVersion::new(3, 9, 0) {
            value["src-consumer-args"] = json!({ "x-priority": PRIORITY });
        }
        if self.version >= BrokerVersion::new(4, 0, 0) {
            // Not declared again when it is deleted.
            value["src-predeclared"] = json!(true);
        }
        json!({ "value": value })
    }

    pub(super) async fn look(&self, kind: &str, name: &str, below: &str) -> Result<Value, BrokerError> {
        self.broker.get(path(kind, &[self.vhost.as_str(), name]) + below).await
    }

    async fn statuses(&self) -> Result<Vec<Status>, BrokerError> {
        self.broker.get(path("shovels", &[self.vhost.as_str()])).await
    }

    async fn status(&self, name: &str) -> Result<Option<Status>, BrokerError> {
        Ok(self.statuses().await?.into_iter().find(|status| status.name == name))
    }
}

impl ShovelMove {
    /// How far it is, as far as the broker says: before 4.2 that it runs, and no number.
    pub async fn progress(&mut self) -> Result<Progress, BrokerError> {
        Ok(progress(self.transport.status(&self.name).await?))
    }

    /// Removes it, and returns when it has ended: what it held unacknowledged is back in the source then, and perhaps at the
    /// target, too.
    pub async fn stop(self) -> Result<Progress, BrokerError> {
        let last = self.transport.status(&self.name).await?;
        self.transport.remove(&self.name).await?;
        let moved = last.and_then(|status| status.forwarded);
        Ok(Progress { moved, last_moved: None, in_flight: 0, possible_duplicates: 0, state: State::Stopped })
    }

    /// An old status of a shovel of that name says nothing of this one.
    async fn until_running(&mut self, old: Option<Status>) -> Result<(), Fault> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.transport.status(&self.name).await?;
            match progress(status.filter(|status| Some(status) != old.as_ref())).state {
                State::Failed(fault) => return Err(fault),
                State::Reconnecting if Instant::now() > deadline => return Err(Fault::NotStarted),
                State::Reconnecting => sleep(PAUSE).await,
                State::Moving | State::Rejected | State::Blocked | State::Stopped => return Ok(()),
            }
        }
    }
}

/// What the broker says of a shovel.
fn progress(status: Option<Status>) -> Progress {
    let moved = status.as_ref().and_then(|status| status.forwarded);
    let state = match status {
        None => State::Reconnecting,
        Some(Status { state, .. }) if state == "starting" => State::Reconnecting,
        Some(Status { state, reason, .. }) if state == "terminated" => {
            let reason = reason.map_or_else(|| "no reason given".to_owned(), |reason| foreign(&reason));
            State::Failed(Fault::ShovelEnded { reason })
        }
        Some(Status { blocked_status: Some(blocked), .. }) if blocked == "blocked" => State::Blocked,
        Some(_) => State::Moving,
    };
    Progress { moved, last_moved: None, in_flight: 0, possible_duplicates: 0, state }
}
