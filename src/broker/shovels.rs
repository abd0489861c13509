//! Determines which queues a broker's dynamic shovels use, and reads the states of the shovels.
//!
//! A shovel's URIs may contain passwords, so topo stores no part of the URIs.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::is_hidden;
use super::plain::Plain;
use super::redact::sanitize;
use crate::model::naming::is_shovel;
use crate::model::{AmqpUri, QueueName, VhostName};
use crate::plan::request::path;
use crate::plan::{ShovelEnd, Shovels};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The vhost that a URI without a path refers to.
const DEFAULT_VHOST: &str = "/";
/// The prefixes of AMQP 1.0 addresses that refer to a queue.
const QUEUE_PREFIXES: [&str; 3] = ["/queues/", "/queue/", "/amq/queue/"];

/// An entry in the response to `GET /api/parameters/shovel`.
#[derive(Deserialize)]
struct Parameter {
    vhost: String,
    name: String,
    value: Settings,
}

/// The shovel settings that topo reads.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Settings {
    src_queue: Option<Plain>,
    src_address: Option<Plain>,
    src_uri: Option<Plain>,
    dest_queue: Option<Plain>,
    dest_address: Option<Plain>,
    dest_uri: Option<Plain>,
}

impl Broker {
    /// Returns the dynamic shovels that use queues in this vhost, without topo's own shovels. Includes shovels from all
    /// vhosts that the connected user may see. Returns [`Shovels::Hidden`] if the connected user cannot read shovels.
    pub async fn shovels(&self, vhost: &VhostName) -> Result<Shovels, BrokerError> {
        match self.get::<Vec<Parameter>>(path("parameters", &["shovel"])).await {
            Ok(listed) => {
                let shovels = listed.iter().filter(|parameter| !is_shovel(&parameter.name));
                Ok(Shovels::Known(shovels.flat_map(|parameter| shovel_ends(parameter, vhost)).collect()))
            }
            Err(BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. }) => Ok(Shovels::Hidden),
            // The shovel plugin is not enabled, so no shovels exist.
            Err(BrokerError::NotFound { .. }) => Ok(Shovels::Known(Vec::new())),
            Err(error) => Err(error),
        }
    }
}

/// The state of a dynamic shovel.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ShovelState {
    /// The broker's name for the state; `None` if the broker does not list the shovel. On 4.0 and earlier, the broker
    /// sometimes does not list a shovel that cannot connect.
    state: Option<String>,
    /// The reason why the shovel terminated.
    #[serde(default)]
    reason: Option<String>,
}

impl ShovelState {
    /// Returns true if the shovel is connected.
    pub fn is_running(&self) -> bool {
        self.state.as_deref() == Some("running")
    }

    /// Returns true if the shovel has terminated, for example because it could not connect.
    pub fn has_failed(&self) -> bool {
        self.state.as_deref() == Some("terminated")
    }
}

/// Formats the state and its reason, without credentials.
impl fmt::Display for ShovelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.as_deref().unwrap_or("not connected");
        match &self.reason {
            Some(reason) => write!(f, "{}: {}", sanitize(state), sanitize(reason.trim_matches('"'))),
            None => f.write_str(&sanitize(state)),
        }
    }
}

/// An entry in the response to `GET /api/shovels`.
#[derive(Deserialize)]
struct ListedShovel {
    name: String,
    #[serde(flatten)]
    state: ShovelState,
}

impl Broker {
    /// Returns the states of the shovels in a vhost, by name. Returns `None` if the connected user does not have the
    /// `monitoring` tag, or if the `rabbitmq_shovel_management` plugin is not enabled.
    pub async fn shovel_states(&self, vhost: &VhostName) -> Result<Option<BTreeMap<String, ShovelState>>, BrokerError> {
        match self.get::<Vec<ListedShovel>>(path("shovels", &[vhost.as_str()])).await {
            Ok(listed) => Ok(Some(listed.into_iter().map(|shovel| (shovel.name, shovel.state)).collect())),
            Err(BrokerError::NotFound { .. }) => Ok(None),
            Err(error) if is_hidden(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the ends of a shovel that are, or may be, queues in this vhost.
fn shovel_ends(parameter: &Parameter, vhost: &VhostName) -> Vec<ShovelEnd> {
    let Parameter { vhost: home, name, value } = parameter;
    let end = |queue: &Option<Plain>, address: &Option<Plain>, uris: &Option<Plain>, is_source| {
        let text = |setting: &Option<Plain>| setting.as_ref().and_then(Plain::as_text).map(str::to_owned);
        let queue = text(queue).or_else(|| text(address).map(|address| queue_of_address(&address)))?;
        let is_here = match uris {
            Some(Plain::Text(uri)) => may_refer_to(uri, home, vhost),
            Some(Plain::Texts(uris)) => uris.iter().any(|uri| may_refer_to(uri, home, vhost)),
            Some(Plain::Boolean(_) | Plain::Integer(_) | Plain::Other) | None => home == vhost.as_str(),
        };
        let (shovel, vhost, queue) = (name.clone(), VhostName::new(home), QueueName::new(queue));
        is_here.then_some(ShovelEnd { shovel, vhost, queue, is_source })
    };
    let source = end(&value.src_queue, &value.src_address, &value.src_uri, true);
    let destination = end(&value.dest_queue, &value.dest_address, &value.dest_uri, false);
    [source, destination].into_iter().flatten().collect()
}

/// Returns the queue name in an AMQP 1.0 address. An address without a known prefix is the queue name itself.
fn queue_of_address(address: &str) -> String {
    let name = QUEUE_PREFIXES.iter().find_map(|prefix| address.strip_prefix(prefix));
    name.map_or_else(|| address.to_owned(), |name| percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// Returns true if a URI may refer to this vhost. The host is ignored, because it may be an alias of this broker. A URI
/// without a vhost may refer to the default vhost or to the shovel's own vhost, `home`. A URI that cannot be parsed may
/// refer to any vhost.
fn may_refer_to(uri: &str, home: &str, vhost: &VhostName) -> bool {
    let Ok(uri) = AmqpUri::parse(uri) else { return true };
    match uri.vhost() {
        None | Some("") => [DEFAULT_VHOST, home].contains(&vhost.as_str()),
        Some(name) => name == vhost.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(value: Value) -> Vec<(String, bool)> {
        let parameter = json!({"vhost": "home", "name": "s", "component": "shovel", "value": value});
        let parameter: Parameter = serde_json::from_value(parameter).unwrap();
        shovel_ends(&parameter, &"shop".into()).into_iter().map(|end| (end.queue.to_string(), end.is_source)).collect()
    }

    #[test]
    fn ends_are_found_by_their_vhost() {
        for uri in [
            json!("amqp:///shop"),
            json!("amqp://user:secret@host:5672/sh%6Fp?heartbeat=5"),
            json!(["amqp://a/other", "amqps://b/shop"]),
            json!("not a URI"),
        ] {
            assert_eq!(found(json!({"src-uri": uri, "src-queue": "q"})), [("q".to_owned(), true)], "{uri}");
        }
        for uri in [json!("amqp://"), json!("amqp:///other"), json!("amqp://user:secret@host"), json!(null)] {
            assert_eq!(found(json!({"src-uri": uri, "src-queue": "q"})), [], "{uri}");
        }
    }

    #[test]
    fn sources_and_destinations_of_both_protocols_are_found() {
        let shop = "amqp:///shop";
        let value = json!({"src-uri": shop, "src-queue": "a", "dest-uri": shop, "dest-queue": "b"});
        assert_eq!(found(value), [("a".to_owned(), true), ("b".to_owned(), false)]);
        let value = json!({"src-uri": shop, "src-address": "/queues/a%2Fb", "dest-uri": shop, "dest-exchange": "e"});
        assert_eq!(found(value), [("a/b".to_owned(), true)]);
    }
}
