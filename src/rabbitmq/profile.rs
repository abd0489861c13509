//! Defines the properties of a broker that determine its behavior, and the exchanges that the broker declares itself.
//! `tests/facts/exchanges.rs` lists these exchanges on real brokers.

use crate::model::{BrokerVersion, ExchangeName};
use std::collections::{BTreeMap, BTreeSet};

/// The deprecated feature that permits queues that are neither durable nor exclusive.
pub const TRANSIENT_QUEUES: &str = "transient_nonexcl_queues";
/// The deprecated feature that permits `x-queue-master-locator` and the policy key `queue-master-locator`.
pub const QUEUE_MASTER_LOCATOR: &str = "queue_master_locator";

/// The properties of a broker and a vhost that determine how the broker behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerProfile {
    /// The version of the broker.
    pub version: BrokerVersion,
    /// The type of a queue that is declared without `x-queue-type`: the default of the vhost, otherwise the default of
    /// the node. `None` means classic.
    pub default_queue_type: Option<String>,
    /// The supported exchange types; empty if the broker does not list them.
    pub exchange_types: BTreeSet<String>,
    /// The deprecated features that the broker reports; true if the feature is permitted. The state depends on the
    /// configuration (`deprecated_features.permit.…`) and on the package: the Debian package of 4.3.6 permits features
    /// that other packages deny.
    pub deprecated_features: BTreeMap<String, bool>,
}

impl BrokerProfile {
    /// Creates the profile of a broker of a version with default settings.
    pub fn of(version: BrokerVersion) -> Self {
        Self {
            version,
            default_queue_type: None,
            exchange_types: BTreeSet::new(),
            deprecated_features: BTreeMap::new(),
        }
    }

    /// Returns true if the broker permits a deprecated feature; `None` if the broker does not report it.
    pub fn permits(&self, feature: &str) -> Option<bool> {
        self.deprecated_features.get(feature).copied()
    }
}

/// The name and the type of each predeclared exchange, and true if every vhost has it. `rabbit_vhost:add` declares all
/// exchanges except the last two, which the plugin `rabbitmq_event_exchange` and the log declare in one vhost.
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

/// Returns the predeclared exchanges that every vhost has and that policies can govern, which excludes the default
/// exchange.
pub fn predeclared_in_every_vhost() -> impl Iterator<Item = ExchangeName> {
    let governed = |(name, _, everywhere): &&(&str, &str, bool)| *everywhere && !name.is_empty();
    PREDECLARED.iter().filter(governed).map(|(name, ..)| ExchangeName::from(*name))
}
