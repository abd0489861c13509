//! All that decides how a broker answers, beside the question itself.

use crate::model::BrokerVersion;
use std::collections::{BTreeMap, BTreeSet};

/// The deprecated feature of queues that are neither durable nor exclusive.
pub const TRANSIENT_QUEUES: &str = "transient_nonexcl_queues";
/// The deprecated feature of `x-queue-master-locator` and of the policy key without `x-`.
pub const QUEUE_MASTER_LOCATOR: &str = "queue_master_locator";

/// How one broker behaves towards one vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerProfile {
    /// Its version.
    pub version: BrokerVersion,
    /// The type that a queue gets which is declared without `x-queue-type`: the vhost's default, else the node's. `None`
    /// is classic.
    pub default_queue_type: Option<String>,
    /// The types of exchanges that it knows; empty where it does not say.
    pub exchange_types: BTreeSet<String>,
    /// Deprecated features, and whether it permits them; those that it says nothing of are not in it. A configuration
    /// decides (`deprecated_features.permit.…`), and so do distributions: Debian's 4.3.6 permits what others deny.
    pub deprecated_features: BTreeMap<String, bool>,
}

impl BrokerProfile {
    /// A broker of that version, with no settings of its own.
    pub fn of(version: BrokerVersion) -> Self {
        Self {
            version,
            default_queue_type: None,
            exchange_types: BTreeSet::new(),
            deprecated_features: BTreeMap::new(),
        }
    }

    /// Whether it permits a deprecated feature, if it says so.
    pub fn permits(&self, feature: &str) -> Option<bool> {
        self.deprecated_features.get(feature).copied()
    }
}
