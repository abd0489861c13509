//! Renders topologies as a definitions file, which `rabbitmqadmin definitions import` and the management UI can import.

use crate::model::printable::clean_json;
use crate::model::record_kinds::Layout;
use crate::model::{Record, RecordKind, TopicPermission, Topology, Vhost, VhostName, encoding};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Renders a complete definitions file. Each object includes its vhost name, so a file can contain several vhosts.
/// `version` is the broker's version. `extra_entries` maps the key of a list to the additional entries for that list.
pub fn definitions(
    topologies: &[Topology],
    permissions: &[(VhostName, TopicPermission)],
    extra_entries: &BTreeMap<&str, &[Value]>,
    version: &str,
) -> String {
    let all = |of: fn(&Topology) -> Vec<Value>| topologies.iter().flat_map(of).collect::<Vec<_>>();
    let mut document = json!({
        "rabbit_version": version,
        "vhosts": all(vhost),
        "policies": all(policies),
        "exchanges": all(exchanges),
        "queues": all(queues),
        "bindings": all(bindings),
    });
    let users = all(permissions_of_users);
    if !users.is_empty() {
        document["permissions"] = json!(users);
    }
    let parameters = all(parameters);
    if !parameters.is_empty() {
        document["parameters"] = json!(parameters);
    }
    if !permissions.is_empty() {
        document["topic_permissions"] = json!(topic_permissions(permissions));
    }
    for (key, entries) in extra_entries {
        let known = document[key].as_array().map_or(&[][..], Vec::as_slice);
        document[key] = known.iter().chain(*entries).cloned().collect();
    }
    clean_json(format!("{document:#}\n"))
}

/// Renders a definitions file that contains only topic permissions.
///
/// RabbitMQ 4.2 and earlier import topic permissions before exchanges. On RabbitMQ 4.0 to 4.2 with Khepri, the
/// declaration of an exchange fails if a topic permission for the exchange already exists (rabbitmq-server#14407). In
/// that case, the import omits the exchange without an error. For these versions, a backup contains the topic
/// permissions in a second file, which must be imported after the first file.
pub fn topic_permissions_only(permissions: &[(VhostName, TopicPermission)], version: &str) -> String {
    let document = json!({ "rabbit_version": version, "topic_permissions": topic_permissions(permissions) });
    clean_json(format!("{document:#}\n"))
}

fn topic_permissions(permissions: &[(VhostName, TopicPermission)]) -> Vec<Value> {
    let entry = |(vhost, permission): &(VhostName, TopicPermission)| {
        let body = encoding::topic_permission(permission);
        encoding::with_vhost(vhost, encoding::with_user(permission, body))
    };
    permissions.iter().map(entry).collect()
}

/// Returns the vhost with its settings. An import clears the description or the tags if they are missing.
fn vhost(topology: &Topology) -> Vec<Value> {
    let mut entry = json!({ "name": topology.vhost });
    let Vhost { description, tags, default_queue_type } = topology.settings.clone().unwrap_or_default();
    if let Some(description) = description.filter(|it| !it.is_empty()) {
        entry["description"] = json!(description);
    }
    if let Some(tags) = tags.filter(|it| !it.is_empty()) {
        entry["tags"] = json!(tags);
    }
    if let Some(default) = default_queue_type {
        entry["default_queue_type"] = json!(default);
    }
    vec![entry]
}

fn policies(topology: &Topology) -> Vec<Value> {
    let entries = topology.policies.iter().map(|(name, policy)| encoding::with_name(name, encoding::policy(policy)));
    entries.map(|entry| encoding::with_vhost(&topology.vhost, entry)).collect()
}

/// Renders user permissions. An import requires that the users exist.
fn permissions_of_users(topology: &Topology) -> Vec<Value> {
    let permissions = topology.records.values().filter(|record| record.id.kind == RecordKind::Permission);
    let entry = |record: &Record| {
        let mut entry = json!(record.fields);
        entry["vhost"] = json!(topology.vhost);
        entry["user"] = json!(record.id.name());
        entry
    };
    permissions.map(entry).collect()
}

/// Renders the records that definitions files contain as runtime parameters. A parameter contains all records with the
/// same component and name, such as all limits of a vhost.
fn parameters(topology: &Topology) -> Vec<Value> {
    let mut values: BTreeMap<(&str, &str), Value> = BTreeMap::new();
    // Omits shovels and upstreams. The URIs in a topology contain no passwords, so an import could not restore these
    // connections. A backup adds the shovels and upstreams from `SecretDefinitions`.
    let records = topology.records.iter().filter(|(id, _)| !id.kind.row().has_uris());
    for (id, record) in records {
        let row = id.kind.row();
        let (component, name) = match &id.key[..] {
            [component, name] if row.kind == RecordKind::Parameter => (component.as_str(), name.as_str()),
            _ if row.component.is_empty() => continue,
            _ => (row.component, id.name().unwrap_or("limits")),
        };
        let value = values.entry((component, name)).or_insert_with(|| json!({}));
        match (row.layout, id.setting(), record.fields.get("value")) {
            (Layout::Value(_), _, Some(whole)) => *value = json!(whole),
            (_, Some(setting), Some(of_setting)) => value[setting] = json!(of_setting),
            (_, _, _) => *value = json!(record.fields),
        }
    }
    let parameter = |((component, name), value): (&(&str, &str), &Value)| json!({ "vhost": topology.vhost, "component": component, "name": name, "value": value });
    values.iter().map(parameter).collect()
}

fn exchanges(topology: &Topology) -> Vec<Value> {
    let entries =
        topology.exchanges.iter().map(|(name, exchange)| encoding::with_name(name, encoding::exchange(exchange)));
    entries.map(|entry| encoding::with_vhost(&topology.vhost, entry)).collect()
}

fn queues(topology: &Topology) -> Vec<Value> {
    let entries = topology.queues.iter().map(|(name, queue)| encoding::with_name(name, encoding::queue(queue)));
    entries.map(|entry| encoding::with_vhost(&topology.vhost, entry)).collect()
}

fn bindings(topology: &Topology) -> Vec<Value> {
    let entries = topology.bindings.iter().map(|binding| encoding::with_ends(binding, encoding::binding(binding)));
    entries.map(|entry| encoding::with_vhost(&topology.vhost, entry)).collect()
}
