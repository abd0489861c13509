//! Defines the activity of a broker: message, consumer and connection counts, and other facts that determine the
//! hazards of a plan. The broker's values can change at any time after topo reads them.

use crate::model::count::number;
use crate::model::{Intervals, QueueName, RecordId, RecordKind, TopicPermission, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The activity of one vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// The activity of each queue. The activity of a queue without an entry is unknown.
    pub queues: BTreeMap<QueueName, QueueActivity>,
    /// The transport that can move messages in the vhost. Determined only if the plan moves messages.
    #[serde(default)]
    pub transports: Transports,
    /// The maximum number of queues in the vhost, if the vhost has such a limit. Set only if the plan moves messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue_limit: Option<u64>,
    /// The holder of the vhost's lock, if another apply is running.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applying: Option<String>,
    /// The queue that is the lock of the vhost; `None` for a plan without a broker.
    #[serde(skip)]
    pub lock_queue: Option<QueueName>,
    /// The queues, including holding queues, from which a shovel of an interrupted migration is still moving messages,
    /// if the connected user is not allowed to delete the shovel.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub unreachable: BTreeSet<QueueName>,
    /// The dynamic shovels that use queues of the vhost. topo reads the shovels only if the plan deletes or recreates
    /// queues.
    #[serde(default)]
    pub shovels: Shovels,
    /// The topic permissions of the vhost. topo reads topic permissions only if the plan deletes or recreates an
    /// exchange, or if an interrupted run must still restore topic permissions.
    #[serde(default)]
    pub topic_permissions: TopicPermissions,
    /// The queues whose counts may be stale, because topo could not query the queues over AMQP.
    #[serde(skip)]
    pub unqueried: Option<UnqueriedQueues>,
    /// The number of connections to the vhost, by user. Set only if the plan sets or lowers the connection limit, or
    /// changes or deletes permissions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections: Option<BTreeMap<String, u64>>,
    /// The shovels and federation upstreams, by the user that they connect as. Set only if the plan changes or deletes
    /// users, and the connected user may read the shovels and upstreams.
    #[serde(skip)]
    pub links: Option<BTreeMap<String, BTreeSet<String>>>,
    /// The intervals at which the broker updates these counts.
    #[serde(skip)]
    pub intervals: Intervals,
}

/// The facts that a plan requires about the records of a vhost or the cluster, in addition to the records themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFacts {
    /// For each record kind, the names of the existing objects, such as users, to which its records belong. The value
    /// is `None` if the connected user is not allowed to read these objects. A kind has no entry if topo did not read
    /// its objects.
    pub owners: BTreeMap<RecordKind, Option<BTreeSet<String>>>,
    /// The kinds whose records the connected user is not allowed to read.
    pub unreadable: BTreeSet<RecordKind>,
    /// The name of the connected user; `None` if topo did not read it, because the plan does not depend on it.
    pub user: Option<String>,
    /// The records whose passwords topo could not compare, each with the reason.
    pub not_compared: BTreeMap<RecordId, String>,
    /// The shovels that topo does not manage: they delete themselves, or the broker created them.
    pub excluded: BTreeSet<RecordId>,
    /// The enabled plugins. topo reads them only if the plan writes records that belong to a plugin.
    pub plugins: Enabled,
}

/// The enabled plugins or feature flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Enabled {
    /// topo did not read the plugins or feature flags.
    #[default]
    NotRead,
    /// The connected user is not allowed to read the plugins or feature flags. Contains the required tag.
    NotReadable(&'static str),
    /// The names of the enabled plugins or feature flags.
    Names(BTreeSet<String>),
}

/// The queues that topo could not query over AMQP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnqueriedQueues {
    /// The number of queues.
    pub queues: u64,
    /// The reason why topo could not query the queues.
    pub reason: String,
}

/// The known dynamic shovels that use queues of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shovels {
    /// The shovels were not read.
    #[default]
    NotRead,
    /// The connected user may not read the shovels.
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
    /// The broker keeps topic permissions when their exchange is deleted, because it stores its metadata in Mnesia.
    Kept,
    /// The broker deletes topic permissions with their exchange, and the connected user cannot read them.
    Hidden,
    /// The broker deletes topic permissions with their exchange. Contains all topic permissions of the vhost.
    Known(Vec<TopicPermission>),
}

/// A queue that is the source or destination of a dynamic shovel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShovelEnd {
    /// The name of the shovel.
    pub shovel: String,
    /// The vhost in which the shovel is defined.
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
        /// For each transport, the reason why it is not available, in one sentence.
        reasons: Vec<String>,
    },
}

/// The activity of one queue. `None` means unknown. A hazard treats an unknown number of messages or consumers as
/// nonzero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueActivity {
    /// The total number of messages in the queue: ready messages, unacknowledged messages, and messages that wait for
    /// at-least-once dead-lettering.
    pub messages: Option<u64>,
    /// The number of messages that are ready for delivery.
    pub ready: Option<u64>,
    /// The number of unacknowledged messages: messages that were delivered to a consumer or fetched with `basic.get`,
    /// but not acknowledged.
    pub unacknowledged: Option<u64>,
    /// The address of each consumer, as `host` or `host:port`; an empty string if the broker does not report the
    /// address.
    pub consumers: Option<Vec<String>>,
    /// True if the message count comes from the queue itself, which topo queried over AMQP for this plan. Otherwise,
    /// the count of a quorum queue may be 5 s old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The number of consumers that the queue reported over AMQP and that the broker's statistics do not list yet.
    #[serde(rename = "unlistedConsumers", default, skip_serializing_if = "Option::is_none")]
    pub unlisted_consumers: Option<u64>,
    /// The clients of the consumers, in the order of `consumers`. topo reads the clients only if the plan deletes or
    /// recreates the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<QueueClient>>,
    /// The messages that applications publish to the queue through the default exchange; `None` if there are none, or
    /// if topo did not read them, because the plan neither deletes nor recreates the queue.
    #[serde(rename = "defaultExchange", default, skip_serializing_if = "Option::is_none")]
    pub default_exchange: Option<DefaultExchangePublishes>,
}

/// The client of a consumer, from the properties of its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueClient {
    /// The product name that the client library sends; `None` if it sends none, or if the connection is not listed.
    pub product: Option<String>,
    /// The version of the client library.
    pub version: Option<String>,
    /// True if a channel of the connection uses a global prefetch count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_global_prefetch: bool,
}

/// The messages that applications publish to a queue through the default exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultExchangePublishes {
    /// The number of messages per second in the last minute, rounded up.
    pub per_second: u64,
    /// True if the number is only an upper bound, because the broker does not report the exchange of each message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_upper_bound: bool,
}

impl QueueActivity {
    /// Returns the number of consumers, including unlisted consumers; `None` if the broker does not report the
    /// consumers.
    pub fn consumer_count(&self) -> Option<u64> {
        let listed = self.consumers.as_ref()?.len() as u64;
        Some(listed + self.unlisted_consumers.unwrap_or(0))
    }

    /// Returns the number of unacknowledged messages if the broker lists no consumers. Returns `None` if a consumer is
    /// listed, if the consumers are unknown, or if the number is 0 or unknown. The list comes from the statistics,
    /// which omit consumers that subscribed in the last few seconds, and clients that call `basic.get`.
    pub fn held_by_unlisted(&self) -> Option<u64> {
        let is_unlisted = self.consumers.as_ref().is_some_and(Vec::is_empty);
        self.unacknowledged.filter(|held| is_unlisted && *held > 0)
    }
}

/// Describes the consumers that will be canceled and that only the queue reports, because the broker's statistics do
/// not list them yet.
pub(super) fn unlisted_consumers_text(count: u64) -> String {
    let consumers = if count == 1 { "1 consumer".to_owned() } else { format!("{count} consumers") };
    format!("{consumers} (not yet in the broker's statistics) will be canceled")
}

/// Describes unacknowledged messages in a queue whose consumers the broker does not list.
pub(super) fn unlisted_holder_text(held: u64) -> String {
    let messages = if held == 1 { "1 message is".to_owned() } else { format!("{} messages are", number(held)) };
    format!(
        "{messages} unacknowledged, and no consumer is listed: a client subscribed in the last few seconds, or fetched \
         messages with basic.get"
    )
}
