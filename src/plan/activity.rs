//! What the broker was doing when it was read: numbers that a plan's hazards are made of, and that age at once.

use crate::model::QueueName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The activity of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// By queue. A queue that is not here is one about which nothing is known.
    pub queues: BTreeMap<QueueName, QueueActivity>,
}

/// The activity of one queue. `None` is "not known", and that is never taken for zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueActivity {
    /// All messages in it: ready, unacknowledged, and dead letters that wait to be taken (at-least-once).
    pub messages: Option<u64>,
    /// Those that can be delivered.
    pub ready: Option<u64>,
    /// Those that a consumer holds.
    pub unacknowledged: Option<u64>,
    /// Where each attached consumer connects from, host or `host:port`; empty text when the broker does not say.
    pub consumers: Option<Vec<String>>,
}
