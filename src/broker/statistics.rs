//! Reads the states of queues, their current and past counts, and the states of nodes. None of these requests changes a
//! queue or reads a message.

use super::connection::Broker;
use super::error::BrokerError;
use super::read::is_not_available;
use crate::model::{QueueName, VhostName};
use crate::plan::request::{Request, path};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The counts and the state of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueReading {
    /// The number of messages; `None` for a stream, and for a queue whose node is down.
    pub messages: Option<u64>,
    /// The number of messages that are ready for delivery.
    pub ready: Option<u64>,
    /// The number of messages that consumers have received but not acknowledged.
    pub unacknowledged: Option<u64>,
    /// The broker's name for the state, such as `running` or `down`.
    pub state: Option<String>,
    /// The node that hosts the queue, or the leader of a quorum queue or stream.
    pub node: Option<String>,
    /// True if the queue is exclusive: the broker deletes the queue when the connection that declared it closes.
    pub is_exclusive: bool,
}

/// The statistics of a queue, which are up to one statistics interval old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueHistory {
    /// The number of messages; `None` for a new queue.
    pub messages: Option<u64>,
    /// The number of consumers; `None` for a new queue.
    pub consumers: Option<u64>,
    /// The past message counts, newest first, one for each step of the window. Empty for a new queue. The broker
    /// returns 0 for a time before the queue existed, and for a time before its oldest sample.
    pub samples: Vec<u64>,
}

/// A period for which the broker returns past counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// The length in seconds.
    pub length: u64,
    /// The time between two samples in seconds.
    pub step: u64,
}

impl Window {
    /// The windows that all versions support, shortest first. By default, the broker keeps one hour of samples for each
    /// queue. It keeps more samples only if `sample_retention_policies` is configured.
    pub const ALL: [Self; 3] =
        [Self { length: 600, step: 5 }, Self { length: 3600, step: 60 }, Self { length: 86_400, step: 1800 }];
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// True if the node is running.
    pub is_running: bool,
    /// The time since the node started, in milliseconds; `None` if the node is down.
    pub uptime: Option<u64>,
}

impl Broker {
    /// Returns the counts and the state of all queues in a vhost. The counts come from the queues themselves, so they
    /// are available even if statistics are disabled. The counts of quorum queues are up to one tick old.
    ///
    /// # Errors
    /// The queues could not be read, for example because the vhost does not exist.
    pub async fn queue_readings(&self, vhost: &VhostName) -> Result<BTreeMap<QueueName, QueueReading>, BrokerError> {
        let request = Request::get(path("queues", &[vhost.as_str()])).with_query(
            "disable_stats=true&enable_queue_totals=true\
             &columns=name,state,node,leader,exclusive,messages,messages_ready,messages_unacknowledged",
        );
        let listed: Vec<Deduplicated<QueueEntry>> = self.send(&request).await?.json(&request)?;
        let reading = |Deduplicated(queue): Deduplicated<QueueEntry>| {
            let reading = QueueReading {
                messages: queue.messages,
                ready: queue.messages_ready,
                unacknowledged: queue.messages_unacknowledged,
                state: queue.state,
                node: queue.leader.or(queue.node),
                is_exclusive: queue.exclusive.unwrap_or(false),
            };
            (QueueName::new(queue.name), reading)
        };
        Ok(listed.into_iter().map(reading).collect())
    }

    /// Returns the statistics of all queues in a vhost, with the samples of one window. Sends one request. Returns
    /// `None` if statistics are disabled.
    ///
    /// # Errors
    /// The queues could not be read, for example because the vhost does not exist.
    pub async fn queue_histories(
        &self,
        vhost: &VhostName,
        window: Window,
    ) -> Result<Option<BTreeMap<QueueName, QueueHistory>>, BrokerError> {
        let request = Request::get(path("queues", &[vhost.as_str()])).with_query(&format!(
            "lengths_age={}&lengths_incr={}&columns=name,messages,consumers,messages_details.samples.sample",
            window.length, window.step
        ));
        let listed: Vec<StatisticsEntry> = match self.send(&request).await {
            Ok(response) => response.json(&request)?,
            Err(BrokerError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let history = |queue: StatisticsEntry| {
            let samples = queue.messages_details.map(|details| details.samples).unwrap_or_default();
            let samples = samples.into_iter().map(|sample| sample.sample.unwrap_or_default()).collect();
            let history = QueueHistory { messages: queue.messages, consumers: queue.consumers, samples };
            (QueueName::new(queue.name), history)
        };
        Ok(Some(listed.into_iter().map(history).collect()))
    }

    /// Returns the states of the nodes; `None` if the broker does not show them to the connected user. Only a user with
    /// the `monitoring` or `administrator` tag may read the states.
    ///
    /// # Errors
    /// The nodes could not be read for another reason.
    pub async fn node_states(&self) -> Result<Option<BTreeMap<String, NodeState>>, BrokerError> {
        match self.get::<Vec<NodeEntry>>("/api/nodes?columns=name,running,uptime").await {
            Ok(nodes) => {
                let state = |node: NodeEntry| (node.name, NodeState { is_running: node.running, uptime: node.uptime });
                Ok(Some(nodes.into_iter().map(state).collect()))
            }
            Err(error) if is_not_available(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// An entry in the list of queues without statistics.
#[derive(Deserialize)]
struct QueueEntry {
    name: String,
    state: Option<String>,
    node: Option<String>,
    leader: Option<String>,
    exclusive: Option<bool>,
    messages: Option<u64>,
    messages_ready: Option<u64>,
    messages_unacknowledged: Option<u64>,
}

/// An entry in which the broker may list the `state` field twice. RabbitMQ 3.13 and later do so for a quorum queue if
/// the state of the leader process differs from the state that the broker derives from the nodes
/// (`rabbit_quorum_queue:info/2` with `state` and `type_specific`). For example, the two values are `down` and
/// `running`. A value other than `running` takes precedence over `running`.
struct Deduplicated<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Deduplicated<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(FieldsVisitor)?;
        T::deserialize(Value::Object(fields)).map(Self).map_err(D::Error::custom)
    }
}

/// Reads the fields of an object, with one value for each field.
struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            if !fields.contains_key(&key) || value != "running" {
                fields.insert(key, value);
            }
        }
        Ok(fields)
    }
}

/// An entry in the list of queues with statistics. A new queue has only a name.
#[derive(Deserialize)]
struct StatisticsEntry {
    name: String,
    messages: Option<u64>,
    consumers: Option<u64>,
    messages_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    sample: Option<u64>,
}

/// An entry in the list of nodes.
#[derive(Deserialize)]
struct NodeEntry {
    name: String,
    running: bool,
    uptime: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_that_is_not_running_takes_precedence() {
        for (json, expected) in [
            (r#"{"name": "q", "state": "down", "state": "running"}"#, "down"),
            (r#"{"state": "running", "name": "q", "state": "timeout"}"#, "timeout"),
            (r#"{"name": "q", "state": "running"}"#, "running"),
        ] {
            let Deduplicated(entry) = serde_json::from_str::<Deduplicated<QueueEntry>>(json).unwrap();
            assert_eq!((entry.name.as_str(), entry.state.as_deref()), ("q", Some(expected)));
        }
    }
}
