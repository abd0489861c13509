//! All that decides how a broker answers, beside the question itself.

use crate::model::BrokerVersion;
use std::collections::BTreeSet;

/// How one broker behaves towards one vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Its version.
    pub version: BrokerVersion,
    /// The type that a queue gets which is declared without `x-queue-type`: the vhost's default, else the node's. `None`
    /// is classic.
    pub default_queue_type: Option<String>,
    /// The types of exchanges that it knows; empty where it does not say.
    pub exchange_types: BTreeSet<String>,
}

impl Dialect {
    /// A broker of that version, with no settings of its own.
    pub fn of(version: BrokerVersion) -> Self {
        Self { version, default_queue_type: None, exchange_types: BTreeSet::new() }
    }
}
