//! Facts about RabbitMQ on which topo relies, tested without topo. Each test is named after a fact, so that a failure
//! on a new version identifies the change. Its doc comment identifies the code that relies on the fact.
//!
//! | file | facts about |
//! |---|---|
//! | [`redeclare`] | refused differences of an existing queue, their order and errors |
//! | [`redeclare_order`] | compared arguments by queue type and version |
//! | [`declare`] | new queues and defaults of omitted fields |
//! | [`values`] | refused values of arguments |
//! | [`queue_type`] | the type of a queue that is declared without one |
//! | [`vhosts`] | writes and visibility of vhosts |
//! | [`exchanges`] | differences, deletions, and auto-delete |
//! | [`bindings`] | identity, keys, and limits of the management API |
//! | [`names`] | names in paths, and their maximum length |
//! | [`http_status`] | statuses and reasons of refused requests |
//! | [`rights`] | tags and permissions |
//! | [`delivery_limits`] | the number of deliveries by a quorum queue |
//! | [`deletes`] | `if-empty`, `if-unused`, and side effects of deletions |
//! | [`counts`] | message counts and their delay |
//! | [`basic_get`] | a `basic.get` that checks for a message |
//! | [`reads`] | contents of lists |
//! | [`policies`] | accepted policies |
//! | [`records`] | accepted operator policies and their permissions |
//! | [`governing`] | the governing policy of a queue |
//! | [`effective`] | effects of a policy on a queue with arguments |
//! | [`dead_letters`] | destinations of dead-lettered messages |
//! | [`held_messages`] | messages that a consumer returns |
//! | [`lock`] | a queue as a lock |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod basic_get;
mod bindings;
mod counts;
mod dead_letters;
mod declare;
mod deletes;
mod delivery_limits;
mod effective;
mod exchanges;
mod governing;
mod held_messages;
mod http_status;
mod lock;
mod names;
mod policies;
mod queue_type;
mod reads;
mod records;
mod redeclare;
mod redeclare_order;
mod rights;
#[path = "../support/mod.rs"]
mod support;
mod values;
mod vhosts;

use serde_json::{Map, Value, json};

use crate::support::http::Answer;
use crate::support::{Amqp, Http, Node, Vhost};

/// Returns true from this version on.
fn since(major: u32, minor: u32) -> bool {
    Node::shared().at_least(major, minor)
}

/// Returns true if this version has streams. Before 3.9, expects that the broker refuses a stream.
fn supports_streams() -> bool {
    if !since(3, 9) {
        Stage::new("no-streams")
            .queue("q", "stream", json!({}))
            .expect_refusal("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': invalid_queue_type");
    }
    since(3, 9)
}

/// A new vhost, which the test uses over HTTP as an administrator.
struct Stage {
    vhost: Vhost<'static>,
    http: Http,
}

impl Stage {
    fn new(hint: &str) -> Self {
        let vhost = Node::shared().vhost(hint);
        Self { http: vhost.http(), vhost }
    }

    fn amqp(&self) -> Amqp {
        self.vhost.amqp()
    }

    /// Returns the path of an object, for example `path("queues", &["q"])`; see [`Vhost::path`].
    fn path(&self, kind: &str, names: &[&str]) -> String {
        self.vhost.path(kind, names)
    }

    /// Declares a durable queue of this type; omits an empty type.
    fn queue(&self, name: &str, kind: &str, mut arguments: Value) -> Reply {
        if !kind.is_empty() {
            arguments["x-queue-type"] = kind.into();
        }
        self.put("queues", name, json!({"durable": true, "auto_delete": false, "arguments": arguments}))
    }

    fn put(&self, kind: &str, name: &str, body: Value) -> Reply {
        self.reply(self.http.put(&self.path(kind, &[name]), &body))
    }

    fn delete(&self, kind: &str, name: &str) -> Reply {
        self.reply(self.http.delete(&self.path(kind, &[name])))
    }

    /// Deletes a queue with these flags, such as `if-empty=true`.
    fn delete_queue(&self, name: &str, flags: &str) -> Reply {
        self.reply(self.http.delete(&format!("{}?{flags}", self.path("queues", &[name]))))
    }

    /// Binds a queue to an exchange.
    fn bind(&self, source: &str, queue: &str, body: Value) -> Reply {
        self.reply(self.http.post(&self.path("bindings", &["e", source, "q", queue]), &body))
    }

    /// Binds an exchange to another exchange, without a routing key.
    fn bind_exchange(&self, source: &str, destination: &str) -> Reply {
        self.reply(self.http.post(&self.path("bindings", &["e", source, "e", destination]), &json!({})))
    }

    /// Writes a policy for all queues.
    fn policy(&self, name: &str, priority: f64, definition: Value) -> Reply {
        let body = json!({"pattern": ".*", "apply-to": "queues", "priority": priority, "definition": definition});
        self.put("policies", name, body)
    }

    /// Returns the body of a `GET` request for an object.
    fn get(&self, kind: &str, name: &str) -> Value {
        self.http.get(&self.path(kind, &[name])).expect_status(200)
    }

    /// Returns a queue from the list without statistics, as topo reads it.
    fn listed(&self, name: &str) -> Map<String, Value> {
        self.in_list(name, "disable_stats=true")
    }

    /// Returns the totals of a queue from the list, as topo reads them.
    fn totals(&self, name: &str) -> Map<String, Value> {
        self.in_list(name, "disable_stats=true&enable_queue_totals=true")
    }

    fn in_list(&self, name: &str, query: &str) -> Map<String, Value> {
        let path = format!("{}?{query}", self.path("queues", &[]));
        let list = self.http.get(&path).expect_status(200);
        let mut queues = list.as_array().expect("a list").iter().filter_map(Value::as_object);
        queues.find(|queue| queue["name"] == name).unwrap_or_else(|| panic!("no {name}: {list}")).clone()
    }

    /// Gets a message with this mode: `ack_requeue_true`, `reject_requeue_false`, and so on.
    fn take(&self, queue: &str, how: &str) -> Reply {
        let body = json!({"count": 1, "ackmode": how, "encoding": "auto", "truncate": 0});
        let path = self.path("queues", &[queue, "get"]);
        self.reply(self.http.post(&path, &body))
    }

    /// Gets a message and rejects it; the queue must contain one.
    fn reject(&self, queue: &str) {
        assert_eq!(self.amqp().reject(queue, 1), 1, "{queue}");
    }

    fn reply(&self, answer: Answer) -> Reply {
        let reason = answer.body.get("reason").unwrap_or(&answer.body);
        let words = match reason.as_str() {
            Some(words) => words.replace(self.vhost.name(), "v"),
            None if reason.is_null() => String::new(),
            None => reason.to_string(),
        };
        Reply { status: answer.status, words, body: answer.body }
    }
}

/// The broker's response, with the vhost's name replaced by `v`.
#[derive(Debug)]
struct Reply {
    status: u16,
    /// The reason; empty if there is none.
    words: String,
    body: Value,
}

impl Reply {
    #[track_caller]
    fn expect(self, status: u16, words: &str) {
        assert_eq!((self.status, self.words.as_str()), (status, words));
    }

    /// Expects a new object (201).
    #[track_caller]
    fn expect_created(self) {
        self.expect(201, "");
    }

    /// Expects an accepted request that creates no object (204).
    #[track_caller]
    fn expect_no_content(self) {
        self.expect(204, "");
    }

    #[track_caller]
    fn expect_refusal(self, words: &str) {
        assert_eq!(self.body["error"], "bad_request");
        self.expect(400, words);
    }

    /// Expects a refusal because of a difference of queue `q`, such as `x-expires`, `received '1' but current is '2'`.
    #[track_caller]
    fn expect_difference(self, argument: &str, tail: &str) {
        self.expect_refusal(&format!("inequivalent arg '{argument}' for queue 'q' in vhost 'v': {tail}"));
    }
}
