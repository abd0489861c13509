//! Moves messages with a dynamic shovel on the broker, managed over HTTP, for brokers whose AMQP port is not reachable.
//!
//! topo's shovels never end on their own (`src-delete-after: never`). With a limit, a shovel would end after moving as
//! many messages as were *ready* at its start, and would count rejected messages as moved. A shovel publishes without
//! the `mandatory` flag, so messages that the target does not route would be lost. topo therefore starts a shovel only
//! if the target has a binding.
//!
//! A killed run leaves its shovels on the broker. Only policymakers may read shovel definitions, but every user with
//! access to the vhost may read the consumers of a queue. If topo's user is not allowed to manage shovels, topo detects
//! the shovels by their consumers.

use super::progress::{Fault, Order, Progress, State};
use crate::broker::connection::Broker;
use crate::broker::deletion::accept_not_found;
use crate::broker::error::BrokerError;
use crate::broker::redact::sanitize;
use crate::model::address::encode;
use crate::model::naming::{is_shovel, shovel};
use crate::model::{BrokerVersion, QueueName, VhostName};
use crate::plan::request::{Request, path};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The consumer priority, which is the same as for the AMQP transport.
pub(super) const PRIORITY: i64 = 1000;
/// The pause between two checks of a shovel that is starting or ending.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the broker waits before it restarts a failed shovel.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The time within which a shovel must start or disappear.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A transport that uses shovels on the broker. Cheap to clone.
#[derive(Clone)]
pub struct ShovelTransport {
    broker: Broker,
    vhost: VhostName,
    pub(super) version: BrokerVersion,
}

/// A move by a shovel. Dropping the value leaves the shovel on the broker. [`Self::stop`] removes the shovel.
pub struct ShovelMove {
    transport: ShovelTransport,
    name: String,
}

/// A shovel that an earlier run left on the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The name of the shovel.
    pub name: String,
    /// The source of the shovel.
    pub source: QueueName,
}

/// An entry of `GET /api/shovels/VHOST`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Status {
    /// The name of the shovel. Shovels from the configuration file have no vhost, and are not listed.
    name: String,
    state: String,
    reason: Option<String>,
    timestamp: Option<String>,
    /// The number of moved messages (4.1 and later).
    forwarded: Option<u64>,
    /// `running`, `flow` or `blocked` (3.11 and later).
    blocked_status: Option<String>,
}

impl Status {
    /// Returns true if the status may remain after the shovel has ended.
    fn may_be_obsolete(&self) -> bool {
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
    /// Creates a transport for a vhost on a broker of the given version.
    pub fn new(broker: Broker, vhost: &VhostName, version: BrokerVersion) -> Self {
        Self { broker, vhost: vhost.clone(), version }
    }

    /// Checks that the connected user can manage shovels, without changing anything. The plugins must be enabled, and
    /// the user must have the tags to read the status (`monitoring`) and the definitions (`policymaker`) of shovels.
    pub async fn check(&self) -> Result<(), Fault> {
        match self.statuses().await {
            Err(BrokerError::NotFound { .. }) => return Err(Fault::NoShovels),
            statuses => statuses?,
        };
        self.leftovers().await?;
        Ok(())
    }

    /// Starts a move. Replaces a shovel that a killed run left on the same queue.
    ///
    /// # Errors
    /// The plugins are not enabled, or the user is not allowed to manage shovels. Also fails if the queue or the
    /// exchange does not exist, the exchange has no bindings, the queue has an exclusive consumer, or the shovel does
    /// not start.
    pub async fn start(&self, order: Order) -> Result<ShovelMove, Fault> {
        self.check().await?;
        // The shovel would declare a missing source.
        match self.read("queues", order.source.as_str(), "").await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::SourceGone { reason }),
            source => source?,
        };
        // Checks the exchange first, because the broker returns an empty list of bindings for a missing exchange.
        match self.read("exchanges", order.target.as_str(), "").await {
            Err(BrokerError::NotFound { reason, .. }) => return Err(Fault::TargetGone { reason }),
            target => target?,
        };
        let bindings = self.read("exchanges", order.target.as_str(), "/bindings/source").await?;
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
            created => created?,
        };
        let mut moving = ShovelMove { transport: self.clone(), name };
        match moving.wait_until_running(old).await {
            Ok(()) => Ok(moving),
            Err(fault) => {
                moving.stop().await?;
                // The shovel reports only that it could not subscribe, not that the queue has an exclusive consumer.
                Err(if self.has_exclusive_consumer(&order.source).await? {
                    Fault::Exclusive { reason: "the broker lists the consumer as exclusive".to_owned() }
                } else {
                    fault
                })
            }
        }
    }

    /// Returns topo's shovels in this vhost. If this run has no running shovel, these shovels were left by killed runs.
    pub async fn leftovers(&self) -> Result<Vec<Leftover>, BrokerError> {
        let listed: Vec<Parameter> = self.broker.get(path("parameters", &["shovel", self.vhost.as_str()])).await?;
        let topo_shovels = listed.into_iter().filter(|parameter| is_shovel(&parameter.name));
        let leftover = |Parameter { name, value }: Parameter| {
            value.source.map(|source| Leftover { name, source: QueueName::new(source) })
        };
        Ok(topo_shovels.filter_map(leftover).collect())
    }

    /// Removes a shovel, and waits until the shovel has ended, because a running shovel would declare a deleted queue
    /// again.
    pub async fn remove(&self, name: &str) -> Result<(), BrokerError> {
        let parameter = self.parameter(name);
        accept_not_found(self.broker.send(&Request::delete(parameter.clone())).await)?;
        let deadline = Instant::now() + TIMEOUT;
        let (mut since, mut last) = (Instant::now(), None);
        loop {
            let is_defined = match self.broker.send(&Request::get(parameter.clone())).await {
                Ok(_) => true,
                Err(BrokerError::NotFound { .. }) => false,
                Err(error) => return Err(error),
            };
            let status = self.status(name).await?;
            // A running shovel deletes its status when it stops. On 3.13 and later, the broker kills a shovel that has
            // failed or has not connected yet. The last status of such a shovel remains (fixed after 4.3.5,
            // rabbitmq-server f6565763). However, the broker responds to the DELETE only after it has stopped the
            // shovel, and a shovel that is still running would change its status.
            if is_defined || last != status {
                (since, last) = (Instant::now(), status);
            }
            let is_over = match &last {
                None => true,
                Some(status) if status.may_be_obsolete() => since.elapsed() > RECONNECT_DELAY * 3,
                Some(_) => false,
            };
            if !is_defined && is_over {
                return Ok(());
            }
            if Instant::now() > deadline {
                let state = last.map_or_else(|| "no state".to_owned(), |status| format!("state: {}", status.state));
                let definition = if is_defined { "defined" } else { "not defined" };
                let object = format!("shovel {name} ({definition}, {state})");
                return Err(BrokerError::NotVerified { object, expected: false });
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns true if a consumer uses the queue exclusively. Waits for up to one statistics interval, because the
    /// broker might not list a new consumer until then.
    async fn has_exclusive_consumer(&self, queue: &QueueName) -> Result<bool, BrokerError> {
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
        // A URI without a host connects directly inside the broker. A URI without a path would refer to the `/` vhost.
        let uri = format!("amqp:///{}", encode(self.vhost.as_str()));
        let mut value = json!({
            "src-protocol": "amqp091",
            "src-uri": uri,
            "src-queue": order.source,
            "src-delete-after": "never",
            "src-prefetch-count": order.prefetch,
            "dest-protocol": "amqp091",
            "dest-uri": uri,
            // Without `dest-exchange-key`, each message keeps its routing key.
            "dest-exchange": order.target,
            "ack-mode": "on-confirm",
            "reconnect-delay": RECONNECT_DELAY.as_secs(),
        });
        // Versions before 3.9 refuse this key as unknown.
        if self.version >= BrokerVersion::new(3, 9, 0) {
            value["src-consumer-args"] = json!({ "x-priority": PRIORITY });
        }
        if self.version >= BrokerVersion::new(4, 0, 0) {
            // With this key, the shovel does not declare a deleted queue again.
            value["src-predeclared"] = json!(true);
        }
        json!({ "value": value })
    }

    pub(super) async fn read(&self, kind: &str, name: &str, below: &str) -> Result<Value, BrokerError> {
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
    /// Returns the progress that the broker reports. On versions before 4.1, the number of moved messages is unknown.
    pub async fn progress(&mut self) -> Result<Progress, BrokerError> {
        Ok(progress(self.transport.status(&self.name).await?))
    }

    /// Removes the shovel, and waits until the shovel has ended. Its unacknowledged messages are then back in the
    /// source, and may also be at the target.
    pub async fn stop(self) -> Result<Progress, BrokerError> {
        let last = self.transport.status(&self.name).await?;
        self.transport.remove(&self.name).await?;
        let moved = last.and_then(|status| status.forwarded);
        Ok(Progress { moved, ..Progress::start(State::Stopped) })
    }

    /// Waits until the shovel is running. Ignores `old`, the last status of an earlier shovel with the same name.
    async fn wait_until_running(&mut self, old: Option<Status>) -> Result<(), Fault> {
        let deadline = Instant::now() + TIMEOUT;
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

/// Converts the status of a shovel into the progress of the move.
fn progress(status: Option<Status>) -> Progress {
    let moved = status.as_ref().and_then(|status| status.forwarded);
    let state = match status {
        None => State::Reconnecting,
        Some(Status { state, .. }) if state == "starting" => State::Reconnecting,
        Some(Status { state, reason, .. }) if state == "terminated" => {
            let reason = reason.map_or_else(|| "no reason given".to_owned(), |reason| sanitize(&reason));
            State::Failed(Fault::ShovelEnded { reason })
        }
        Some(Status { blocked_status: Some(blocked), .. }) if blocked == "blocked" => State::Blocked,
        Some(_) => State::Moving,
    };
    Progress { moved, ..Progress::start(state) }
}

impl ShovelTransport {
    /// Returns the entries in `queues` that are sources of topo shovels, if the connected user is not allowed to manage
    /// shovels. Returns no queues if the connected user is allowed to manage shovels, or if the shovel plugin is not
    /// enabled. The broker lists the consumers of shovels a few seconds after they subscribe, or not at all if
    /// statistics are disabled.
    pub async fn queues_with_inaccessible_shovels(
        &self,
        queues: &[QueueName],
    ) -> Result<BTreeSet<QueueName>, BrokerError> {
        match self.leftovers().await {
            // The user is allowed to manage shovels, or the shovel plugin is not enabled.
            Ok(_) | Err(BrokerError::NotFound { .. }) => return Ok(BTreeSet::new()),
            Err(BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut inaccessible = BTreeSet::new();
        for queue in queues {
            let shown = match self.read("queues", queue.as_str(), "").await {
                Ok(shown) => shown,
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let consumers = shown.get("consumer_details").and_then(Value::as_array);
            if consumers
                .is_some_and(|consumers| consumers.iter().any(|consumer| is_shovel_consumer(consumer, self.version)))
            {
                inaccessible.insert(queue.clone());
            }
        }
        Ok(inaccessible)
    }
}

/// Returns true if a consumer may belong to a topo shovel. Such a consumer is internal to the broker. On 3.9 and later,
/// it also has the priority of topo's shovels.
fn is_shovel_consumer(consumer: &Value, version: BrokerVersion) -> bool {
    let is_internal = consumer["channel_details"]["user"] == "none";
    is_internal && (version < BrokerVersion::new(3, 9, 0) || consumer["arguments"]["x-priority"] == PRIORITY)
}
