//! Reads a broker: lists only, in parallel, never one request per object, and never `/api/definitions`, which takes an
//! administrator and leaves things out (internal exchanges from 4.2.9 and 4.3.3 on). The tag `management` is enough.

use super::connection::Broker;
use super::error::BrokerError;
use super::snapshot::{Lists, PropertiesKeys, Snapshot, bindings, policies};
use super::survey::{Cluster, Survey, VhostLists};
use super::{records, wire};
use crate::model::naming::TRANSPORT_TAG;
use crate::model::printable::clean;
use crate::model::{
    Binding, BrokerVersion, ObjectId, Policy, PolicyName, QueueName, Record, RecordKind, Records, VhostName,
};
use crate::plan::request::{Request, path};
use crate::plan::{Activity, QueueActivity};
use crate::rabbitmq::BrokerProfile;
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use tokio::{join, try_join};

/// The members of a queue, and the size of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The node of the leader of a quorum queue or stream, if there is one.
    pub leader: Option<String>,
    /// The nodes of its members; none for a classic queue.
    pub members: Vec<String>,
    /// Those that are up.
    pub online: Vec<String>,
    /// The bodies of its messages, in bytes, on average. By statistics, which are seconds old or switched off.
    pub average_bytes: Option<u64>,
    /// How many consume from it. By statistics, too.
    pub consumers: Option<u64>,
}

/// No statistics of the vhosts: theirs grow with the number of vhosts, and the broker computes them on the spot.
const VHOSTS: &str = "/api/vhosts?columns=name,description,tags,default_queue_type";

/// No statistics of the queues, and no more columns than are read: the broker takes half as long, for two thirds of the text.
const QUEUES: &str = "?disable_stats=true&columns=name,durable,auto_delete,exclusive,arguments,internal";

/// Each is five requests at once. More of them only wait for one another in the broker.
const VHOSTS_AT_ONCE: usize = 4;

impl Broker {
    /// Reads these vhosts, in this order.
    ///
    /// A vhost that is not there is one with [`Topology::missing`](crate::model::Topology::missing). From 4.2.9 and 4.3.3
    /// on, the broker says the same (404) of a vhost that this user may not see (`rabbit_web_dispatch_access_control:
    /// user_matches_vhost`); before, that is [`BrokerError::AccessRefused`].
    pub async fn read(&self, vhosts: &[VhostName]) -> Result<Vec<Snapshot>, BrokerError> {
        let (survey, listed) = join!(self.survey(), self.lists(vhosts));
        // In this order: what is wrong with the broker as a whole says more than what is wrong with one list.
        listed.snapshots(survey?)
    }

    /// Reads what is the same for all vhosts, and their settings. That is little, and there long before the lists are.
    pub async fn survey(&self) -> Result<Survey, BrokerError> {
        let (cluster, deprecated_features, vhosts) =
            join!(self.cluster(), self.deprecated_features(), self.get::<wire::Vhosts>(VHOSTS));
        let mut cluster = cluster?;
        cluster.profile.deprecated_features = deprecated_features?;
        let settings = vhosts?.0.into_iter().map(|vhost| (vhost.name.clone(), vhost)).collect();
        Ok(Survey { cluster, settings })
    }

    /// Reads the lists of these vhosts, in this order, of some at once.
    pub async fn lists(&self, vhosts: &[VhostName]) -> VhostLists {
        let of_each = stream::iter(vhosts).map(async |vhost| (vhost.clone(), self.lists_of(vhost).await));
        VhostLists(of_each.buffered(VHOSTS_AT_ONCE).collect().await)
    }

    /// The vhosts that this user may see, by name.
    pub async fn vhosts(&self) -> Result<Vec<VhostName>, BrokerError> {
        let listed: wire::Vhosts = self.get(VHOSTS).await?;
        let mut names: Vec<VhostName> = listed.0.into_iter().map(|vhost| VhostName::new(vhost.name)).collect();
        names.sort();
        Ok(names)
    }

    /// What the queues of a vhost hold and who consumes from them. Ages at once. Of a vhost that is not there: nothing.
    ///
    /// Totals come from the queues themselves and not from statistics, so they are there on brokers with statistics
    /// disabled, too; those of quorum queues are up to a tick old, and streams have none. Consumers come from statistics: one that
    /// subscribed within the last interval is not listed yet, and they are `None` where the broker does not list them, as with
    /// statistics disabled.
    pub async fn activity(&self, vhost: &VhostName) -> Result<Activity, BrokerError> {
        let consumers = path("consumers", &[vhost.as_str()]);
        let (totals, consumers) = join!(self.totals(vhost), self.get::<Vec<wire::Consumer>>(consumers));
        let mut by_queue = match consumers {
            Ok(consumers) => {
                let mut by_queue: BTreeMap<String, Vec<String>> = BTreeMap::new();
                // A transport of topo's is no consumer that anybody would miss.
                for consumer in consumers.into_iter().filter(|consumer| consumer.consumer_tag != TRANSPORT_TAG) {
                    let peers = by_queue.entry(consumer.queue.name).or_default();
                    peers.push(consumer.channel_details.unwrap_or_default());
                }
                Some(by_queue)
            }
            Err(error) if is_not_offered(&error) => None,
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

    /// How many queues a vhost may have; `None` without such a limit, and where this user may not see it.
    pub async fn queue_limit(&self, vhost: &VhostName) -> Result<Option<u64>, BrokerError> {
        match self.records(RecordKind::VhostLimit, vhost).await {
            Ok(limits) => Ok(limits.values().find(|it| it.id.setting() == Some("max-queues")).and_then(Record::limit)),
            Err(error) if is_not_offered(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of connections of a vhost, at most one statistics interval old; `None` if statistics are disabled.
    pub async fn connections(&self, vhost: &VhostName) -> Result<Option<u64>, BrokerError> {
        let path = path("vhosts", &[vhost.as_str(), "connections"]);
        match self.get::<Vec<serde::de::IgnoredAny>>(path + "?columns=name").await {
            Ok(connections) => Ok(Some(connections.len() as u64)),
            Err(BrokerError::NotFound { .. }) => Ok(Some(0)),
            Err(error) if is_not_offered(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The state of one queue; `None` if it does not exist.
    pub async fn queue_state(&self, vhost: &VhostName, queue: &QueueName) -> Result<Option<QueueState>, BrokerError> {
        let path = path("queues", &[vhost.as_str(), queue.as_str()]);
        match self
            .get::<wire::QueueState>(path + "?columns=leader,members,online,messages,message_bytes,consumers")
            .await
        {
            Ok(wire::QueueState { leader, members, online, messages, message_bytes, consumers }) => {
                let average_bytes =
                    message_bytes.zip(messages).and_then(|(bytes, messages)| bytes.checked_div(messages));
                Ok(Some(QueueState { leader, members, online, average_bytes, consumers }))
            }
            Err(BrokerError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there are several nodes, or it cannot be told: who may not see nodes must reckon with them.
    pub async fn is_cluster(&self) -> bool {
        match self.get::<Vec<serde::de::IgnoredAny>>("/api/nodes?columns=name").await {
            Ok(nodes) => nodes.len() != 1,
            Err(_) => true,
        }
    }

    /// The bindings of a vhost with the broker's keys for them, but for those of the default exchange. One request.
    pub async fn bindings(&self, vhost: &VhostName) -> Result<(BTreeSet<Binding>, PropertiesKeys), BrokerError> {
        Ok(bindings(self.get(path("bindings", &[vhost.as_str()])).await?))
    }

    /// The policies of a vhost. One request.
    pub async fn policies(&self, vhost: &VhostName) -> Result<BTreeMap<PolicyName, Policy>, BrokerError> {
        Ok(policies(self.get(path("policies", &[vhost.as_str()])).await?))
    }

    /// The operator policies of a vhost; none where they cannot be read. One request.
    pub async fn operator_policies(&self, vhost: &VhostName) -> Result<BTreeMap<PolicyName, Policy>, BrokerError> {
        Ok(self.listed_operator_policies(vhost).await?.values().filter_map(Record::operator_policy).collect())
    }

    /// The bindings that begin or end at a queue or an exchange, but for those of the default exchange. The broker finds
    /// them without looking through all of the vhost's.
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

    /// The totals of all queues of a vhost, asked for on the *list*: up to 3.10 a single queue has none without
    /// statistics (`rabbit_mgmt_wm_queue`), and those lag by up to 8 s.
    pub(super) async fn totals(&self, vhost: &VhostName) -> Result<Vec<wire::QueueTotals>, BrokerError> {
        let request = Request::get(path("queues", &[vhost.as_str()])).with_query(
            "disable_stats=true&enable_queue_totals=true\
             &columns=name,type,arguments,messages,messages_ready,messages_unacknowledged",
        );
        let asked = Instant::now();
        let totals: Vec<wire::QueueTotals> = self.send(&request).await?.json(&request)?;
        self.emptiness().saw(vhost, &totals, asked, Instant::now());
        Ok(totals)
    }

    async fn cluster(&self) -> Result<Cluster, BrokerError> {
        let request = Request::get("/api/overview");
        let answer = match self.send(&request).await {
            // There is no RabbitMQ without this path.
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
        let said = clean(&overview.rabbitmq_version.unwrap_or_default());
        let Ok(version) = said.parse::<BrokerVersion>() else {
            let said = if said.is_empty() { clean(&overview.product_version.unwrap_or_default()) } else { said };
            return Err(BrokerError::VersionUnknown { product, said });
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

    /// What the broker permits of what it will give up. Before 3.13 there is no such list.
    async fn deprecated_features(&self) -> Result<BTreeMap<String, bool>, BrokerError> {
        match self.get::<Vec<wire::DeprecatedFeature>>("/api/deprecated-features").await {
            Ok(features) => Ok(features.into_iter().filter_map(wire::DeprecatedFeature::permission).collect()),
            Err(error) if is_not_offered(&error) => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    async fn lists_of(&self, vhost: &VhostName) -> Result<Lists, BrokerError> {
        let (queues, exchanges, bindings, policies, records) = try_join!(
            self.get(path("queues", &[vhost.as_str()]) + QUEUES),
            self.get(path("exchanges", &[vhost.as_str()])),
            self.get(path("bindings", &[vhost.as_str()])),
            self.get(path("policies", &[vhost.as_str()])),
            self.listed_operator_policies(vhost),
        )?;
        Ok(Lists { settings: None, queues, exchanges, bindings, policies, records })
    }

    /// Adds the records of these kinds to a snapshot. One request a kind; operator policies are in every snapshot.
    pub async fn read_records(&self, snapshot: &mut Snapshot, kinds: &BTreeSet<RecordKind>) -> Result<(), BrokerError> {
        for kind in kinds.iter().filter(|kind| **kind != RecordKind::OperatorPolicy) {
            match self.records(*kind, &snapshot.topology.vhost).await {
                Ok(records) => snapshot.topology.records.extend(records),
                // The vhost does not exist yet.
                Err(BrokerError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The records of a kind in a vhost. One request.
    pub async fn records(&self, kind: RecordKind, vhost: &VhostName) -> Result<Records, BrokerError> {
        let path = path(kind.row().path, &[vhost.as_str()]);
        Ok(records::listed(kind, self.get(path).await?))
    }

    /// Every user may read them on RabbitMQ; where that is not so, or where there is no such list, they count as none,
    /// because a plan without them is only less well informed.
    async fn listed_operator_policies(&self, vhost: &VhostName) -> Result<Records, BrokerError> {
        match self.records(RecordKind::OperatorPolicy, vhost).await {
            Err(BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. } | BrokerError::NotFound { .. }) => {
                Ok(Records::new())
            }
            other => other,
        }
    }
}

/// Whether the broker is well and just does not have this list: 400 "Stats in management UI are disabled on this node"
/// (`rabbit_mgmt_util:bad_request`), or no such path.
fn is_not_offered(error: &BrokerError) -> bool {
    matches!(
        error,
        BrokerError::Refused { .. }
            | BrokerError::NotFound { .. }
            | BrokerError::WrongTag { .. }
            | BrokerError::AccessRefused { .. }
    )
}
