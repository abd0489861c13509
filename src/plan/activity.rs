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
    /// What can move messages there; only asked where messages are to be moved.
    #[serde(default)]
    pub movers: Movers,
    /// How many queues the vhost may have, if there is such a limit; only asked where messages are to be moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue_limit: Option<u64>,
}

/// What can move the messages of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Movers {
    /// Nobody asked.
    #[default]
    Unknown,
    /// Topo itself, over AMQP.
    Amqp,
    /// A shovel of the broker's.
    Shovel,
    /// Nothing can.
    None {
        /// Why each of them cannot, in one sentence.
        reasons: Vec<String>,
    },
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
