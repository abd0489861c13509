//! Defines the properties of a broker that determine its behavior, and the exchanges that the broker declares itself.
//! `tests/facts/exchanges.rs` lists these exchanges on real brokers.

use crate::model::{BrokerVersion, ExchangeName};
use std::collections::{BTreeMap, BTreeSet};

/// The deprecated feature of queues that are neither durable nor exclusive.
pub const TRANSIENT_QUEUES: &str = "transient_nonexcl_queues";
/// The deprecated feature of `x-queue-master-locator` and of the policy key without `x-`.
pub const QUEUE_MASTER_LOCATOR: &str = "queue_master_locator";

/// The properties of a broker and a vhost that determine how the broker behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerProfile {
    /// The version.
    pub version: BrokerVersion,
    /// The type of a queue that is declared without `x-queue-type`: the default of the vhost, otherwise that of the
    /// node. `None` means classic.
    pub default_queue_type: Option<String>,
    /// The supported exchange types; empty if the broker does not list them.
    pub exchange_types: BTreeSet<String>,
    /// The deprecated features that the broker reports, with true for each permitted one. The configuration permits or
    /// denies them (`deprecated_features.permit.…`), and so do packages: the 4.3.6 of Debian permits features that
    /// others deny.
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

/// Their names and types, and true if every vhost has them. `rabbit_vhost:add` declares them, except the last two: the
/// plugin `rabbitmq_event_exchange` and the log declare these in one vhost.
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

/// Returns the type of a predeclared exchange. The default exchange is a direct one.
pub fn predeclared_type(name: &ExchangeName) -> Option<&'static str> {
    PREDECLARED.iter().find(|(known, ..)| *known == name.as_str()).map(|(_, kind, _)| *kind)
}

/// Returns the predeclared exchanges of every vhost that policies govern: all but the default exchange.
pub fn in_every_vhost() -> impl Iterator<Item = ExchangeName> {
    let governed = |(name, _, everywhere): &&(&str, &str, bool)| *everywhere && !name.is_empty();
    PREDECLARED.iter().filter(governed).map(|(name, ..)| ExchangeName::from(*name))
}
