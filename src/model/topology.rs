//! Everything in one vhost.

use super::{Binding, Exchange, ExchangeName, Policy, PolicyName, Queue, QueueName, Vhost, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What one vhost holds, or should hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The vhost's name.
    pub vhost: VhostName,
    /// Its own settings; `None` when a live vhost does not exist (or may not be seen by this user).
    pub settings: Option<Vhost>,
    /// All exchanges but the default one.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// All queues.
    pub queues: BTreeMap<QueueName, Queue>,
    /// All bindings but those of the default exchange.
    pub bindings: BTreeSet<Binding>,
    /// All policies, operator policies not among them.
    pub policies: BTreeMap<PolicyName, Policy>,
}

impl Topology {
    /// A vhost that does not exist.
    pub fn missing(vhost: VhostName) -> Self {
        Self {
            vhost,
            settings: None,
            exchanges: BTreeMap::new(),
            queues: BTreeMap::new(),
            bindings: BTreeSet::new(),
            policies: BTreeMap::new(),
        }
    }
}
