//! Converts custom resources of the RabbitMQ Messaging Topology Operator (`rabbitmq.com/v1beta1`).
//!
//! Source: the types in `api/` of the operator 1.0 to 1.17, and the requests that it builds in `internal/`.

use super::definitions::{
    Builder, Converted, DEFAULT_VHOST, Entry, Fields, flag, mapping, number, parameter, permission, policy, renamed,
    text, topic_permission, vhost_limits,
};
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

/// The largest number of partitions of a super stream that topo converts.
const MAX_PARTITIONS: u64 = 1000;
/// The reason to leave out a user whose name is in a secret that the files do not contain.
const UNKNOWN_USER: &str = "the name of the user is unknown: add its secret to the files, or export the object with its \
                            status (kubectl get -o yaml)";

/// Converts the documents of manifests. Ignores documents of other APIs, except secrets that contain the name of a user. With
/// `cluster`, converts only the objects of the `RabbitmqCluster` with this name, or with this namespace and name.
///
/// # Errors
/// The documents contain no objects of the operator, or objects of several clusters and `cluster` is `None`.
pub fn import(documents: &[Value], cluster: Option<&str>) -> Result<Imported, ImportError> {
    let items = documents.iter().flat_map(|document| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    });
    let items: Vec<&Value> = items.filter(|item| text(item, "kind") != Some("RabbitmqCluster")).collect();
    let of_operator = |item: &&&Value| text(item, "apiVersion").is_some_and(|version| version.starts_with(GROUP));
    let mut builder = Builder::default();
    let mut objects: Vec<Object<'_>> = Vec::new();
    for item in items.iter().filter(of_operator) {
        match Object::of(item) {
            Some(object) => objects.push(object),
            None => {
                builder.leave_out(text(item, "kind").unwrap_or("an object"), "it has no `metadata.name` or no `spec`")
            }
        }
    }
    // The operator creates these objects for super streams.
    let streams: BTreeSet<&str> = objects.iter().filter(|it| it.kind == "SuperStream").map(|it| it.name).collect();
    objects.retain(|object| !object.super_stream.is_some_and(|owner| streams.contains(owner)));
    if objects.is_empty() {
        return Err(ImportError::Nothing("objects of rabbitmq.com/v1beta1"));
    }
    let clusters: BTreeSet<&str> = objects.iter().filter_map(|object| object.cluster.as_deref()).collect();
    let is_chosen = |of_object: &str| {
        let name = of_object.split_once('/').map_or(of_object, |(_, name)| name);
        cluster.is_none_or(|cluster| cluster == of_object || cluster == name)
    };
    let chosen: Vec<&str> = clusters.iter().copied().filter(|cluster| is_chosen(cluster)).collect();
    if let (Some(unknown), true) = (cluster, chosen.is_empty()) {
        return Err(ImportError::UnknownCluster(unknown.to_owned()));
    }
    if chosen.len() > 1 {
        return Err(ImportError::SeveralClusters(chosen.into_iter().map(str::to_owned).collect()));
    }
    let users = Users::of(&items, &objects);
    let mut variables = Variables::default();
    for object in &objects {
        match &object.cluster {
            Some(of_object) if !is_chosen(of_object) => {}
            None if cluster.is_some() => builder.leave_out(&object.address(), "it refers to no cluster"),
            Some(_) | None => {
                if object.kind == "Vhost" && object.spec["tracing"] == json!(true) {
                    builder.leave_out(&format!("`tracing` of {}", object.address()), "topo does not support it");
                }
                builder.add(&object.address(), converted(object, &users, &mut variables));
            }
        }
    }
    Ok(builder.finish())
}

/// A custom resource.
struct Object<'a> {
    kind: &'a str,
    /// The name of the Kubernetes object.
    name: &'a str,
    namespace: &'a str,
    /// The namespace and the name of the cluster, or of the secret of a cluster outside Kubernetes.
    cluster: Option<String>,
    spec: &'a Value,
    /// The name of the user in the status of a `User`.
    username: Option<&'a str>,
    /// The secrets that can contain the name of the user of a `User`.
    credentials: Vec<String>,
    /// The super stream for which the operator created the object.
    super_stream: Option<&'a str>,
}

impl<'a> Object<'a> {
    fn of(item: &'a Value) -> Option<Self> {
        let (metadata, spec) = (item.get("metadata")?, item.get("spec")?);
        let (kind, name) = (text(item, "kind")?, text(metadata, "name")?);
        let namespace = text(metadata, "namespace").unwrap_or("default");
        let reference = spec.get("rabbitmqClusterReference");
        let cluster = reference.and_then(|reference| {
            let namespace = text(reference, "namespace").unwrap_or(namespace);
            let secret = reference.get("connectionSecret").and_then(|secret| text(secret, "name"));
            let secret = secret.map(|secret| format!("{namespace}/secret:{secret}"));
            text(reference, "name").map(|name| format!("{namespace}/{name}")).or(secret)
        });
        let status = item.get("status");
        let named = |parent: Option<&Value>, field: &str| {
            parent.and_then(|parent| parent.get(field)).and_then(|it| text(it, "name")).map(str::to_owned)
        };
        let credentials = [named(status, "credentials"), named(Some(spec), "importCredentialsSecret")];
        let credentials = credentials.into_iter().flatten().chain([format!("{name}-user-credentials")]).collect();
        let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let mut streams = owners.filter(|owner| text(owner, "kind") == Some("SuperStream"));
        let super_stream = streams.find_map(|owner| text(owner, "name"));
        let username = status.and_then(|status| text(status, "username"));
        Some(Self { kind, name, namespace, cluster, spec, username, credentials, super_stream })
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
            let mut secrets = user.credentials.iter();
            let from_secret = || secrets.find_map(|secret| username_in(items, user.namespace, secret));
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

/// The environment variables of URIs, each with the key of a secret.
#[derive(Default)]
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns a reference to the environment variable with the URI of an object. Objects with the same secret share a
    /// variable if their names are similar; other objects do not.
    fn reference(&mut self, object: &Object<'_>, suffix: &str) -> Value {
        let secret = object.spec.get("uriSecret").and_then(|secret| text(secret, "name")).unwrap_or_default();
        let identity = format!("{}/{secret}/{suffix}", object.namespace);
        let name = text(object.spec, "name").unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let word: String = name.chars().map(plain).collect();
        let prefix = if word.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let base = format!("{prefix}{word}_{suffix}");
        let candidates = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}_{number}")));
        let is_free = |name: &String| self.0.get(name).is_none_or(|known| *known == identity);
        let name = candidates.into_iter().find(is_free).unwrap_or(base);
        self.0.insert(name.clone(), identity);
        Template::Secret(SecretRef::Env(name)).to_json()
    }
}

fn required<'a>(spec: &'a Value, name: &str) -> Result<&'a str, String> {
    text(spec, name).ok_or_else(|| format!("the field `{name}` is missing"))
}

fn converted(object: &Object<'_>, users: &Users, variables: &mut Variables) -> Converted {
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
            let mut shovel = renamed(spec, SHOVEL);
            shovel.insert("src-uri".to_owned(), variables.reference(object, "SOURCE_URI"));
            shovel.insert("dest-uri".to_owned(), variables.reference(object, "DESTINATION_URI"));
            vec![parameter("shovel", vhost, name()?, &shovel.into())]
        }
        "Federation" => {
            let mut upstream = renamed(spec, UPSTREAM);
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
    // The limit 0 refuses every connection or channel.
    let limits = mapping(object.spec, "limits")?;
    let limit =
        |from: &str, to: &str| Some((to.to_owned(), limits.get(from).filter(|limit| limit.is_number())?.clone()));
    let limits: Fields =
        [limit("connections", "max-connections"), limit("channels", "max-channels")].into_iter().flatten().collect();
    Ok(("users", json!({"name": name, "tags": tags, "limits": limits})))
}

/// Returns the objects that the operator creates for a super stream: it names them after the Kubernetes object.
fn super_stream(name: &str, vhost: &str, spec: &Value) -> Converted {
    let listed = spec.get("routingKeys").and_then(Value::as_array).filter(|keys| !keys.is_empty());
    let partitions = spec.get("partitions").map_or(Some(3), Value::as_u64);
    let keys: Option<Vec<String>> = match (listed, partitions) {
        (Some(keys), _) => keys.iter().map(|key| key.as_str().map(str::to_owned)).collect(),
        (None, Some(partitions @ 1..=MAX_PARTITIONS)) => Some((0..partitions).map(|it| it.to_string()).collect()),
        (None, _) => None,
    };
    let keys = keys
        .ok_or_else(|| format!("`partitions` is not from 1 to {MAX_PARTITIONS}, or a routing key is not a string"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, spec: Value) -> Value {
        let mut spec = spec;
        if spec.get("rabbitmqClusterReference").is_none() {
            spec["rabbitmqClusterReference"] = json!({"name": "prod"});
        }
        json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn odd_objects_are_reported() {
        let mut child = object("Queue", "s-0", json!({"name": "s-0"}));
        child["metadata"]["ownerReferences"] = json!([{"kind": "SuperStream", "name": "s"}]);
        let objects = [
            object("Queue", "a", json!({})),
            object("Queue", "b", json!({"name": "b", "durable": "no"})),
            object("SuperStream", "s", json!({"name": "s", "partitions": 1})),
            child,
            object("SuperStream", "t", json!({"name": "t", "partitions": 3_000_000})),
            object("TopicPermission", "c", json!({"user": "u", "permissions": {"exchange": ""}})),
            json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": "Queue"}),
            json!({"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqCluster", "metadata": {"name": "prod"}}),
        ];
        let Imported { definitions, left_out, .. } = import(&objects, None).unwrap();
        assert_eq!(definitions["queues"].as_array().unwrap().len(), 1);
        let left_out: Vec<String> = left_out.iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
        assert_eq!(
            left_out,
            [
                "Queue: it has no `metadata.name` or no `spec`",
                "Queue/a: the field `name` is missing",
                "Queue/b: `durable` is neither true nor false",
                "SuperStream/t: `partitions` is not from 1 to 1000, or a routing key is not a string",
                "TopicPermission/c: the topic permission has no exchange",
            ]
        );
    }

    #[test]
    fn variables_types_and_limits_are_exact() {
        let secret = |name: &str| json!({ "name": name });
        let mut user = object("User", "app", json!({"limits": {"connections": 0}}));
        user["status"] = json!({"credentials": {"name": "app-login"}});
        let objects = [
            object("Vhost", "v", json!({"name": "v", "defaultQueueType": "quorum"})),
            object("Queue", "q", json!({"name": "q", "vhost": "v"})),
            object("Federation", "x", json!({"name": "a-b", "vhost": "v", "uriSecret": secret("one")})),
            object("Federation", "y", json!({"name": "a.b", "vhost": "v", "uriSecret": secret("two")})),
            user,
            json!({"kind": "Secret", "metadata": {"name": "app-login"}, "data": {"username": "YXBw"}}),
        ];
        let definitions = import(&objects, None).unwrap().definitions;
        assert_eq!(definitions["queues"][0]["arguments"], json!({"x-queue-type": "quorum"}));
        assert_eq!(definitions["users"], json!([{"name": "app", "tags": "", "limits": {"max-connections": 0}}]));
        let uris: Vec<&Value> =
            definitions["parameters"].as_array().unwrap().iter().map(|it| &it["value"]["uri"]).collect();
        let reference = |name: &str| Template::Secret(SecretRef::Env(name.to_owned())).to_json();
        assert_eq!(uris, [&reference("A_B_URI"), &reference("A_B_URI_2")]);
    }

    #[test]
    fn clusters_of_two_namespaces_are_different() {
        let of = |namespace: &str| json!({"name": "v", "rabbitmqClusterReference": {"name": "prod", "namespace": namespace}});
        let objects = [object("Vhost", "a", of("one")), object("Vhost", "b", of("two"))];
        let both = vec!["one/prod".to_owned(), "two/prod".to_owned()];
        assert_eq!(import(&objects, None), Err(ImportError::SeveralClusters(both.clone())));
        assert_eq!(import(&objects, Some("prod")), Err(ImportError::SeveralClusters(both)));
        assert!(import(&objects, Some("two/prod")).is_ok());
        assert_eq!(import(&objects, Some("three")), Err(ImportError::UnknownCluster("three".to_owned())));
    }
}
