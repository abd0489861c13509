//! Turns actions into management API requests. The conversion is a pure function, so a plan can show the requests that
//! an apply sends.

use super::action::Action;
use super::{link_request, user_request};
use crate::model::address::encode;
use crate::model::record_kinds::{ListPath, RecordScope};
use crate::model::{Binding, Destination, Record, RecordId, RecordKind, VhostName, encoding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The HTTP methods of the management API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads an object or a list.
    Get,
    /// Creates or overwrites an object.
    Put,
    /// Creates a binding, an exchange with its bindings, or the deletion protection of a vhost.
    Post,
    /// Deletes an object.
    Delete,
}

impl Method {
    /// Returns the name of the method in a request line.
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

/// A management API request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The percent-encoded path, which starts with `/api`. The path can end with a query string. It does not include
    /// the base URL or its path prefix.
    pub path: String,
    /// The JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// Formats the method and the path: `PUT /api/queues/shop/orders.work`.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Request {
    /// Returns a GET request.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::Get, path: path.into(), body: None }
    }

    /// Returns a PUT request.
    pub(crate) fn put(path: String, body: Value) -> Self {
        Self { method: Method::Put, path, body: Some(body) }
    }

    /// Returns a DELETE request.
    pub(crate) fn delete(path: String) -> Self {
        Self { method: Method::Delete, path, body: None }
    }

    /// Appends a query string to the path, and returns the request.
    pub(crate) fn with_query(mut self, query: &str) -> Self {
        self.path.push('?');
        self.path.push_str(query);
        self
    }

    /// Returns the first dot segment (`.` or `..`) of the path. No HTTP request can address an object whose path has a
    /// dot segment. Cowboy decodes a path and then removes dot segments (`cowboy_router:split_path`), so encoding `..`
    /// as `%2E%2E` does not help. HTTP clients also remove dot segments.
    pub fn unaddressable_segment(&self) -> Option<&'static str> {
        let path = self.path.split('?').next().unwrap_or_default();
        path.split('/').find_map(|segment| match segment {
            "." => Some("."),
            ".." => Some(".."),
            _ => None,
        })
    }
}

/// Builds the path of a collection or an object: `/api/KIND/VHOST[/NAME…]`, each segment encoded.
pub(crate) fn path(kind: &str, segments: &[&str]) -> String {
    let mut path = format!("/api/{kind}");
    for segment in segments {
        path.push('/');
        path.push_str(&encode(segment));
    }
    path
}

/// Returns the request for an action in a vhost. Returns `None` for an action that moves messages, because moving
/// messages requires more than one request.
///
/// A declaration always sets all properties: `durable`, `auto_delete` and `arguments`, and for an exchange also `type`
/// and `internal`. The broker treats missing booleans as false, so an empty body declares a transient queue (all
/// versions).
///
/// The request does not include the guard of an [`Action::DeleteQueue`]. The flags that a guarded delete may use depend
/// on the type of the current queue, which an action does not contain. The broker supports `if-empty` and `if-unused`
/// for classic queues, responds to both flags with 400 for quorum queues, and ignores both flags for streams. The
/// broker layer adds the flags, and performs the reads before and after this request.
pub fn request(vhost: &VhostName, action: &Action) -> Option<Request> {
    let in_vhost = |kind: &str, name: &str| path(kind, &[vhost.as_str(), name]);
    Some(match action {
        Action::PutVhost { vhost: settings } => {
            // Sends all settings, because on RabbitMQ 3.10 and later, a PUT without a description or tags clears them.
            // Omits a default queue type that is not set, because no single value means "none" on all versions.
            let mut body = json!({
                "description": settings.description.as_deref().unwrap_or_default(),
                // A string, not a list: 3.8 splits the string, and later versions accept both
                // (`rabbit_vhost:parse_tags`).
                "tags": settings.tags.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(","),
            });
            if let Some(default) = &settings.default_queue_type {
                body["default_queue_type"] = json!(default);
                // The original name of the setting. 3.10 and early 3.11 require this name, and later versions use it as
                // a fallback.
                body["defaultqueuetype"] = json!(default);
            }
            Request::put(path("vhosts", &[vhost.as_str()]), body)
        }
        Action::DeclareExchange { name, exchange, bindings } if bindings.is_empty() => {
            Request::put(in_vhost("exchanges", name.as_str()), encoding::exchange(exchange))
        }
        Action::DeclareExchange { name, exchange, bindings } => {
            let exchange = encoding::with_name(name, encoding::exchange(exchange));
            let entry = |binding| encoding::with_ends(binding, encoding::binding(binding));
            let bindings: Vec<Value> = bindings.iter().map(entry).collect();
            Request {
                method: Method::Post,
                path: path("definitions", &[vhost.as_str()]),
                body: Some(json!({ "exchanges": [exchange], "bindings": bindings })),
            }
        }
        Action::PutTopicPermission { permission } => {
            let path = in_vhost("topic-permissions", permission.user.as_str());
            Request::put(path, encoding::topic_permission(permission))
        }
        Action::PutPolicy { name, policy } => {
            Request::put(in_vhost("policies", name.as_str()), encoding::policy(policy))
        }
        Action::DeclareQueue { name, queue } => Request::put(in_vhost("queues", name.as_str()), encoding::queue(queue)),
        Action::Bind { binding } => Request {
            method: Method::Post,
            path: path("bindings", &binding_segments(vhost, binding)),
            body: Some(encoding::binding(binding)),
        },
        Action::Unbind { binding, properties_key } => {
            let key = match properties_key.as_str() {
                // The broker decodes this segment twice (`rabbit_mgmt_wm_binding`) and the other segments once.
                // Encoding a dot segment twice makes it addressable.
                "." => "%2E",
                ".." => "%2E%2E",
                key => key,
            };
            let mut segments = binding_segments(vhost, binding).to_vec();
            segments.push(key);
            Request::delete(path("bindings", &segments))
        }
        Action::DeleteQueue { name, guard: _ } => Request::delete(in_vhost("queues", name.as_str())),
        Action::DeleteExchange { name } => Request::delete(in_vhost("exchanges", name.as_str())),
        Action::DeletePolicy { name } => Request::delete(in_vhost("policies", name.as_str())),
        Action::PutRecord { record, keeps_password } => put_record(vhost, record, *keeps_password),
        Action::DeleteRecord { id } => Request::delete(record_path(vhost, id)),
        Action::MoveMessages { .. } => return None,
    })
}

/// Builds the request that writes a record.
fn put_record(vhost: &VhostName, record: &Record, keeps_password: bool) -> Request {
    let (row, mut id) = (record.id.kind.row(), record.id.clone());
    if row.list == ListPath::Vhost {
        return Request { method: Method::Post, path: record_path(vhost, &id), body: None };
    }
    let mut body = match row.kind {
        RecordKind::User => user_request::body(record, keeps_password),
        RecordKind::Shovel | RecordKind::Upstream => link_request::body(record),
        RecordKind::OperatorPolicy
        | RecordKind::VhostLimit
        | RecordKind::UserLimit
        | RecordKind::GlobalParameter
        | RecordKind::Permission
        | RecordKind::TopicPermission
        | RecordKind::UpstreamSet
        | RecordKind::Parameter
        | RecordKind::DeletionProtection => json!(record.fields),
    };
    if row.is_last_key_in_body
        && let (Some(field), Some(segment)) = (row.key.last(), id.key.pop())
    {
        body[*field] = json!(segment);
    }
    Request::put(record_path(vhost, &id), body)
}

/// Builds the path of a record: `/api/operator-policies/shop/ceiling`. The path of a cluster record contains no vhost.
/// The path of a runtime parameter contains the component before the vhost: `/api/parameters/my-plugin/shop/main`. The
/// path of the deletion protection is below the vhost: `/api/vhosts/shop/deletion/protection`.
pub(crate) fn record_path(vhost: &VhostName, id: &RecordId) -> String {
    let row = id.kind.row();
    if row.list == ListPath::Vhost {
        return path("vhosts", &[vhost.as_str()]) + "/" + row.path;
    }
    let vhost = match row.scope {
        RecordScope::Vhost => Some(vhost.as_str()),
        RecordScope::Cluster => None,
    };
    let mut segments: Vec<&str> = id.key.iter().map(String::as_str).collect();
    let before_vhost = usize::from(row.list == ListPath::OfAllVhosts);
    segments.splice(before_vhost..before_vhost, vhost);
    path(row.path, &segments)
}

/// Returns the key under which the broker lists a binding without arguments (`rabbit_mgmt_format:pack_binding_props`,
/// all versions).
pub(crate) fn properties_key(routing_key: &str) -> String {
    if routing_key.is_empty() {
        return "~".to_owned();
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    let quoted = routing_key.as_bytes().iter().map(|byte| match byte {
        b' ' => "+".to_owned(),
        byte if plain(byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    quoted.collect()
}

fn binding_segments<'a>(vhost: &'a VhostName, binding: &'a Binding) -> [&'a str; 5] {
    let kind = match &binding.destination {
        Destination::Queue(_) => "q",
        Destination::Exchange(_) => "e",
    };
    [vhost.as_str(), "e", binding.source.as_str(), kind, binding.destination.name()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ApplyTo, ArgumentValue, Arguments, Exchange, Float, Policy, Priority, Queue, Vhost};
    use crate::plan::Guard;

    fn delete_queue(name: &str) -> Request {
        request(&"/".into(), &Action::DeleteQueue { name: name.into(), guard: Guard::Nothing }).unwrap()
    }

    #[test]
    fn every_name_is_one_segment() {
        for (name, segment) in [
            ("a/b", "a%2Fb"),
            ("a b", "a%20b"),
            ("%", "%25"),
            ("%2F", "%252F"),
            ("@", "%40"),
            ("ü", "%C3%BC"),
            ("#", "%23"),
            ("?x=1", "%3Fx%3D1"),
            ("a:b,c", "a%3Ab%2Cc"),
            ("+", "%2B"),
            ("~", "~"),
            ("...", "..."),
            ("日本", "%E6%97%A5%E6%9C%AC"),
        ] {
            let request = delete_queue(name);
            assert_eq!(request.path, format!("/api/queues/%2F/{segment}"));
            assert_eq!(request.unaddressable_segment(), None, "{name}");
        }
    }

    #[test]
    fn dot_segments_are_unaddressable() {
        assert_eq!(delete_queue("..").unaddressable_segment(), Some(".."));
        assert_eq!(delete_queue(".").unaddressable_segment(), Some("."));
        assert_eq!(delete_queue("..").with_query("if-empty=true").unaddressable_segment(), Some(".."));
    }

    #[test]
    fn queue_body_is_complete() {
        let queue = Queue {
            durable: true,
            auto_delete: false,
            exclusive: false,
            arguments: [
                ("x-message-ttl".to_owned(), ArgumentValue::Integer(5)),
                ("x-odd".to_owned(), ArgumentValue::Float(Float(5.0))),
            ]
            .into(),
        };
        let request = request(&"shop".into(), &Action::DeclareQueue { name: "q".into(), queue }).unwrap();
        assert_eq!(request.to_string(), "PUT /api/queues/shop/q");
        assert_eq!(
            request.body.unwrap().to_string(),
            r#"{"durable":true,"auto_delete":false,"arguments":{"x-message-ttl":5,"x-odd":5.0}}"#
        );
    }

    #[test]
    fn exchange_body_is_complete() {
        let exchange = Exchange {
            kind: "topic".to_owned(),
            durable: true,
            auto_delete: false,
            internal: true,
            arguments: Arguments::new(),
        };
        let request =
            request(&"shop".into(), &Action::DeclareExchange { name: "e".into(), exchange, bindings: Vec::new() })
                .unwrap();
        assert_eq!(request.to_string(), "PUT /api/exchanges/shop/e");
        assert_eq!(
            request.body.unwrap(),
            json!({"type": "topic", "durable": true, "auto_delete": false, "internal": true, "arguments": {}})
        );
    }

    #[test]
    fn policy_body_uses_the_broker_keys() {
        let policy = Policy {
            pattern: "^a".to_owned(),
            apply_to: ApplyTo::QuorumQueues,
            priority: Priority(3.0),
            definition: [("max-length".to_owned(), ArgumentValue::Integer(9))].into(),
        };
        let request = request(&"shop".into(), &Action::PutPolicy { name: "p/1".into(), policy }).unwrap();
        assert_eq!(request.to_string(), "PUT /api/policies/shop/p%2F1");
        assert_eq!(
            request.body.unwrap(),
            json!({"pattern": "^a", "apply-to": "quorum_queues", "priority": 3, "definition": {"max-length": 9}})
        );
    }

    #[test]
    fn bindings_are_deleted_by_their_listed_key() {
        let binding = Binding {
            source: "amq.topic".into(),
            destination: Destination::Exchange("e/2".into()),
            routing_key: "a~b".to_owned(),
            arguments: Arguments::new(),
        };
        let bind = request(&"/".into(), &Action::Bind { binding: binding.clone() }).unwrap();
        assert_eq!(bind.to_string(), "POST /api/bindings/%2F/e/amq.topic/e/e%2F2");
        assert_eq!(bind.body, Some(json!({"routing_key": "a~b", "arguments": {}})));
        for (listed, segment) in
            [("a%7Eb", "a%257Eb"), ("~", "~"), ("a+b~xyz", "a%2Bb~xyz"), ("..", "%252E%252E"), (".", "%252E")]
        {
            let unbind = Action::Unbind { binding: binding.clone(), properties_key: listed.to_owned() };
            let request = request(&"/".into(), &unbind).unwrap();
            assert_eq!(request.to_string(), format!("DELETE /api/bindings/%2F/e/amq.topic/e/e%2F2/{segment}"));
            assert_eq!(request.unaddressable_segment(), None);
        }
    }

    #[test]
    fn vhost_body_is_complete() {
        let settings =
            Vhost { description: None, tags: Some(["a".into(), "b".into()].into()), default_queue_type: None };
        let put = request(&"a/b".into(), &Action::PutVhost { vhost: settings }).unwrap();
        assert_eq!(put.to_string(), "PUT /api/vhosts/a%2Fb");
        assert_eq!(put.body, Some(json!({"description": "", "tags": "a,b"})));
        let settings = Vhost { default_queue_type: Some("quorum".into()), ..Vhost::default() };
        let put = request(&"v".into(), &Action::PutVhost { vhost: settings }).unwrap();
        assert_eq!(
            put.body,
            Some(json!({"description": "", "tags": "", "default_queue_type": "quorum", "defaultqueuetype": "quorum"}))
        );
    }
}
