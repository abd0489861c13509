//! The request of the management API that carries out an action: one pure function for what is shown and what is sent.

use super::Action;
use crate::model::address::encode;
use crate::model::{Destination, VhostName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The verbs that topo uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Declares; the broker answers 201 or 204.
    Put,
    /// Binds.
    Post,
    /// Deletes.
    Delete,
}

impl Method {
    /// The verb, as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A request, without the broker's address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The verb.
    pub method: Method,
    /// Percent-encoded, from `/api/` on; a path prefix of the broker's URL goes before it.
    pub path: String,
    /// JSON, where there is a body.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body: Option<Value>,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match &self.body {
            Some(body) => write!(f, " {body}"),
            None => Ok(()),
        }
    }
}

/// The request for an action.
///
/// A PUT always says everything: what it leaves out is `false` to the broker, and a transient queue is not what anybody
/// meant. The guard of a deletion is not in its path: which flags the broker honours depends on the queue's type and
/// consumers at that moment, so they are added when it is sent (`?if-empty=true&if-unused=true` at the most).
pub fn request(vhost: &VhostName, action: &Action) -> Request {
    let vhost = encode(vhost.as_str());
    let named = |kind: &str, name: &str| format!("/api/{kind}/{vhost}/{}", encode(name));
    let (method, path, body) = match action {
        Action::PutVhost { vhost: settings } => {
            let mut body = serde_json::Map::new();
            body.insert("description".to_owned(), json!(settings.description.clone().unwrap_or_default()));
            body.insert("tags".to_owned(), json!(settings.tags.join(",")));
            if let Some(queue_type) = &settings.default_queue_type {
                body.insert("default_queue_type".to_owned(), json!(queue_type));
            }
            (Method::Put, format!("/api/vhosts/{vhost}"), Some(Value::Object(body)))
        }
        Action::DeclareExchange { name, exchange } => (
            Method::Put,
            named("exchanges", name.as_str()),
            Some(json!({
                "type": exchange.kind,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": exchange.arguments,
            })),
        ),
        Action::PutPolicy { name, policy } => (Method::Put, named("policies", name.as_str()), Some(json!(policy))),
        Action::DeclareQueue { name, queue } => (
            Method::Put,
            named("queues", name.as_str()),
            Some(json!({
                "durable": queue.durable,
                "auto_delete": queue.auto_delete,
                "arguments": queue.arguments,
            })),
        ),
        Action::Bind { binding } => (
            Method::Post,
            binding_path(&vhost, binding),
            Some(json!({ "routing_key": binding.routing_key, "arguments": binding.arguments })),
        ),
        Action::Unbind { binding, properties_key } => {
            // The listed key is quoted already, and is one segment of a path: it is encoded once more.
            (Method::Delete, format!("{}/{}", binding_path(&vhost, binding), encode(properties_key)), None)
        }
        Action::DeleteQueue { name, .. } => (Method::Delete, named("queues", name.as_str()), None),
        Action::DeleteExchange { name } => (Method::Delete, named("exchanges", name.as_str()), None),
        Action::DeletePolicy { name } => (Method::Delete, named("policies", name.as_str()), None),
    };
    Request { method, path, body }
}

fn binding_path(vhost: &str, binding: &crate::model::Binding) -> String {
    let kind = match &binding.destination {
        Destination::Queue(_) => "q",
        Destination::Exchange(_) => "e",
    };
    let (source, destination) = (encode(binding.source.as_str()), encode(binding.destination.name()));
    format!("/api/bindings/{vhost}/e/{source}/{kind}/{destination}")
}
