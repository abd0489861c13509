//! Encodes objects in RabbitMQ's JSON format, for request bodies and for the entries in definitions files.

use super::binding::{Binding, Destination};
use super::names::VhostName;
use super::policy::Policy;
use super::queue::{Exchange, Queue, TopicPermission};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Returns the request body that declares a queue. The body never contains `exclusive`. With this field, the management
/// API would create a transient queue that belongs to no connection.
pub fn queue(queue: &Queue) -> Value {
    json!({ "durable": queue.durable, "auto_delete": queue.auto_delete, "arguments": queue.arguments })
}

/// Returns the request body that declares an exchange.
pub fn exchange(exchange: &Exchange) -> Value {
    json!({
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": exchange.arguments,
    })
}

/// Returns the request body that sets a policy.
pub fn policy(policy: &Policy) -> Value {
    json!(policy)
}

/// Returns the request body that creates a binding. The request path contains the source and the destination.
pub fn binding(binding: &Binding) -> Value {
    json!({ "routing_key": binding.routing_key, "arguments": binding.arguments })
}

/// Returns the request body that sets a topic permission. The request path contains the user.
pub fn topic_permission(permission: &TopicPermission) -> Value {
    json!({ "exchange": permission.exchange, "write": permission.write, "read": permission.read })
}

/// Adds the name of an object to its request body, which becomes an entry in a definitions file.
pub fn with_name(name: &impl Serialize, body: Value) -> Value {
    prepend([("name", json!(name))], body)
}

/// Adds the source and the destination of a binding to its request body, which becomes an entry in a definitions file.
pub fn with_ends(binding: &Binding, body: Value) -> Value {
    let kind = match binding.destination {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    };
    let ends = [
        ("source", json!(binding.source)),
        ("destination", json!(binding.destination.name())),
        ("destination_type", json!(kind)),
    ];
    prepend(ends, body)
}

/// Adds the vhost to an entry in a definitions file. If the file contains several vhosts, each entry must have a vhost.
pub fn with_vhost(vhost: &VhostName, entry: Value) -> Value {
    prepend([("vhost", json!(vhost))], entry)
}

/// Adds the user of a topic permission to its request body, which becomes an entry in a definitions file.
pub fn with_user(permission: &TopicPermission, body: Value) -> Value {
    prepend([("user", json!(permission.user))], body)
}

/// Inserts fields before the fields of a JSON object.
fn prepend<const N: usize>(fields: [(&str, Value); N], body: Value) -> Value {
    let mut all: Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if let Value::Object(body) = body {
        all.extend(body);
    }
    Value::Object(all)
}
