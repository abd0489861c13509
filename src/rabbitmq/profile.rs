//! Defines the properties that determine how a broker behaves, and the exchanges that RabbitMQ predeclares.
//! `tests/facts/exchanges.rs` verifies the exchanges of a new vhost on real brokers.

use crate::model::{BrokerVersion, ExchangeName};
use std::collections::{BTreeMap, BTreeSet};

/// The deprecated feature that permits queues that are neither durable nor exclusive.
pub const TRANSIENT_QUEUES: &str = "transient_nonexcl_queues";
/// The deprecated feature that permits `x-queue-master-locator` and the `queue-master-locator` policy key.
pub const QUEUE_MASTER_LOCATOR: &str = "queue_master_locator";

/// The properties of a broker and a vhost that determine how the broker behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerProfile {
    /// The version of the broker.
    pub version: BrokerVersion,
    /// The type of a queue that is declared without `x-queue-type`: the default of the vhost or, if the vhost has none,
    /// the default of the node. `None` means classic.
    pub default_queue_type: Option<String>,
    /// The supported exchange types; empty if they are unknown.
    pub exchange_types: BTreeSet<String>,
    /// The deprecated features that the broker reports; true if the feature is permitted. The state depends on the
    /// configuration (`deprecated_features.permit.…`) and on the package. For example, the Debian package of 4.3.6
    /// permits features that other packages deny.
    pub deprecated_features: BTreeMap<String, bool>,
}

impl BrokerProfile {
    /// Creates the profile of a broker that has this version and default settings. The exchange types and the states of
    /// deprecated features are unknown.
    pub fn of(version: BrokerVersion) -> Self {
        Self {
            version,
            default_queue_type: None,
            exchange_types: BTreeSet::new(),
            deprecated_features: BTreeMap::new(),
        }
    }

    /// Returns whether the broker permits a deprecated feature; `None` if the broker does not report the feature.
    pub fn permits(&self, feature: &str) -> Option<bool> {
        self.deprecated_features.get(feature).copied()
    }
}

/// The predeclared exchanges: name, type, and whether every vhost has the exchange. `rabbit_vhost:add` declares the
/// exchanges that every vhost has. The `rabbitmq_event_exchange` plugin declares `amq.rabbitmq.event` in one vhost, and
/// the exchange logger declares `amq.rabbitmq.log` in one vhost.
const PREDECLARED: [(&str, &str, bool); 9] = [
    ("", "direct", true),
    ("amq.direct", "direct", true),
    ("amq.fanout", "fanout", true),
    ("amq.headers", "headers", true),
    ("amq.match", "headers", true),
    ("amq.rabbitmq.trace", "topic", true),
    ("amq.topic", "topic", true),
    ("amq.rabbitmq.event", "topic", false),
    ("amq.rabbitmq.log", "topic", false),
];

/// Returns the type of a predeclared exchange; `None` for other exchanges. The type of the default exchange is
/// `direct`.
pub fn predeclared_type(name: &ExchangeName) -> Option<&'static str> {
    PREDECLARED.iter().find(|(known, ..)| *known == name.as_str()).map(|(_, kind, _)| *kind)
}

/// Returns the predeclared exchanges that every vhost has, except the default exchange, which policies cannot govern.
pub fn predeclared_in_every_vhost() -> impl Iterator<Item = ExchangeName> {
    let can_be_governed = |(name, _, everywhere): &&(&str, &str, bool)| *everywhere && !name.is_empty();
    PREDECLARED.iter().filter(can_be_governed).map(|(name, ..)| ExchangeName::from(*name))
}
