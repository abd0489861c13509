//! Converts a custom resource to entries in a definitions file.

use super::super::definitions::{
    Converted, DEFAULT_VHOST, Entry, Fields, flag, mapping, number, parameter, permission, policy, rename_fields, text,
    topic_permission, vhost_limits,
};
use super::resource::{Object, Users, Variables};
use serde_json::{Value, json};

/// The settings of a shovel, each with its name in requests.
const SHOVEL: &[(&str, &str)] = &[
    ("ackMode", "ack-mode"),
    ("prefetchCount", "prefetch-count"),
    ("reconnectDelay", "reconnect-delay"),
    ("addForwardHeaders", "add-forward-headers"),
    ("deleteAfter", "delete-after"),
    ("srcDeleteAfter", "src-delete-after"),
    ("srcPrefetchCount", "src-prefetch-count"),
    ("destAddForwardHeaders", "dest-add-forward-headers"),
    ("destAddTimestampHeader", "dest-add-timestamp-header"),
    ("srcQueueArgs", "src-queue-args"),
    ("destQueueArgs", "dest-queue-args"),
    ("destProtocol", "dest-protocol"),
    ("destQueue", "dest-queue"),
    ("destExchange", "dest-exchange"),
    ("destExchangeKey", "dest-exchange-key"),
    ("destPublishProperties", "dest-publish-properties"),
    ("destAddress", "dest-address"),
    ("destApplicationProperties", "dest-application-properties"),
    ("destProperties", "dest-properties"),
    ("destMessageAnnotations", "dest-message-annotations"),
    ("srcProtocol", "src-protocol"),
    ("srcQueue", "src-queue"),
    ("srcExchange", "src-exchange"),
    ("srcExchangeKey", "src-exchange-key"),
    ("srcConsumerArgs", "src-consumer-args"),
    ("srcAddress", "src-address"),
];

/// The settings of a federation upstream, each with its name in requests.
const UPSTREAM: &[(&str, &str)] = &[
    ("prefetch-count", "prefetch-count"),
    ("ackMode", "ack-mode"),
    ("expires", "expires"),
    ("messageTTL", "message-ttl"),
    ("maxHops", "max-hops"),
    ("reconnectDelay", "reconnect-delay"),
    ("trustUserId", "trust-user-id"),
    ("exchange", "exchange"),
    ("queue", "queue"),
    ("queueType", "queue-type"),
    ("resourceCleanupMode", "resource-cleanup-mode"),
];

/// The maximum number of partitions in a super stream that topo converts.
const MAX_PARTITIONS: u64 = 1000;
/// The reason why a user is left out if the user's name is in a secret that the files do not contain.
const UNKNOWN_USER: &str = "the user name is unknown: add the user's secret to the files, or export the object with its \
                            status (kubectl get -o yaml)";

fn required<'a>(spec: &'a Value, name: &str) -> Result<&'a str, String> {
    text(spec, name).ok_or_else(|| format!("the field `{name}` is missing"))
}

/// Converts an object to entries in a definitions file. Returns the reason if topo cannot convert the object.
pub(super) fn convert(object: &Object<'_>, users: &Users, variables: &mut Variables) -> Converted {
    let spec = object.spec;
    let name = || required(spec, "name");
    let vhost = text(spec, "vhost").unwrap_or(DEFAULT_VHOST);
    Ok(match object.kind {
        "Vhost" => vhost_entries(name()?, spec),
        "Queue" => {
            let mut arguments = mapping(spec, "arguments")?;
            if let Some(queue_type) = text(spec, "type") {
                arguments["x-queue-type"] = json!(queue_type);
            }
            let (durable, auto_delete) = (flag(spec, "durable", true)?, flag(spec, "autoDelete", false)?);
            let queue = json!({"vhost": vhost, "name": name()?, "durable": durable, "auto_delete": auto_delete,
                               "arguments": arguments});
            vec![("queues", queue)]
        }
        "Exchange" => {
            let (durable, auto_delete) = (flag(spec, "durable", false)?, flag(spec, "autoDelete", false)?);
            let exchange = json!({"vhost": vhost, "name": name()?, "type": text(spec, "type").unwrap_or("direct"),
                                  "durable": durable, "auto_delete": auto_delete, "internal": false,
                                  "arguments": mapping(spec, "arguments")?});
            vec![("exchanges", exchange)]
        }
        "Binding" => {
            let (source, destination) = (required(spec, "source")?, required(spec, "destination")?);
            let destination_type = text(spec, "destinationType").unwrap_or("queue");
            let binding = json!({"vhost": vhost, "source": source, "destination": destination,
                                 "destination_type": destination_type,
                                 "routing_key": text(spec, "routingKey").unwrap_or_default(),
                                 "arguments": mapping(spec, "arguments")?});
            vec![("bindings", binding)]
        }
        "Policy" | "OperatorPolicy" => {
            let is_operator = object.kind == "OperatorPolicy";
            let apply_to = text(spec, "applyTo").unwrap_or(if is_operator { "queues" } else { "all" });
            let pattern = spec.get("pattern").and_then(Value::as_str).unwrap_or_default();
            let (priority, definition) = (number(spec, "priority")?, mapping(spec, "definition")?);
            let body =
                json!({"pattern": pattern, "priority": priority, "apply-to": apply_to, "definition": definition});
            vec![policy(is_operator, vhost, name()?, &body)]
        }
        "User" => vec![user(object, users)?],
        "Permission" | "TopicPermission" => {
            let reference = spec.get("userReference").and_then(|reference| text(reference, "name"));
            let referenced = reference.and_then(|name| users.get(object.namespace, name));
            let user = referenced.or(text(spec, "user")).ok_or(UNKNOWN_USER)?;
            let patterns = mapping(spec, "permissions")?;
            match object.kind {
                "Permission" => vec![permission(user, vhost, &patterns)],
                _ => vec![topic_permission(user, vhost, &patterns)?],
            }
        }
        "Shovel" => {
            let mut shovel = rename_fields(spec, SHOVEL);
            shovel.insert("src-uri".to_owned(), variables.reference(object, "SOURCE_URI"));
            shovel.insert("dest-uri".to_owned(), variables.reference(object, "DESTINATION_URI"));
            vec![parameter("shovel", vhost, name()?, &shovel.into())]
        }
        "Federation" => {
            let mut upstream = rename_fields(spec, UPSTREAM);
            upstream.insert("uri".to_owned(), variables.reference(object, "URI"));
            vec![parameter("federation-upstream", vhost, name()?, &upstream.into())]
        }
        "SuperStream" => super_stream(object.name, vhost, spec)?,
        _ => return Err("topo does not support this kind".to_owned()),
    })
}

fn vhost_entries(name: &str, spec: &Value) -> Vec<Entry> {
    let mut vhost = json!({ "name": name });
    for (from, to) in [("tags", "tags"), ("defaultQueueType", "default_queue_type")] {
        if let Some(value) = spec.get(from).filter(|value| !value.is_null()) {
            vhost[to] = value.clone();
        }
    }
    let limit = |field: &str| spec.get("limits").and_then(|limits| limits.get(field)).and_then(Value::as_i64);
    let limits = vhost_limits(name, [("max-connections", limit("connections")), ("max-queues", limit("queues"))]);
    std::iter::once(("vhosts", vhost)).chain(limits).collect()
}

fn user(object: &Object<'_>, users: &Users) -> Result<Entry, String> {
    let name = users.get(object.namespace, object.name).ok_or(UNKNOWN_USER)?;
    let tags = object.spec.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let tags = tags.collect::<Vec<_>>().join(",");
    // A limit of 0 refuses every connection or channel.
    let limits = mapping(object.spec, "limits")?;
    let limit =
        |from: &str, to: &str| Some((to.to_owned(), limits.get(from).filter(|limit| limit.is_number())?.clone()));
    let limits: Fields =
        [limit("connections", "max-connections"), limit("channels", "max-channels")].into_iter().flatten().collect();
    Ok(("users", json!({"name": name, "tags": tags, "limits": limits})))
}

/// Returns the objects that the operator creates for a super stream. The operator names these objects after the
/// Kubernetes object.
fn super_stream(name: &str, vhost: &str, spec: &Value) -> Converted {
    let listed = spec.get("routingKeys").and_then(Value::as_array).filter(|keys| !keys.is_empty());
    let partitions = spec.get("partitions").map_or(Some(3), Value::as_u64);
    let keys: Option<Vec<String>> = match (listed, partitions) {
        (Some(keys), _) => keys.iter().map(|key| key.as_str().map(str::to_owned)).collect(),
        (None, Some(partitions @ 1..=MAX_PARTITIONS)) => Some((0..partitions).map(|it| it.to_string()).collect()),
        (None, _) => None,
    };
    let keys = keys.ok_or_else(|| {
        format!("`partitions` is not between 1 and {MAX_PARTITIONS}, or a routing key is not a string")
    })?;
    let exchange = json!({"vhost": vhost, "name": name, "type": "direct", "durable": true, "auto_delete": false,
                          "internal": false, "arguments": {}});
    let mut entries = vec![("exchanges", exchange)];
    for (order, key) in keys.iter().enumerate() {
        let partition = format!("{name}-{key}");
        let stream = json!({"vhost": vhost, "name": partition, "durable": true, "auto_delete": false,
                            "arguments": {"x-queue-type": "stream"}});
        entries.push(("queues", stream));
        let binding = json!({"vhost": vhost, "source": name, "destination": partition, "destination_type": "queue",
                             "routing_key": key, "arguments": {"x-stream-partition-order": order}});
        entries.push(("bindings", binding));
    }
    Ok(entries)
}
