//! Topologies as a definitions file, which `rabbitmqadmin definitions import` and the management interface take.

use crate::model::printable::clean_json;
use crate::model::{Arguments, Destination, RecordKind, TopicPermission, Topology, VhostName};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The whole file. Each object names its vhost, so one file is for all.
pub fn definitions(topologies: &[Topology], restrictions: &[(VhostName, TopicPermission)], version: &str) -> String {
    let all = |of: fn(&Topology) -> Vec<Value>| topologies.iter().flat_map(of).collect::<Vec<_>>();
    let mut document = json!({
        "rabbit_version": version,
        "vhosts": all(|topology| vec![json!({ "name": topology.vhost })]),
        "policies": all(policies),
        "exchanges": all(exchanges),
        "queues": all(queues),
        "bindings": all(bindings),
    });
    let parameters = all(parameters);
    if !parameters.is_empty() {
        document["parameters"] = json!(parameters);
    }
    if !restrictions.is_empty() {
        document["topic_permissions"] = json!(topic_permissions(restrictions));
    }
    clean_json(format!("{document:#}\n"))
}

/// A file of topic permissions alone.
///
/// RabbitMQ imports topic permissions before exchanges. From 4.0 to 4.2 with Khepri, that makes every later declare of such an
/// exchange fail (rabbitmq-server#14407), and the import leaves the exchange out without an error.
pub fn restrictions(restrictions: &[(VhostName, TopicPermission)], version: &str) -> String {
    let document = json!({ "rabbit_version": version, "topic_permissions": topic_permissions(restrictions) });
    clean_json(format!("{document:#}\n"))
}

fn topic_permissions(restrictions: &[(VhostName, TopicPermission)]) -> Vec<Value> {
    let entry = |(vhost, permission): &(VhostName, TopicPermission)| {
        json!({
            "vhost": vhost,
            "user": permission.user,
            "exchange": permission.exchange,
            "write": permission.write,
            "read": permission.read,
        })
    };
    restrictions.iter().map(entry).collect()
}

fn policies(topology: &Topology) -> Vec<Value> {
    let policy = |(name, policy): (&_, &crate::model::Policy)| {
        json!({
            "vhost": topology.vhost,
            "name": name,
            "pattern": policy.pattern,
            "apply-to": policy.apply_to,
            "priority": policy.priority,
            "definition": policy.definition,
        })
    };
    topology.policies.iter().map(policy).collect()
}

/// Records are runtime parameters. A parameter holds all settings of its owner.
fn parameters(topology: &Topology) -> Vec<Value> {
    let mut values: BTreeMap<(RecordKind, &str), Arguments> = BTreeMap::new();
    for (id, record) in &topology.records {
        let settings = values.entry((id.kind, id.name().unwrap_or("limits"))).or_default();
        match (id.setting(), record.fields.get("value")) {
            (Some(setting), Some(value)) => drop(settings.insert(setting.to_owned(), value.clone())),
            (_, _) => settings.extend(record.fields.clone()),
        }
    }
    let parameter = |((kind, name), value): (&(RecordKind, &str), &Arguments)| json!({ "vhost": topology.vhost, "component": kind.row().component, "name": name, "value": value });
    values.iter().map(parameter).collect()
}

fn exchanges(topology: &Topology) -> Vec<Value> {
    let exchange = |(name, exchange): (&_, &crate::model::Exchange)| {
        json!({
            "vhost": topology.vhost,
            "name": name,
            "type": exchange.kind,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": exchange.arguments,
        })
    };
    topology.exchanges.iter().map(exchange).collect()
}

fn queues(topology: &Topology) -> Vec<Value> {
    let queue = |(name, queue): (&_, &crate::model::Queue)| {
        json!({
            "vhost": topology.vhost,
            "name": name,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": queue.arguments,
        })
    };
    topology.queues.iter().map(queue).collect()
}

fn bindings(topology: &Topology) -> Vec<Value> {
    let binding = |binding: &crate::model::Binding| {
        let kind = match binding.destination {
            Destination::Queue(_) => "queue",
            Destination::Exchange(_) => "exchange",
        };
        json!({
            "vhost": topology.vhost,
            "source": binding.source,
            "destination": binding.destination.name(),
            "destination_type": kind,
            "routing_key": binding.routing_key,
            "arguments": binding.arguments,
        })
    };
    topology.bindings.iter().map(binding).collect()
}
