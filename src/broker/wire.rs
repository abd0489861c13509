//! The response formats of the management API.
//!
//! Parsing ignores unknown fields. Fields that some versions omit are optional. A field is required if topo depends on
//! it and every version sends it.
//!
//! Sources: `rabbit_mgmt_format:queue`, `:exchange`, `:binding` in rabbitmq_management_agent, `rabbit_mgmt_wm_vhosts`,
//! `rabbit_mgmt_wm_overview`, `rabbit_mgmt_wm_consumers`, in versions 3.8 to 4.3.

use super::plain::{Plain, peer};
use crate::model::{ApplyTo, Arguments, Priority};
use serde::de::{self, Deserializer};
use serde::{Deserialize, de::MapAccess, de::SeqAccess, de::Visitor};
use std::fmt;

/// The response to `GET /api/overview`.
#[derive(Debug, Deserialize)]
pub(super) struct Overview {
    /// Absent on LavinMQ.
    pub(super) rabbitmq_version: Option<String>,
    pub(super) product_name: Option<String>,
    pub(super) product_version: Option<String>,
    pub(super) cluster_name: Option<String>,
    /// The node's default queue type (4.0 and later).
    pub(super) default_queue_type: Option<String>,
    /// The exchange types that this node supports, including types from plugins.
    #[serde(default)]
    pub(super) exchange_types: Vec<ExchangeType>,
}

/// An entry of `GET /api/deprecated-features` (3.13 and later).
#[derive(Debug, Deserialize)]
pub(super) struct DeprecatedFeature {
    name: String,
    /// The configured state, `permitted` or `denied` (4.1.3 and later, `rabbit_depr_ff_extra`).
    state: Option<String>,
    deprecation_phase: Option<String>,
}

impl DeprecatedFeature {
    /// Returns the feature's name, and whether the feature is permitted. Returns `None` if the broker does not report
    /// whether the feature is permitted. Without a state, only the `removed` and `disconnected` phases are conclusive,
    /// because the other phases determine only the default.
    pub(super) fn permission(self) -> Option<(String, bool)> {
        let is_permitted = match (self.state.as_deref(), self.deprecation_phase.as_deref()) {
            (Some("permitted"), _) => true,
            (Some("denied"), _) | (None, Some("removed" | "disconnected")) => false,
            (Some(_) | None, _) => return None,
        };
        Some((self.name, is_permitted))
    }
}

/// A broker listener in the response to `GET /api/overview`.
#[derive(Debug, Deserialize)]
pub(super) struct Listener {
    pub(super) node: String,
    /// The protocol, such as `amqp`, `amqp/ssl`, `http` or `clustering`.
    pub(super) protocol: String,
    pub(super) port: u16,
}

/// A connection. A connection that is not established yet has no user.
#[derive(Debug, Deserialize)]
pub(super) struct Connection {
    pub(super) user: Option<String>,
}

/// An exchange type.
#[derive(Debug, Deserialize)]
pub(super) struct ExchangeType {
    pub(super) name: String,
}

/// The response to `GET /api/vhosts?columns=…`, without vhosts that are being deleted. The broker lists a vhost that is
/// being deleted as an empty list on 3.10.8, and as an object without a name on 4.3.6.
#[derive(Debug, Deserialize)]
#[serde(from = "Vec<VhostEntry>")]
pub(super) struct Vhosts(pub(super) Vec<Vhost>);

#[derive(Deserialize)]
#[serde(untagged)]
enum VhostEntry {
    Existing(Vhost),
    Deleted(de::IgnoredAny),
}

impl From<Vec<VhostEntry>> for Vhosts {
    fn from(entries: Vec<VhostEntry>) -> Self {
        let existing = entries.into_iter().filter_map(|entry| match entry {
            VhostEntry::Existing(vhost) => Some(vhost),
            VhostEntry::Deleted(_) => None,
        });
        Self(existing.collect())
    }
}

/// An entry of `GET /api/vhosts`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Vhost {
    pub(super) name: String,
    pub(super) description: Option<String>,
    #[serde(default, deserialize_with = "tags")]
    pub(super) tags: Vec<String>,
    /// The default queue type. On 3.10 and 3.11, the string `undefined` if the type is not set.
    default_queue_type: Option<String>,
}

impl Vhost {
    /// Returns the vhost's default queue type; `None` if the type is not set.
    pub(super) fn default_queue_type(&self) -> Option<&str> {
        self.default_queue_type.as_deref().filter(|kind| *kind != "undefined" && !kind.is_empty())
    }
}

/// An entry of `GET /api/queues/VHOST?disable_stats=true`.
#[derive(Debug, Deserialize)]
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    /// Null for quorum queues and streams on some versions.
    pub(super) exclusive: Option<bool>,
    #[serde(deserialize_with = "arguments")]
    pub(super) arguments: Arguments,
    /// True if a plugin owns the queue. Most versions do not send this field.
    pub(super) internal: Option<bool>,
}

/// An entry of `GET /api/queues/VHOST?disable_stats=true&enable_queue_totals=true`.
#[derive(Debug, Deserialize)]
pub(super) struct QueueTotals {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "arguments")]
    pub(super) arguments: Arguments,
    pub(super) messages: Option<u64>,
    pub(super) messages_ready: Option<u64>,
    pub(super) messages_unacknowledged: Option<u64>,
}

/// The response to `GET /api/queues/VHOST/NAME?columns=…` with the columns of this struct.
#[derive(Debug, Deserialize)]
pub(super) struct QueueState {
    /// Null or absent if the queue has no leader.
    pub(super) leader: Option<String>,
    #[serde(default)]
    pub(super) members: Vec<String>,
    #[serde(default)]
    pub(super) online: Vec<String>,
    pub(super) messages: Option<u64>,
    pub(super) message_bytes: Option<u64>,
    pub(super) message_bytes_ready: Option<u64>,
    pub(super) consumers: Option<u64>,
}

/// The fields of `GET /api/queues/VHOST/NAME` that the lock uses.
#[derive(Debug, Deserialize)]
pub(super) struct LockQueue {
    #[serde(default, deserialize_with = "arguments")]
    pub(super) arguments: Arguments,
    /// The node that hosts the queue.
    pub(super) node: Option<String>,
}

/// An entry of `GET /api/nodes?columns=name,running`.
#[derive(Debug, Deserialize)]
pub(super) struct ClusterNode {
    pub(super) name: String,
    pub(super) running: bool,
}

/// An entry of `GET /api/exchanges/VHOST`.
#[derive(Debug, Deserialize)]
pub(super) struct Exchange {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) durable: bool,
    /// `None` if the broker returns the string `undefined`. Before 4.2.2, importing an exchange without `auto_delete`
    /// stored this value.
    #[serde(deserialize_with = "flag")]
    pub(super) auto_delete: Option<bool>,
    #[serde(default)]
    pub(super) internal: bool,
    #[serde(deserialize_with = "arguments")]
    pub(super) arguments: Arguments,
}

/// An entry of `GET /api/bindings/VHOST`.
#[derive(Debug, Deserialize)]
pub(super) struct Binding {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) destination_type: DestinationType,
    /// Null if the request that created the binding had a null routing key (3.x and 4.0).
    pub(super) routing_key: Option<String>,
    #[serde(deserialize_with = "arguments")]
    pub(super) arguments: Arguments,
    pub(super) properties_key: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DestinationType {
    Queue,
    Exchange,
}

/// An entry of `GET /api/policies/VHOST` or `GET /api/operator-policies/VHOST`.
#[derive(Debug, Deserialize)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) pattern: String,
    #[serde(rename = "apply-to", default = "default_apply_to")]
    pub(super) apply_to: ApplyTo,
    #[serde(default)]
    pub(super) priority: Priority,
    #[serde(deserialize_with = "arguments")]
    pub(super) definition: Arguments,
}

/// Returns the default value of `apply-to`, which is the same as the broker's.
fn default_apply_to() -> ApplyTo {
    ApplyTo::All
}

/// An entry of `GET /api/consumers/VHOST`.
#[derive(Debug, Deserialize)]
pub(super) struct Consumer {
    pub(super) queue: QueueReference,
    #[serde(default)]
    pub(super) consumer_tag: String,
    /// The client's address; `None` if unknown. The broker returns `[]` if the channel no longer exists.
    #[serde(default, deserialize_with = "peer")]
    pub(super) channel_details: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct QueueReference {
    pub(super) name: String,
}

/// Parses `true`, `false`, or the string `undefined`.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Plain::deserialize(deserializer)? {
        Plain::Boolean(value) => Ok(Some(value)),
        Plain::Text(text) if text == "undefined" => Ok(None),
        Plain::Text(text) => Err(de::Error::custom(format_args!("invalid value: {text:?}, expected a boolean"))),
        Plain::Integer(_) | Plain::Texts(_) | Plain::Other => Err(de::Error::custom("expected a boolean")),
    }
}

/// Parses arguments. Accepts `[]` and null as empty arguments, because the broker can encode an empty mapping as an
/// empty list.
fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
    struct ArgumentsVisitor;
    impl<'de> Visitor<'de> for ArgumentsVisitor {
        type Value = Arguments;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object of arguments")
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Arguments, M::Error> {
            Arguments::deserialize(de::value::MapAccessDeserializer::new(map))
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Arguments, S::Error> {
            match list.next_element::<de::IgnoredAny>()? {
                None => Ok(Arguments::new()),
                Some(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &self)),
            }
        }

        fn visit_unit<E: de::Error>(self) -> Result<Arguments, E> {
            Ok(Arguments::new())
        }
    }
    deserializer.deserialize_any(ArgumentsVisitor)
}

/// Parses tags: a list, a comma-separated string (old versions), the string `undefined`, or null.
fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tags {
        List(Vec<String>),
        Text(String),
        None(()),
    }
    Ok(match Tags::deserialize(deserializer)? {
        Tags::List(tags) => tags,
        Tags::Text(text) if text == "undefined" => Vec::new(),
        Tags::Text(text) => text.split(',').filter(|tag| !tag.is_empty()).map(|tag| tag.trim().to_owned()).collect(),
        Tags::None(()) => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArgumentValue, Float};

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> T {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn null_and_missing_queue_fields_are_parsed() {
        // A quorum queue, as returned by RabbitMQ 3.10.8.
        let queue: Queue = read(
            r#"{"arguments":{"x-queue-type":"quorum","x-odd":5.0,"x-n":5},"auto_delete":false,"durable":true,
                "exclusive":null,"leader":"a@b","members":["a@b"],"name":"qq","state":"running","vhost":"/"}"#,
        );
        assert_eq!(queue.exclusive, None);
        assert_eq!(queue.arguments["x-odd"], ArgumentValue::Float(Float(5.0)));
        assert_eq!(queue.arguments["x-n"], ArgumentValue::Integer(5));
        assert!(
            read::<Queue>(r#"{"name":"q","durable":true,"auto_delete":false,"arguments":[]}"#).arguments.is_empty()
        );
        let error = serde_json::from_str::<Queue>(r#"{"name":"q","durable":true,"arguments":{}}"#).unwrap_err();
        assert!(error.to_string().contains("auto_delete"));
    }

    #[test]
    fn exchange_without_auto_delete_is_parsed() {
        let exchange = |auto_delete: &str| {
            let fields = r#""name":"e","type":"topic","durable":true,"arguments":{}"#;
            serde_json::from_str(&format!(r#"{{{fields},"auto_delete":{auto_delete}}}"#))
                .map(|it: Exchange| it.auto_delete)
        };
        let values = ["true", "false", r#""undefined""#].map(|text| exchange(text).unwrap());
        assert_eq!(values, [Some(true), Some(false), None]);
        assert!(exchange(r#""yes""#).is_err() && exchange("null").is_err());
    }

    #[test]
    fn missing_totals_are_unknown() {
        let totals: QueueTotals = read(r#"{"name":"s","type":"stream","arguments":{"x-queue-type":"stream"}}"#);
        assert_eq!((totals.messages, totals.messages_ready, totals.messages_unacknowledged), (None, None, None));
        assert_eq!(read::<QueueTotals>(r#"{"name":"s","messages":null}"#).messages, None);
        assert_eq!(read::<QueueTotals>(r#"{"name":"s","messages":0}"#).messages, Some(0));
    }

    #[test]
    fn peers_of_consumers_are_parsed() {
        let consumer = |details: &str| {
            let text = format!(r#"{{"queue":{{"name":"q","vhost":"/"}},"channel_details":{details}}}"#);
            serde_json::from_str::<Consumer>(&text).unwrap().channel_details
        };
        assert_eq!(consumer(r#"{"peer_host":"10.0.0.1","peer_port":5}"#).as_deref(), Some("10.0.0.1:5"));
        assert_eq!(consumer(r#"{"peer_host":"::1","peer_port":5}"#).as_deref(), Some("[::1]:5"));
        assert_eq!(consumer(r#"{"peer_host":"undefined"}"#), None);
        assert_eq!(consumer("[]"), None);
    }

    #[test]
    fn tags_of_all_versions_are_parsed() {
        for (text, expected) in [(r#"["a","b"]"#, 2), (r#""a,b""#, 2), (r#""""#, 0), (r#""undefined""#, 0), ("null", 0)]
        {
            let vhost: Vhost = serde_json::from_str(&format!(r#"{{"name":"v","tags":{text}}}"#)).unwrap();
            assert_eq!(vhost.tags.len(), expected, "{text}");
        }
    }

    #[test]
    fn policies_are_parsed() {
        let policy: Policy =
            read(r#"{"name":"p","pattern":".*","apply-to":"quorum_queues","definition":{},"priority":2,"vhost":"/"}"#);
        assert_eq!((policy.apply_to, policy.priority), (ApplyTo::QuorumQueues, Priority(2.0)));
        assert!(serde_json::from_str::<Policy>(r#"{"name":"p","pattern":"","apply-to":"x","definition":{}}"#).is_err());
    }

    #[test]
    fn vhosts_without_columns_are_skipped() {
        let vhosts: Vhosts = serde_json::from_str(r#"[[], {"name": "v", "tags": []}, {}]"#).unwrap();
        assert_eq!(vhosts.0.len(), 1);
        assert!(serde_json::from_str::<Vhosts>(r#"{"error": "bad_request"}"#).is_err());
    }
}
