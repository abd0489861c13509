//! The activity of the broker when it was read: the numbers behind the hazards of a plan. They are outdated at once.

use crate::model::{Intervals, QueueName, TopicPermission, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The activity of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// By queue. A queue that is not here is one about which nothing is known.
    pub queues: BTreeMap<QueueName, QueueActivity>,
    /// What can move messages there; only asked where messages are to be moved.
    #[serde(default)]
    pub transports: Transports,
    /// How many queues the vhost may have, if there is such a limit; only asked where messages are to be moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue_limit: Option<u64>,
    /// The holder of the vhost's lock: another apply that runs now. Only asked where a migration is not finished.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applying: Option<String>,
    /// Queues of migrations that were cut short from which a shovel still moves messages, and this user may not remove it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub out_of_reach: BTreeSet<QueueName>,
    /// The dynamic shovels that use queues of the vhost; only read where queues are deleted or recreated.
    #[serde(default)]
    pub shovels: Shovels,
    /// The topic permissions of the vhost; only read where an exchange is deleted or recreated.
    #[serde(default)]
    pub topic_permissions: TopicPermissions,
    /// The queues whose numbers may be stale, because they were not asked over AMQP.
    #[serde(skip)]
    pub unasked: Option<Unasked>,
    /// The number of connections of the vhost. It is read only if the plan sets or lowers their limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections: Option<u64>,
    /// How often the broker renews these numbers.
    #[serde(skip)]
    pub intervals: Intervals,
}

/// The queues that were not asked over AMQP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unasked {
    /// Their number.
    pub queues: u64,
    /// Why not.
    pub reason: String,
}

/// What is known of the dynamic shovels that use queues of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shovels {
    /// They were not read.
    #[default]
    NotRead,
    /// This user may not read them.
    Hidden,
    /// Their ends in the vhost.
    Known(Vec<ShovelEnd>),
}

/// The known topic permissions of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TopicPermissions {
    /// They were not read.
    #[default]
    NotRead,
    /// The broker keeps them when their exchange is deleted: it stores its metadata in Mnesia.
    Kept,
    /// The broker deletes them with their exchange, and this user may not read them.
    Hidden,
    /// The broker deletes them with their exchange: all of the vhost.
    Known(Vec<TopicPermission>),
}

/// A queue that a dynamic shovel names as its source or destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShovelEnd {
    /// The name of the shovel.
    pub shovel: String,
    /// The vhost in which it is defined.
    pub vhost: VhostName,
    /// The queue.
    pub queue: QueueName,
    /// Whether the shovel reads from it; else it writes to it.
    pub is_source: bool,
}

/// What can move the messages of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Transports {
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
    /// Those that were delivered and are not acknowledged: a consumer holds them, or who took them by `basic.get`.
    pub unacknowledged: Option<u64>,
    /// Where each attached consumer connects from, host or `host:port`; empty text when the broker does not say.
    pub consumers: Option<Vec<String>>,
    /// Whether the queue itself was asked in the moment of the plan, and had no consumer: then its messages are as they are
    /// now. Else those of a quorum queue may be 5 s old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Consumers that the queue reported over AMQP and the statistics of the broker do not list yet.
    #[serde(rename = "unlistedConsumers", default, skip_serializing_if = "Option::is_none")]
    pub unlisted_consumers: Option<u64>,
}

impl QueueActivity {
    /// How many messages are held by somebody whom the broker does not list: consumers come from statistics, where one that
    /// subscribed in the last seconds is not yet, and one who takes messages by `basic.get` never is.
    pub fn held_by_unlisted(&self) -> Option<u64> {
        let is_unlisted = self.consumers.as_ref().is_some_and(Vec::is_empty);
        self.unacknowledged.filter(|held| is_unlisted && *held > 0)
    }
}
