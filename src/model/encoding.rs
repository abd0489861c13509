//! Encodes objects in RabbitMQ's JSON: the bodies of requests and the entries of definitions files.

use super::binding::{Binding, Destination};
use super::names::VhostName;
use super::policy::Policy;
use super::queue::{Exchange, Queue, TopicPermission};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Returns the body that declares a queue. It never contains `exclusive`, which over HTTP creates a transient queue
/// without an owner.
pub fn queue(queue: &Queue) -> Value {
    json!({ "durable": queue.durable, "auto_delete": queue.auto_delete, "arguments": queue.arguments })
}

/// Returns the body that declares an exchange.
pub fn exchange(exchange: &Exchange) -> Value {
    json!({
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": exchange.arguments,
    })
}

/// Returns the body that sets a policy.
pub fn policy(policy: &Policy) -> Value {
    json!(policy)
}

/// Returns the body that creates a binding. The path of the request contains its source and destination.
pub fn binding(binding: &Binding) -> Value {
    json!({ "routing_key": binding.routing_key, "arguments": binding.arguments })
}

/// Returns the body that sets a topic permission. The path of the request contains the user.
pub fn topic_permission(permission: &TopicPermission) -> Value {
    json!({ "exchange": permission.exchange, "write": permission.write, "read": permission.read })
}

/// Adds the name of an object to its body.
pub fn named(name: &impl Serialize, body: Value) -> Value {
    prepend([("name", json!(name))], body)
}

/// Adds the source and the destination of a binding to its body.
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

/// Adds the vhost, which a definitions file of several vhosts requires.
pub fn in_vhost(vhost: &VhostName, entry: Value) -> Value {
    prepend([("vhost", json!(vhost))], entry)
}

/// Adds the user of a topic permission to its body.
pub fn of_user(permission: &TopicPermission, body: Value) -> Value {
    prepend([("user", json!(permission.user))], body)
}

/// Inserts entries prepend those of an object.
fn prepend<const N: usize>(entries: [(&str, Value); N], body: Value) -> Value {
    let mut all: Map<String, Value> = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if let Value::Object(body) = body {
        all.extend(body);
    }
    Value::Object(all)
}
