//! Converts custom resources of the RabbitMQ Messaging Topology Operator (`rabbitmq.com/v1beta1`).
//!
//! Source: the types in `api/` of the operator 1.0 to 1.17, and the requests that it builds in `internal/`.

use super::definitions::{Builder, DEFAULT_VHOST, Entry, Fields, parameter, renamed, text, vhost_limits};
use super::{ImportError, Imported};
use crate::model::SecretRef;
use crate::model::secret::Template;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The group of the operator's API.
const GROUP: &str = "rabbitmq.com/";

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

/// Converts the documents of manifests. Ignores documents of other APIs, except secrets that contain the name of a user. With
/// `cluster`, converts only the objects of the `RabbitmqCluster` with this name.
///
/// # Errors
/// The documents contain no objects of the operator, or objects of several clusters and `cluster` is `None`.
pub fn import(documents: &[Value], cluster: Option<&str>) -> Result<Imported, ImportError> {
    let items = documents.iter().flat_map(|document| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    });
    let items: Vec<&Value> = items.collect();
    let objects: Vec<Object<'_>> = items.iter().filter_map(|item| Object::of(item)).collect();
    if objects.is_empty() {
        return Err(ImportError::Nothing("objects of rabbitmq.com/v1beta1"));
    }
    let clusters: BTreeSet<&str> = objects.iter().filter_map(|object| object.cluster).collect();
    if let Some(unknown) = cluster.filter(|cluster| !clusters.contains(cluster)) {
        return Err(ImportError::UnknownCluster(unknown.to_owned()));
    }
    if cluster.is_none() && clusters.len() > 1 {
        return Err(ImportError::SeveralClusters(clusters.into_iter().map(str::to_owned).collect()));
    }
    let users = Users::of(&items, &objects);
    let mut builder = Builder::default();
    let chosen = objects.iter().filter(|object| cluster.is_none() || object.cluster == cluster);
    chosen.for_each(|object| add(&mut builder, object, &users));
    Ok(builder.finish())
}

/// A custom resource.
struct Object<'a> {
    kind: &'a str,
    /// The name of the Kubernetes object.
    name: &'a str,
    namespace: &'a str,
    cluster: Option<&'a str>,
    spec: &'a Value,
    /// The name of the user in the status of a `User`.
    username: Option<&'a str>,
}

impl<'a> Object<'a> {
    fn of(item: &'a Value) -> Option<Self> {
        text(item, "apiVersion").filter(|version| version.starts_with(GROUP))?;
        let (metadata, spec) = (item.get("metadata")?, item.get("spec")?);
        let reference = spec.get("rabbitmqClusterReference");
        let cluster = reference.and_then(|reference| {
            // A reference without a name contains the secret of a cluster outside Kubernetes.
            text(reference, "name").or_else(|| text(reference.get("connectionSecret")?, "name"))
        });
        let username = item.get("status").and_then(|status| text(status, "username"));
        let namespace = text(metadata, "namespace").unwrap_or("default");
        Some(Self { kind: text(item, "kind")?, name: text(metadata, "name")?, namespace, cluster, spec, username })
    }

    /// Returns the address of the object in messages: `Queue/orders`.
    fn address(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// The names of users in RabbitMQ, by the namespace and the name of the `User` object.
struct Users(BTreeMap<(String, String), String>);

impl Users {
    /// The name of a user is in the status, or in a secret.
    fn of(items: &[&Value], objects: &[Object<'_>]) -> Self {
        let name = |user: &Object<'_>| {
            let secret = user.spec.get("importCredentialsSecret").and_then(|secret| text(secret, "name"));
            let from_secret = || username_in(items, user.namespace, secret?);
            user.username.map(str::to_owned).or_else(from_secret)
        };
        let users = objects.iter().filter(|object| object.kind == "User");
        let key = |user: &Object<'_>| (user.namespace.to_owned(), user.name.to_owned());
        Self(users.filter_map(|user| Some((key(user), name(user)?))).collect())
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&str> {
        self.0.get(&(namespace.to_owned(), name.to_owned())).map(String::as_str)
    }
}

/// Returns the name of the user in a secret, if one of the documents is the secret.
fn username_in(items: &[&Value], namespace: &str, name: &str) -> Option<String> {
    let is_secret = |item: &&&Value| {
        let metadata = item.get("metadata");
        text(item, "kind") == Some("Secret")
            && metadata.and_then(|it| text(it, "name")) == Some(name)
            && metadata.and_then(|it| text(it, "namespace")).unwrap_or("default") == namespace
    };
    let secret = items.iter().find(is_secret)?;
    let plain = secret.get("stringData").and_then(|data| text(data, "username")).map(str::to_owned);
    let encoded = || {
        use base64::Engine;
        let data = secret.get("data").and_then(|data| text(data, "username"))?;
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data.trim()).ok()?).ok()
    };
    plain.or_else(encoded)
}

fn add(builder: &mut Builder, object: &Object<'_>, users: &Users) {
    let Object { kind, spec, .. } = object;
    let address = object.address();
    let vhost = text(spec, "vhost").unwrap_or(DEFAULT_VHOST);
    let arguments = || spec.get("arguments").filter(|it| it.is_object()).cloned().unwrap_or(json!({}));
    let flag = |key: &str, default: bool| spec.get(key).and_then(Value::as_bool).unwrap_or(default);
    let name = text(spec, "name");
    let converted = match (*kind, name) {
        ("Vhost", Some(name)) => Some(vhost_entries(builder, &address, name, spec)),
        ("Queue", Some(name)) => {
            let mut all = arguments();
            if let Some(queue_type) = text(spec, "type") {
                all["x-queue-type"] = json!(queue_type);
            }
            let (durable, auto_delete) = (flag("durable", true), flag("autoDelete", false));
            Some(vec![(
                "queues",
                json!({"vhost": vhost, "name": name, "durable": durable, "auto_delete": auto_delete, "arguments": all}),
            )])
        }
        ("Exchange", Some(name)) => {
            let (durable, auto_delete) = (flag("durable", false), flag("autoDelete", false));
            let exchange = json!({"vhost": vhost, "name": name, "type": text(spec, "type").unwrap_or("direct"),
                                  "durable": durable, "auto_delete": auto_delete, "internal": false,
                                  "arguments": arguments()});
            Some(vec![("exchanges", exchange)])
        }
        ("Binding", _) => text(spec, "destination").and_then(|destination| {
            let key = text(spec, "routingKey").unwrap_or_default();
            let destination_type = text(spec, "destinationType").unwrap_or("queue");
            let binding = json!({"vhost": vhost, "source": text(spec, "source")?, "destination": destination,
                                 "destination_type": destination_type, "routing_key": key, "arguments": arguments()});
            Some(vec![("bindings", binding)])
        }),
        ("Policy" | "OperatorPolicy", Some(name)) => spec.get("definition").map(|definition| {
            let is_operator = *kind == "OperatorPolicy";
            let apply_to = text(spec, "applyTo").unwrap_or(if is_operator { "queues" } else { "all" });
            let pattern = spec.get("pattern").and_then(Value::as_str).unwrap_or_default();
            let priority = spec.get("priority").cloned().unwrap_or(json!(0));
            let policy =
                json!({"pattern": pattern, "priority": priority, "apply-to": apply_to, "definition": definition});
            vec![super::definitions::policy(is_operator, vhost, name, &policy)]
        }),
        ("User", _) => return add_user(builder, object, users),
        ("Permission" | "TopicPermission", _) => return add_permission(builder, object, users),
        ("Shovel", Some(name)) => {
            let mut shovel = renamed(spec, SHOVEL);
            add_uri(&mut shovel, "src-uri", name, "SOURCE_URI");
            add_uri(&mut shovel, "dest-uri", name, "DESTINATION_URI");
            Some(vec![parameter("shovel", vhost, name, &shovel.into())])
        }
        ("Federation", Some(name)) => {
            let mut upstream = renamed(spec, UPSTREAM);
            add_uri(&mut upstream, "uri", name, "URI");
            Some(vec![parameter("federation-upstream", vhost, name, &upstream.into())])
        }
        ("SuperStream", Some(_)) => Some(super_stream(object.name, vhost, spec)),
        (_, _) => return builder.leave_out(&address, "topo does not support this kind"),
    };
    match converted {
        Some(entries) => builder.extend(entries),
        None => builder.leave_out(&address, "a required field is missing"),
    }
}

fn vhost_entries(builder: &mut Builder, address: &str, name: &str, spec: &Value) -> Vec<Entry> {
    let mut vhost = json!({ "name": name });
    for (from, to) in [("tags", "tags"), ("defaultQueueType", "default_queue_type")] {
        if let Some(value) = spec.get(from).filter(|value| !value.is_null()) {
            vhost[to] = value.clone();
        }
    }
    let limit = |field: &str| spec.get("limits").and_then(|limits| limits.get(field)).and_then(Value::as_i64);
    let limits = vhost_limits(name, [("max-connections", limit("connections")), ("max-queues", limit("queues"))]);
    if spec["tracing"] == json!(true) {
        builder.leave_out(address, "topo does not support `tracing`");
    }
    std::iter::once(("vhosts", vhost)).chain(limits).collect()
}

/// The reason to leave out a user whose name is in a secret that the files do not contain.
const UNKNOWN_USER: &str = "the name of the user is unknown: add its secret to the files, or export the object with its \
                            status (kubectl get -o yaml)";

fn add_user(builder: &mut Builder, object: &Object<'_>, users: &Users) {
    let Some(name) = users.get(object.namespace, object.name) else {
        return builder.leave_out(&object.address(), UNKNOWN_USER);
    };
    let tags = object.spec.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let tags = tags.collect::<Vec<_>>().join(",");
    let limits = object.spec.get("limits").map_or_else(Fields::new, |limits| {
        renamed(limits, &[("connections", "max-connections"), ("channels", "max-channels")])
    });
    builder.add("users", json!({"name": name, "tags": tags, "limits": limits}));
}

fn add_permission(builder: &mut Builder, object: &Object<'_>, users: &Users) {
    let spec = object.spec;
    let reference = spec.get("userReference").and_then(|reference| text(reference, "name"));
    let referenced = reference.and_then(|name| users.get(object.namespace, name));
    let Some(user) = text(spec, "user").or(referenced) else {
        return builder.leave_out(&object.address(), UNKNOWN_USER);
    };
    let vhost = text(spec, "vhost").unwrap_or(DEFAULT_VHOST);
    let patterns = spec.get("permissions").cloned().unwrap_or(json!({}));
    let pattern = |key: &str| patterns.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (write, read) = (pattern("write"), pattern("read"));
    if object.kind == "Permission" {
        let configure = pattern("configure");
        let permission = json!({"user": user, "vhost": vhost, "configure": configure, "write": write, "read": read});
        return builder.add("permissions", permission);
    }
    let exchange = pattern("exchange");
    builder.add(
        "topic_permissions",
        json!({"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read}),
    );
}

/// Adds a reference to an environment variable, because the URI is in a secret.
fn add_uri(parameter: &mut Fields, field: &str, name: &str, suffix: &str) {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let prefix = if name.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    parameter.insert(field.to_owned(), Template::Secret(SecretRef::Env(format!("{prefix}{name}_{suffix}"))).to_json());
}

/// Returns the objects that the operator creates for a super stream: it names them after the Kubernetes object.
fn super_stream(name: &str, vhost: &str, spec: &Value) -> Vec<Entry> {
    let keys: Vec<String> = match spec.get("routingKeys").and_then(Value::as_array).filter(|keys| !keys.is_empty()) {
        Some(keys) => keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => (0..spec.get("partitions").and_then(Value::as_u64).unwrap_or(3)).map(|it| it.to_string()).collect(),
    };
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
    entries
}
