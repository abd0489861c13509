//! Reads a broker's objects in parallel, with one request per list instead of one per object. The `management` tag is
//! sufficient.
//!
//! topo never reads `/api/definitions`, which requires the `administrator` tag. As of RabbitMQ 4.2.9 and 4.3.3, the
//! response omits internal exchanges.

use super::connection::Broker;
use super::error::BrokerError;
use super::snapshot::{Cluster, Survey, VhostLists};
use super::snapshot::{Lists, PropertiesKeys, Snapshot, bindings, policies};
use super::wire;
use crate::model::naming::is_topo_consumer;
use crate::model::printable::clean;
use crate::model::{
    Binding, BrokerVersion, ObjectId, Policy, PolicyName, Queue, QueueName, Record, RecordKind, Topology, VhostName,
};
use crate::plan::request::{Request, path};
use crate::plan::{Activity, QueueActivity};
use crate::rabbitmq::BrokerProfile;
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use tokio::{join, try_join};

/// A queue's members, message count, message sizes and consumer count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The node that hosts the leader of a quorum queue or stream; `None` without a leader.
    pub leader: Option<String>,
    /// The nodes that host the members; empty for a classic queue.
    pub members: Vec<String>,
    /// The nodes that host the online members.
    pub online: Vec<String>,
    /// The number of messages, from statistics that are a few seconds old; `None` if the statistics are not available.
    pub messages: Option<u64>,
    /// The total size of the message bodies in bytes, also from the statistics.
    pub bytes: Option<u64>,
    /// The size of the bodies of the ready messages in bytes, also from the statistics.
    pub ready_bytes: Option<u64>,
    /// The number of consumers, also from the statistics; `None` if the statistics are not available.
    pub consumers: Option<u64>,
}

impl QueueState {
    /// Returns the average size of a message body in bytes; `None` if the queue is empty or the statistics are not
    /// available.
    pub fn average_bytes(&self) -> Option<u64> {
        self.bytes?.checked_div(self.messages?)
    }
}

/// The path that lists the vhosts without statistics. Otherwise, the broker would compute the statistics for each
/// request, at a cost that grows with the number of vhosts.
pub(super) const VHOSTS: &str = "/api/vhosts?columns=name,description,tags,default_queue_type";

/// The query for queues without statistics, with only the columns that topo reads. The broker responds in half the
/// time, with two thirds of the data.
const QUEUES: &str = "?disable_stats=true&columns=name,durable,auto_delete,exclusive,arguments,internal";

/// The maximum number of vhosts that topo reads concurrently, with five requests per vhost. More requests would only
/// queue up in the broker.
const CONCURRENT_VHOSTS: usize = 4;

/// The maximum number of times that topo rereads a temporarily incomplete list.
pub(super) const MAX_RETRIES: usize = 3;

/// The delay before topo rereads a temporarily incomplete list. A queue that has crashed restarts within milliseconds.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(300);

impl Broker {
    /// Reads a snapshot of each vhost. The snapshots are in the order of `vhosts`.
    ///
    /// A missing vhost has the topology [`Topology::missing`](crate::model::Topology::missing). As of RabbitMQ 4.2.9
    /// and 4.3.3, the broker also responds with 404 for a vhost that the connected user is not allowed to see
    /// (`rabbit_web_dispatch_access_control:user_matches_vhost`). On earlier versions, such a vhost causes
    /// [`BrokerError::AccessRefused`].
    pub async fn read(&self, vhosts: &[VhostName]) -> Result<Vec<Snapshot>, BrokerError> {
        let (survey, listed) = join!(self.survey(), self.lists(vhosts));
        // A survey error concerns the whole broker, and takes precedence over errors in individual lists.
        listed.snapshots(survey?)
    }

    /// Reads the properties of the cluster and the settings of all vhosts. The responses are small, and arrive long
    /// before the lists.
    pub async fn survey(&self) -> Result<Survey, BrokerError> {
        let (cluster, deprecated_features, vhosts) =
            join!(self.cluster(), self.deprecated_features(), self.get::<wire::Vhosts>(VHOSTS));
        let mut cluster = cluster?;
        cluster.profile.deprecated_features = deprecated_features?;
        let settings = vhosts?.0.into_iter().map(|vhost| (vhost.name.clone(), vhost)).collect();
        Ok(Survey { cluster, settings })
    }

    /// Reads the lists of each vhost, several vhosts at a time. The results are in the order of `vhosts`.
    pub async fn lists(&self, vhosts: &[VhostName]) -> VhostLists {
        let reads = stream::iter(vhosts).map(async |vhost| (vhost.clone(), self.lists_of(vhost).await));
        VhostLists(reads.buffered(CONCURRENT_VHOSTS).collect().await)
    }

    /// Returns the vhosts that the connected user may see, sorted by name.
    pub async fn vhosts(&self) -> Result<Vec<VhostName>, BrokerError> {
        let listed: wire::Vhosts = self.get(VHOSTS).await?;
        let mut names: Vec<VhostName> = listed.0.into_iter().map(|vhost| VhostName::new(vhost.name)).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the message counts and consumers of all queues in a vhost, without topo's own consumers. The values may
    /// change immediately afterward. The activity of a missing vhost is empty.
    ///
    /// The message counts come from the queues themselves, so they are available even if statistics are disabled. The
    /// counts of quorum queues are up to one tick old, and streams have no counts.
    ///
    /// The consumers come from the statistics, which do not contain consumers that were added during the last
    /// statistics interval. The consumers are `None` if the broker does not list consumers, for example because
    /// statistics are disabled.
    pub async fn activity(&self, vhost: &VhostName) -> Result<Activity, BrokerError> {
        let consumers = path("consumers", &[vhost.as_str()]);
        let (totals, consumers) = join!(self.totals(vhost), self.get::<Vec<wire::Consumer>>(consumers));
        let mut by_queue = match consumers {
            Ok(consumers) => {
                let mut by_queue: BTreeMap<String, Vec<String>> = BTreeMap::new();
                // Ignores topo's own consumers.
                for consumer in consumers.into_iter().filter(|consumer| !is_topo_consumer(&consumer.consumer_tag)) {
                    let peers = by_queue.entry(consumer.queue.name).or_default();
                    peers.push(consumer.channel_details.unwrap_or_default());
                }
                Some(by_queue)
            }
            Err(error) if is_not_available(&error) => None,
            Err(error) => return Err(error),
        };
        let activity = |total: wire::QueueTotals| {
            let mut consumers = by_queue.as_mut().map(|by_queue| by_queue.remove(&total.name).unwrap_or_default());
            if let Some(peers) = &mut consumers {
                peers.sort();
            }
            let activity = QueueActivity {
                messages: total.messages,
                ready: total.messages_ready,
                unacknowledged: total.messages_unacknowledged,
                consumers,
                asked: false,
                unlisted_consumers: None,
                clients: None,
                default_exchange: None,
            };
            (QueueName::new(total.name), activity)
        };
        match totals {
            Ok(totals) => {
                let queues = totals.into_iter().map(activity).collect();
                Ok(Activity { queues, intervals: self.intervals(), ..Activity::default() })
            }
            Err(BrokerError::NotFound { .. }) => Ok(Activity::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns the activity of the queues in a topology. The broker omits queues that temporarily do not respond
    /// (`rabbit_control_misc:emitting_map_with_exit_handler/4`). If a durable queue that is neither exclusive nor
    /// auto-delete is missing, this function retries up to three times.
    ///
    /// # Errors
    /// The same errors as [`activity`](Self::activity).
    pub async fn activity_of(&self, topology: &Topology) -> Result<Activity, BrokerError> {
        let mut activity = self.activity(&topology.vhost).await?;
        for _ in 0..MAX_RETRIES {
            let is_missing = |(name, queue): (&QueueName, &Queue)| {
                queue.durable && !queue.exclusive && !queue.auto_delete && !activity.queues.contains_key(name)
            };
            if !topology.queues.iter().any(is_missing) {
                break;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
            let again = self.activity(&topology.vhost).await?;
            activity.queues.extend(again.queues);
        }
        Ok(activity)
    }

    /// Returns the maximum number of queues in a vhost. Returns `None` if there is no limit, or if the broker does not
    /// show the limit to the connected user.
    pub async fn queue_limit(&self, vhost: &VhostName) -> Result<Option<u64>, BrokerError> {
        match self.records(RecordKind::VhostLimit, vhost).await {
            Ok(limits) => Ok(limits.values().find(|it| it.id.setting() == Some("max-queues")).and_then(Record::limit)),
            Err(error) if is_not_available(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of connections to a vhost, or to all vhosts for [`VhostName::cluster`], by user. The numbers
    /// are up to one statistics interval old. The map is empty for a missing vhost. Returns `None` if the broker does
    /// not list the connections, for example because statistics are disabled.
    pub async fn connections(&self, vhost: &VhostName) -> Result<Option<BTreeMap<String, u64>>, BrokerError> {
        let path = match vhost.is_cluster() {
            true => path("connections", &[]),
            false => path("vhosts", &[vhost.as_str(), "connections"]),
        };
        match self.get::<Vec<wire::Connection>>(path + "?columns=user").await {
            Ok(connections) => {
                let mut by_user = BTreeMap::new();
                for connection in connections {
                    *by_user.entry(connection.user.unwrap_or_default()).or_default() += 1;
                }
                Ok(Some(by_user))
            }
            Err(BrokerError::NotFound { .. }) => Ok(Some(BTreeMap::new())),
            Err(error) if is_not_available(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the members, message count, message sizes and consumer count of a queue; `None` if the queue does not
    /// exist.
    pub async fn queue_state(&self, vhost: &VhostName, queue: &QueueName) -> Result<Option<QueueState>, BrokerError> {
        let path = path("queues", &[vhost.as_str(), queue.as_str()]);
        match self
            .get::<wire::QueueState>(
                path + "?columns=leader,members,online,messages,message_bytes,message_bytes_ready,consumers",
            )
            .await
        {
            Ok(wire::QueueState {
                leader,
                members,
                online,
                messages,
                message_bytes,
                message_bytes_ready,
                consumers,
            }) => {
                let (bytes, ready_bytes) = (message_bytes, message_bytes_ready);
                Ok(Some(QueueState { leader, members, online, messages, bytes, ready_bytes, consumers }))
            }
            Err(BrokerError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the cluster has several nodes, or if the nodes cannot be read.
    pub async fn is_cluster(&self) -> bool {
        match self.get::<Vec<serde::de::IgnoredAny>>("/api/nodes?columns=name").await {
            Ok(nodes) => nodes.len() != 1,
            Err(_) => true,
        }
    }

    /// Returns the bindings in a vhost and their properties keys, without the bindings of the default exchange. Sends
    /// one request.
    pub async fn bindings(&self, vhost: &VhostName) -> Result<(BTreeSet<Binding>, PropertiesKeys), BrokerError> {
        Ok(bindings(self.get(path("bindings", &[vhost.as_str()])).await?))
    }

    /// Returns the policies in a vhost. Sends one request.
    pub async fn policies(&self, vhost: &VhostName) -> Result<BTreeMap<PolicyName, Policy>, BrokerError> {
        Ok(policies(self.get(path("policies", &[vhost.as_str()])).await?))
    }

    /// Returns the operator policies in a vhost; an empty map if the broker does not list them for the connected user.
    /// Sends one request.
    pub async fn operator_policies(&self, vhost: &VhostName) -> Result<BTreeMap<PolicyName, Policy>, BrokerError> {
        Ok(self.list_operator_policies(vhost).await?.values().filter_map(Record::operator_policy).collect())
    }

    /// Returns the bindings from and to a queue or an exchange, without the bindings of the default exchange. Returns
    /// no bindings for other kinds of objects. The broker does not scan all bindings in the vhost for this request.
    pub async fn bindings_at(&self, vhost: &VhostName, id: &ObjectId) -> Result<BTreeSet<Binding>, BrokerError> {
        let listed = match id {
            ObjectId::Queue(name) => self.get(path("queues", &[vhost.as_str(), name.as_str(), "bindings"])).await?,
            ObjectId::Exchange(name) => {
                let from = |end: &str| path("exchanges", &[vhost.as_str(), name.as_str(), "bindings", end]);
                let (source, destination): (Vec<wire::Binding>, Vec<wire::Binding>) =
                    try_join!(self.get(from("source")), self.get(from("destination")))?;
                source.into_iter().chain(destination).collect()
            }
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => Vec::new(),
        };
        Ok(bindings(listed).0)
    }

    /// Returns the message totals of all queues in a vhost, from the *list* of queues. On 3.10 and earlier, a request
    /// for a single queue returns totals only from the statistics (`rabbit_mgmt_wm_queue`), which lag by up to 8 s.
    pub(super) async fn totals(&self, vhost: &VhostName) -> Result<Vec<wire::QueueTotals>, BrokerError> {
        let request = Request::get(path("queues", &[vhost.as_str()])).with_query(
            "disable_stats=true&enable_queue_totals=true\
             &columns=name,type,arguments,messages,messages_ready,messages_unacknowledged",
        );
        let sent = Instant::now();
        let totals: Vec<wire::QueueTotals> = self.send(&request).await?.json(&request)?;
        self.emptiness().record(vhost, &totals, sent, Instant::now());
        Ok(totals)
    }

    async fn cluster(&self) -> Result<Cluster, BrokerError> {
        let request = Request::get("/api/overview");
        let answer = match self.send(&request).await {
            // Every RabbitMQ management API provides this path.
            Err(BrokerError::NotFound { request, reason }) => {
                return Err(BrokerError::NotManagementApi {
                    url: self.shown_url(),
                    request,
                    status: 404,
                    content_type: Some("application/json".to_owned()),
                    excerpt: reason,
                });
            }
            answer => answer?,
        };
        let overview: wire::Overview = answer.json(&request)?;
        let product = overview.product_name.map_or_else(|| "RabbitMQ".to_owned(), |name| clean(&name));
        let reported = clean(&overview.rabbitmq_version.unwrap_or_default());
        let Ok(version) = reported.parse::<BrokerVersion>() else {
            let reported =
                if reported.is_empty() { clean(&overview.product_version.unwrap_or_default()) } else { reported };
            return Err(BrokerError::VersionUnknown { product, reported });
        };
        if !version.is_supported() {
            return Err(BrokerError::VersionTooOld { product, version });
        }
        Ok(Cluster {
            name: overview.cluster_name.unwrap_or_default(),
            product,
            profile: BrokerProfile {
                version,
                default_queue_type: overview.default_queue_type.filter(|kind| kind != "undefined"),
                exchange_types: overview.exchange_types.into_iter().map(|kind| kind.name).collect(),
                deprecated_features: BTreeMap::new(),
            },
        })
    }

    /// Returns the broker's deprecated features. The value is true if the broker permits the feature. Omits features
    /// for which this value is unknown. Returns an empty map if the broker does not provide the list to the connected
    /// user. Versions before 3.13 do not provide the list.
    async fn deprecated_features(&self) -> Result<BTreeMap<String, bool>, BrokerError> {
        match self.get::<Vec<wire::DeprecatedFeature>>("/api/deprecated-features").await {
            Ok(features) => Ok(features.into_iter().filter_map(wire::DeprecatedFeature::permission).collect()),
            Err(error) if is_not_available(&error) => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    async fn lists_of(&self, vhost: &VhostName) -> Result<Lists, BrokerError> {
        let (queues, exchanges, bindings, policies, records) = try_join!(
            self.get(path("queues", &[vhost.as_str()]) + QUEUES),
            self.get(path("exchanges", &[vhost.as_str()])),
            self.get(path("bindings", &[vhost.as_str()])),
            self.get(path("policies", &[vhost.as_str()])),
            self.list_operator_policies(vhost),
        )?;
        Ok(Lists { settings: None, queues, exchanges, bindings, policies, records })
    }
}

/// Returns true if the error means that the broker does not provide a list to the connected user. The cause is 400
/// "Stats in management UI are disabled on this node" (`rabbit_mgmt_util:bad_request`), an unknown path, or a missing
/// permission.
pub(super) fn is_not_available(error: &BrokerError) -> bool {
    matches!(
        error,
        BrokerError::Refused { .. }
            | BrokerError::NotFound { .. }
            | BrokerError::WrongTag { .. }
            | BrokerError::AccessRefused { .. }
    )
}
