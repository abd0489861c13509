//! Topologies as a definitions file, which `rabbitmqadmin definitions import` and the management interface take.

use crate::model::printable::clean_json;
use crate::model::{Destination, Topology};
use serde_json::{Value, json};

/// The whole file. Each object names its vhost, so one file is for all.
pub fn definitions(topologies: &[Topology], version: &str) -> String {
    let all = |of: fn(&Topology) -> Vec<Value>| topologies.iter().flat_map(of).collect::<Vec<_>>();
    let document = json!({
        "rabbit_version": version,
        "vhosts": all(|topology| vec![json!({ "name": topology.vhost })]),
        "policies": all(policies),
        "exchanges": all(exchanges),
        "queues": all(queues),
        "bindings": all(bindings),
    });
    clean_json(format!("{document:#}\n"))
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
