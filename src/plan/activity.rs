//! The activity of the broker when topo read it: the numbers behind the hazards of a plan. They change at any time.

use crate::model::count::number;
use crate::model::{Intervals, QueueName, TopicPermission, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The activity of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// The activity of each queue. Nothing is known about a queue that is missing.
    pub queues: BTreeMap<QueueName, QueueActivity>,
    /// The transport that can move messages in the vhost. Read only if the plan moves messages.
    #[serde(default)]
    pub transports: Transports,
    /// The maximum number of queues in the vhost, if it has such a limit. Read only if the plan moves messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue_limit: Option<u64>,
    /// The holder of the lock of the vhost: another apply that is running. Read only if a migration was interrupted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applying: Option<String>,
    /// Queues of interrupted migrations from which a shovel still moves messages. This user may not delete the shovel.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub unreachable: BTreeSet<QueueName>,
    /// The dynamic shovels that use queues of the vhost. Read only if the plan deletes or recreates queues.
    #[serde(default)]
    pub shovels: Shovels,
    /// The topic permissions of the vhost. Read only if the plan deletes or recreates an exchange.
    #[serde(default)]
    pub topic_permissions: TopicPermissions,
    /// The queues whose numbers may be stale, because topo did not query them over AMQP.
    #[serde(skip)]
    pub unasked: Option<Unasked>,
    /// The number of connections of the vhost. Read only if the plan sets or lowers their limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections: Option<u64>,
    /// The intervals at which the broker updates these numbers.
    #[serde(skip)]
    pub intervals: Intervals,
}

/// The queues that topo did not query over AMQP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unasked {
    /// The number of queues.
    pub queues: u64,
    /// The reason.
    pub reason: String,
}

/// The known dynamic shovels that use queues of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shovels {
    /// The shovels were not read.
    #[default]
    NotRead,
    /// This user may not read the shovels.
    Hidden,
    /// The ends of the shovels in the vhost.
    Known(Vec<ShovelEnd>),
}

/// The known topic permissions of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TopicPermissions {
    /// The topic permissions were not read.
    #[default]
    NotRead,
    /// The broker keeps topic permissions when their exchange is deleted: it stores its metadata in Mnesia.
    Kept,
    /// The broker deletes topic permissions with their exchange, and this user may not read them.
    Hidden,
    /// The broker deletes topic permissions with their exchange: all topic permissions of the vhost.
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
    /// True if the shovel reads from the queue, false if it writes to the queue.
    pub is_source: bool,
}

/// The transport that can move the messages of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Transports {
    /// Not determined.
    #[default]
    Unknown,
    /// topo itself, over AMQP.
    Amqp,
    /// A shovel on the broker.
    Shovel,
    /// No transport is available.
    None {
        /// The reason for each transport, in one sentence.
        reasons: Vec<String>,
    },
}

/// The activity of one queue. `None` means "unknown", and never counts as zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueActivity {
    /// All messages in the queue: ready, unacknowledged, and those that wait to be dead-lettered (at-least-once).
    pub messages: Option<u64>,
    /// The messages that can be delivered.
    pub ready: Option<u64>,
    /// The messages that were delivered and are not acknowledged: by a consumer, or by a client that called
    /// `basic.get`.
    pub unacknowledged: Option<u64>,
    /// The address of each attached consumer, as host or `host:port`; empty if the broker does not report the address.
    pub consumers: Option<Vec<String>>,
    /// True if topo queried the queue itself for this plan, and the queue had no consumer: its message count is
    /// current. Otherwise the count of a quorum queue may be 5 s old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The number of consumers that the queue reported over AMQP and that the statistics of the broker do not list yet.
    #[serde(rename = "unlistedConsumers", default, skip_serializing_if = "Option::is_none")]
    pub unlisted_consumers: Option<u64>,
}

impl QueueActivity {
    /// Returns the number of unacknowledged messages if the broker lists no consumer. The list comes from statistics.
    /// The list lacks a consumer that subscribed in the last few seconds, and every client that calls `basic.get`.
    pub fn held_by_unlisted(&self) -> Option<u64> {
        let is_unlisted = self.consumers.as_ref().is_some_and(Vec::is_empty);
        self.unacknowledged.filter(|held| is_unlisted && *held > 0)
    }
}

/// Describes canceled consumers that only the queue itself reports.
pub(super) fn unlisted_consumers_text(count: u64) -> String {
    let (consumers, are) =
        if count == 1 { ("1 consumer".to_owned(), "is") } else { (format!("{count} consumers"), "are") };
    format!("{consumers} {are} canceled (not in the statistics of the broker yet)")
}

/// Describes unacknowledged messages of a queue whose consumers the broker does not list.
pub(super) fn unlisted_holder_text(held: u64) -> String {
    let messages = if held == 1 { "1 message is".to_owned() } else { format!("{} messages are", number(held)) };
    format!(
        "{messages} unacknowledged, and no consumer is listed: a client subscribed in the last few seconds, or fetched \
         them with basic.get"
    )
}
