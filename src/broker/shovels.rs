//! Reads which queues the dynamic shovels of a broker use. The URIs of a shovel hold passwords: nothing of them is kept.

use super::connection::Broker;
use super::error::BrokerError;
use crate::model::naming::is_shovel;
use crate::model::{QueueName, VhostName};
use crate::plan::request::path;
use crate::plan::{ShovelEnd, Shovels};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Where a URI leads that names no vhost.
const DEFAULT_VHOST: &str = "/";
/// How addresses of AMQP 1.0 name a queue.
const QUEUE_PREFIXES: [&str; 3] = ["/queues/", "/queue/", "/amq/queue/"];

/// An entry of `GET /api/parameters/shovel`.
#[derive(Deserialize)]
struct Parameter {
    vhost: String,
    name: String,
    value: Map<String, Value>,
}

impl Broker {
    /// The dynamic shovels that use queues of this vhost, also those that are defined in other vhosts that this user may see;
    /// those of topo are left out.
    pub async fn shovels(&self, vhost: &VhostName) -> Result<Shovels, BrokerError> {
        match self.get::<Vec<Parameter>>(path("parameters", &["shovel"])).await {
            Ok(listed) => {
                let others = listed.iter().filter(|parameter| !is_shovel(&parameter.name));
                Ok(Shovels::Known(others.flat_map(|parameter| ends(parameter, vhost)).collect()))
            }
            Err(BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. }) => Ok(Shovels::Hidden),
            // Without the plugin, there are none.
            Err(BrokerError::NotFound { .. }) => Ok(Shovels::Known(Vec::new())),
            Err(error) => Err(error),
        }
    }
}

/// The ends of a shovel that are, or may be, queues of this vhost.
fn ends(parameter: &Parameter, vhost: &VhostName) -> Vec<ShovelEnd> {
    let Parameter { vhost: home, name, value } = parameter;
    let end = |prefix: &str, is_source| {
        let text = |key: &str| value.get(&format!("{prefix}-{key}")).and_then(Value::as_str);
        let queue = text("queue").map(str::to_owned).or_else(|| text("address").map(queue_of_address))?;
        let uris = value.get(&format!("{prefix}-uri"));
        let is_here = match uris {
            Some(Value::String(uri)) => may_lead_to(uri, home, vhost),
            Some(Value::Array(uris)) => uris.iter().filter_map(Value::as_str).any(|uri| may_lead_to(uri, home, vhost)),
            _ => home == vhost.as_str(),
        };
        let (shovel, vhost, queue) = (name.clone(), VhostName::new(home), QueueName::new(queue));
        is_here.then_some(ShovelEnd { shovel, vhost, queue, is_source })
    };
    [end("src", true), end("dest", false)].into_iter().flatten().collect()
}

fn queue_of_address(address: &str) -> String {
    let name = QUEUE_PREFIXES.iter().find_map(|prefix| address.strip_prefix(prefix));
    name.map_or_else(|| address.to_owned(), |name| percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// Whether a URI may lead to this vhost. The host does not count: it may be another name of this broker. One without a vhost
/// leads to the default one; where it cannot be read, it may lead anywhere.
fn may_lead_to(uri: &str, home: &str, vhost: &VhostName) -> bool {
    let Ok(url) = Url::parse(uri) else { return true };
    match url.path().trim_start_matches('/') {
        "" => [DEFAULT_VHOST, home].contains(&vhost.as_str()),
        encoded => percent_decode_str(encoded).decode_utf8_lossy() == vhost.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(value: Value) -> Vec<(String, bool)> {
        let parameter = json!({"vhost": "home", "name": "s", "component": "shovel", "value": value});
        let parameter: Parameter = serde_json::from_value(parameter).unwrap();
        ends(&parameter, &"shop".into()).into_iter().map(|end| (end.queue.to_string(), end.is_source)).collect()
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
    fn both_ends_and_both_protocols_are_found() {
        let shop = "amqp:///shop";
        let value = json!({"src-uri": shop, "src-queue": "a", "dest-uri": shop, "dest-queue": "b"});
        assert_eq!(found(value), [("a".to_owned(), true), ("b".to_owned(), false)]);
        let value = json!({"src-uri": shop, "src-address": "/queues/a%2Fb", "dest-uri": shop, "dest-exchange": "e"});
        assert_eq!(found(value), [("a/b".to_owned(), true)]);
    }
}
