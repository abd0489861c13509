//! Reads data about the client applications that use queues: the consumers' connections, and the publishes through the
//! default exchange. The data comes from the statistics, which are up to one statistics interval old.

use super::connection::Broker;
use super::error::BrokerError;
use super::plain::{Plain, peer};
use super::read::is_not_available;
use crate::model::naming::MigrationNames;
use crate::model::{Destination, QueueName, Topology, VhostName};
use crate::plan::request::path;
use crate::plan::{Activity, DefaultExchangePublishes, QueueClient};
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::join;

/// The maximum number of queues whose publish statistics topo reads concurrently.
const CONCURRENT_QUEUES: usize = 8;

/// The query for the publish counts and rates of a queue or an exchange. The query includes the average rate over the
/// last minute, because the current rate is often 0 between two messages.
const PUBLISHES: &str = "?msg_rates_age=60&msg_rates_incr=5&columns=incoming,\
                         message_stats.publish,message_stats.publish_details,\
                         message_stats.publish_out,message_stats.publish_out_details";

/// The maximum length of a product name or version, which clients choose freely.
const MAX_CHARACTERS: usize = 60;

/// An entry of `GET /api/vhosts/VHOST/connections`.
#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    client_properties: Option<Properties>,
    /// The client's address.
    #[serde(flatten, deserialize_with = "peer")]
    peer: Option<String>,
}

/// The client properties of a connection. py-amqp sends `product_version` instead of `version`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    product: Option<Plain>,
    version: Option<Plain>,
    product_version: Option<Plain>,
}

/// An entry of `GET /api/vhosts/VHOST/channels`.
#[derive(Deserialize)]
struct Channel {
    #[serde(default, deserialize_with = "peer")]
    connection_details: Option<String>,
    global_prefetch_count: Option<u64>,
}

/// The statistics of a queue or an exchange.
#[derive(Default, Deserialize)]
struct Statistics {
    #[serde(default)]
    incoming: Vec<Incoming>,
    #[serde(default)]
    message_stats: Counts,
}

/// The messages that one exchange has routed to a queue. The broker lists them only with `management.rates_mode =
/// detailed`.
#[derive(Deserialize)]
struct Incoming {
    exchange: ExchangeReference,
    #[serde(default)]
    stats: Counts,
}

#[derive(Deserialize)]
struct ExchangeReference {
    name: String,
}

/// Message counts and rates. The broker returns `[]` for an object without any of the requested columns. serde reads
/// `[]` as a struct with default values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    publish: Option<u64>,
    publish_details: Option<Rate>,
    publish_out: Option<u64>,
    publish_out_details: Option<Rate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rate {
    rate: Option<f64>,
    avg_rate: Option<f64>,
}

/// The number of messages since the broker started to collect statistics, and the rate per second. The rate is the
/// higher of the current rate and the average over the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Flow {
    total: u64,
    rate: f64,
}

impl Flow {
    fn new(total: Option<u64>, details: Option<&Rate>) -> Self {
        let rate = |field: fn(&Rate) -> Option<f64>| details.and_then(field).unwrap_or(0.0);
        Self { total: total.unwrap_or(0), rate: rate(|it| it.rate).max(rate(|it| it.avg_rate)) }
    }
}

impl Broker {
    /// Adds to `activity` the clients that consume from `queues`, and the publishes to `queues` through the default
    /// exchange. Leaves both values unknown if the broker does not list them, for example because statistics are
    /// disabled.
    ///
    /// # Errors
    /// A list could not be read.
    pub async fn add_clients(
        &self,
        current: &Topology,
        queues: &[QueueName],
        activity: &mut Activity,
    ) -> Result<(), BrokerError> {
        let vhost = &current.vhost;
        self.add_consumer_clients(vhost, queues, activity).await?;
        let through_default = self.flow_of_default_exchange(vhost).await?;
        if through_default.total == 0 {
            return Ok(());
        }
        let bound: BTreeSet<&QueueName> = current
            .bindings
            .iter()
            .filter_map(|binding| match &binding.destination {
                Destination::Queue(name) => Some(name),
                Destination::Exchange(_) => None,
            })
            .collect();
        let read = stream::iter(queues).map(async |name| (name, self.statistics_of(vhost, name).await));
        let read: Vec<_> = read.buffered(CONCURRENT_QUEUES).collect().await;
        for (name, statistics) in read {
            let (Some(statistics), Some(queue)) = (statistics?, activity.queues.get_mut(name)) else { continue };
            // A migration in progress has removed the queue's bindings.
            let hold = QueueName::new(MigrationNames::of(name).hold);
            let is_bound = bound.contains(name) || current.queues.contains_key(&hold);
            queue.default_exchange = default_publishes(&statistics, through_default, is_bound);
        }
        Ok(())
    }

    /// Adds to `activity` the clients that consume from `queues`. Leaves the clients unknown if the broker does not
    /// list them.
    ///
    /// # Errors
    /// A list could not be read.
    pub async fn add_consumer_clients(
        &self,
        vhost: &VhostName,
        queues: &[QueueName],
        activity: &mut Activity,
    ) -> Result<(), BrokerError> {
        let has_consumers = |name: &QueueName| {
            activity.queues.get(name).is_some_and(|it| it.consumers.as_ref().is_some_and(|all| !all.is_empty()))
        };
        if !queues.iter().any(has_consumers) {
            return Ok(());
        }
        let Some(by_peer) = self.clients_by_peer(vhost).await? else { return Ok(()) };
        for name in queues {
            let Some(queue) = activity.queues.get_mut(name) else { continue };
            queue.clients = queue.consumers.as_ref().map(|consumers| {
                consumers.iter().map(|address| by_peer.get(address).cloned().unwrap_or_default()).collect()
            });
        }
        Ok(())
    }

    /// Returns the clients of a vhost by address; `None` if the broker does not list its connections.
    async fn clients_by_peer(&self, vhost: &VhostName) -> Result<Option<BTreeMap<String, QueueClient>>, BrokerError> {
        let list = |kind: &str, columns: &str| path("vhosts", &[vhost.as_str(), kind]) + "?columns=" + columns;
        let connections = list("connections", "peer_host,peer_port,client_properties");
        let channels = list("channels", "connection_details,global_prefetch_count");
        let (connections, channels) =
            join!(self.get::<Vec<Connection>>(connections), self.get::<Vec<Channel>>(channels));
        let connections = match connections {
            Ok(connections) => connections,
            Err(error) if is_not_available(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let with_global_prefetch: BTreeSet<String> = match channels {
            Ok(channels) => channels
                .into_iter()
                .filter(|channel| channel.global_prefetch_count.is_some_and(|count| count > 0))
                .filter_map(|channel| channel.connection_details)
                .collect(),
            Err(error) if is_not_available(&error) => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        let client = |connection: Connection| {
            let address = connection.peer?;
            let Properties { product, version, product_version } = connection.client_properties.unwrap_or_default();
            let text = |value: Option<Plain>| {
                value.and_then(Plain::into_text).map(|text| text.chars().take(MAX_CHARACTERS).collect::<String>())
            };
            let has_global_prefetch = with_global_prefetch.contains(&address);
            let version = text(version).or_else(|| text(product_version));
            Some((address, QueueClient { product: text(product), version, has_global_prefetch }))
        };
        Ok(Some(connections.into_iter().filter_map(client).collect()))
    }

    /// Returns the number and the rate of messages that the default exchange of a vhost has routed; 0 if the broker
    /// does not count them.
    async fn flow_of_default_exchange(&self, vhost: &VhostName) -> Result<Flow, BrokerError> {
        // The management API calls the default exchange `amq.default`.
        let path = path("exchanges", &[vhost.as_str(), "amq.default"]);
        match self.get::<Statistics>(path + PUBLISHES).await {
            Ok(Statistics { message_stats: it, .. }) => Ok(Flow::new(it.publish_out, it.publish_out_details.as_ref())),
            Err(error) if is_not_available(&error) => Ok(Flow::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns the statistics of a queue; `None` if the queue does not exist, or if its statistics are not available.
    async fn statistics_of(&self, vhost: &VhostName, queue: &QueueName) -> Result<Option<Statistics>, BrokerError> {
        match self.get::<Statistics>(path("queues", &[vhost.as_str(), queue.as_str()]) + PUBLISHES).await {
            Ok(statistics) => Ok(Some(statistics)),
            // The management API cannot address a queue named `.` or `..`.
            Err(BrokerError::Unaddressable { .. }) => Ok(None),
            Err(error) if is_not_available(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Determines how many messages reach a queue through the default exchange. Returns `None` if there are no such
/// messages, or if the only result is an upper bound with a rate of 0. `through_default` is the flow from the default
/// exchange to all queues in the vhost. `is_bound` is true if other exchanges also route to the queue.
fn default_publishes(
    statistics: &Statistics,
    through_default: Flow,
    is_bound: bool,
) -> Option<DefaultExchangePublishes> {
    let Statistics { incoming, message_stats } = statistics;
    let of_queue = Flow::new(message_stats.publish, message_stats.publish_details.as_ref());
    let listed = incoming.iter().find(|it| it.exchange.name.is_empty());
    let (flow, is_upper_bound) = match listed {
        Some(listed) => (Flow::new(listed.stats.publish, listed.stats.publish_details.as_ref()), false),
        // The broker lists other exchanges, but not the default exchange.
        None if !incoming.is_empty() => return None,
        // The broker does not report which exchange the messages came from.
        None => {
            let rate = of_queue.rate.min(through_default.rate);
            (Flow { total: of_queue.total.min(through_default.total), rate }, is_bound)
        }
    };
    // An upper bound is meaningful only with a nonzero rate.
    if flow.total == 0 || is_upper_bound && flow.rate <= 0.0 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is small and not negative")]
    let per_second = flow.rate.max(0.0).ceil() as u64;
    Some(DefaultExchangePublishes { per_second, is_upper_bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(statistics: &str, is_bound: bool) -> Option<(u64, bool)> {
        let statistics: Statistics = serde_json::from_str(statistics).unwrap();
        let through_default = Flow { total: 100, rate: 7.5 };
        default_publishes(&statistics, through_default, is_bound).map(|it| (it.per_second, it.is_upper_bound))
    }

    #[test]
    fn publishes_through_the_default_exchange_are_determined() {
        let basic =
            r#"{"incoming": [], "message_stats": {"publish": 90, "publish_details": {"rate": 0.0, "avg_rate": 9.2}}}"#;
        assert_eq!(found(basic, false), Some((8, false)));
        assert_eq!(found(basic, true), Some((8, true)));
        let idle = r#"{"incoming": [], "message_stats": {"publish": 90, "publish_details": {"rate": 0.0}}}"#;
        assert_eq!((found(idle, false), found(idle, true)), (Some((0, false)), None));
        let detailed = r#"{"incoming": [{"exchange": {"name": "", "vhost": "/"}, "stats": {"publish": 5}}]}"#;
        assert_eq!(found(detailed, true), Some((0, false)));
        assert_eq!(found(r#"{"incoming": [{"exchange": {"name": "e"}, "stats": {"publish": 5}}]}"#, false), None);
        assert_eq!(found(r#"{"incoming": [], "message_stats": []}"#, false), None);
        assert_eq!((found("{}", false), found(r#"{"incoming": []}"#, false)), (None, None));
    }

    #[test]
    fn connections_of_all_clients_are_parsed() {
        let read = |text: &str| serde_json::from_str::<Connection>(text).unwrap();
        let connection = read(
            r#"{"client_properties": {"product": "py-amqp", "product_version": "5.4.2", "capabilities": {}},
                "peer_host": "10.0.0.4", "peer_port": 4000}"#,
        );
        assert_eq!(connection.peer.as_deref(), Some("10.0.0.4:4000"));
        // A connection that is not established yet, or a plugin's direct connection.
        assert!(read("{}").peer.is_none());
        assert!(
            read(r#"{"client_properties": {"product": 5}, "peer_host": "undefined", "peer_port": "undefined"}"#)
                .peer
                .is_none()
        );
    }
}
