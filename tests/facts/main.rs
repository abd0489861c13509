//! Proves the facts about RabbitMQ that topo relies on. Each fact is a test with the fact as its name, so a version that
//! changes one is noticed by name. No test here uses topo.
//!
//! | file | facts about |
//! |---|---|
//! | [`redeclare`] | which differences of an existing queue are refused, in which order, and in which words |
//! | [`redeclare_order`] | which arguments are compared, by type of queue and version |
//! | [`declare`] | what a new queue may be, and what a request leaves out |
//! | [`values`] | which values of arguments are refused |
//! | [`queue_type`] | the type that a queue gets when it is declared without one |
//! | [`vhosts`] | what writing a vhost does, and who sees it |
//! | [`exchanges`] | differences, deletions, and exchanges that go with their last binding |
//! | [`bindings`] | identity, keys, and what the management API cannot do with them |
//! | [`names`] | names in paths, and how long they may be |
//! | [`http_status`] | what is said when a request is refused |
//! | [`rights`] | who may do what |
//! | [`delivery_limits`] | how often a quorum queue delivers a message |
//! | [`deletes`] | what `if-empty` and `if-unused` are worth, and what goes along |
//! | [`counts`] | what can be known of the messages in a queue |
//! | [`basic_get`] | asking a queue for a message to see whether there is one |
//! | [`reads`] | what lists show, and what they leave out |
//! | [`policies`] | which policies are taken |
//! | [`records`] | which operator policies are taken, and who writes them |
//! | [`governing`] | which policy governs a queue |
//! | [`effective`] | what a policy does to a live queue, beside the queue's own arguments |
//! | [`dead_letters`] | where dead letters go |
//! | [`lock`] | a queue as a lock |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so by panicking")]

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
use crate::support::{Amqp, Http, Node, Vhost, until};

/// True from that version of RabbitMQ on.
fn since(major: u32, minor: u32) -> bool {
    Node::shared().at_least(major, minor)
}

/// Whether this version has streams: a fact about streams is, before 3.9, that there are none.
fn there_are_streams() -> bool {
    if !since(3, 9) {
        Stage::new("no-streams")
            .queue("q", "stream", json!({}))
            .refused("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': invalid_queue_type");
    }
    since(3, 9)
}

/// A node that has just started answers 500 for a while, to what needs a channel or its statistics.
fn not_too_early(mut ask: impl FnMut() -> Answer) -> Answer {
    until("an answer but 500", || {
        let answer = ask();
        (answer.status != 500).then_some(answer)
    })
}

/// A vhost of its own, asked over HTTP as administrator.
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

    /// `path("queues", &["q"])`: see [`Vhost::path`].
    fn path(&self, kind: &str, names: &[&str]) -> String {
        self.vhost.path(kind, names)
    }

    /// Declares a durable queue of that type; an empty type is left out.
    fn queue(&self, name: &str, kind: &str, mut arguments: Value) -> Said {
        if !kind.is_empty() {
            arguments["x-queue-type"] = kind.into();
        }
        self.put("queues", name, json!({"durable": true, "auto_delete": false, "arguments": arguments}))
    }

    fn put(&self, kind: &str, name: &str, body: Value) -> Said {
        self.said(self.http.put(&self.path(kind, &[name]), &body))
    }

    fn delete(&self, kind: &str, name: &str) -> Said {
        self.said(self.http.delete(&self.path(kind, &[name])))
    }

    /// Deletes a queue with these flags: `if-empty=true`.
    fn delete_queue(&self, name: &str, flags: &str) -> Said {
        self.said(self.http.delete(&format!("{}?{flags}", self.path("queues", &[name]))))
    }

    /// Binds a queue to an exchange.
    fn bind(&self, source: &str, queue: &str, body: Value) -> Said {
        self.said(self.http.post(&self.path("bindings", &["e", source, "q", queue]), &body))
    }

    /// Binds an exchange to another, without a key.
    fn bind_exchange(&self, source: &str, destination: &str) -> Said {
        self.said(self.http.post(&self.path("bindings", &["e", source, "e", destination]), &json!({})))
    }

    /// Writes a policy for all queues.
    fn policy(&self, name: &str, priority: f64, definition: Value) -> Said {
        let body = json!({"pattern": ".*", "apply-to": "queues", "priority": priority, "definition": definition});
        self.put("policies", name, body)
    }

    /// What `GET` shows of one object.
    fn get(&self, kind: &str, name: &str) -> Value {
        self.http.get(&self.path(kind, &[name])).expect_status(200)
    }

    /// A queue in a list without statistics, read as topo reads it.
    fn listed(&self, name: &str) -> Map<String, Value> {
        self.in_list(name, "disable_stats=true")
    }

    /// The totals of a queue in the list, asked for as topo asks for them.
    fn totals(&self, name: &str) -> Map<String, Value> {
        self.in_list(name, "disable_stats=true&enable_queue_totals=true")
    }

    fn in_list(&self, name: &str, query: &str) -> Map<String, Value> {
        let path = format!("{}?{query}", self.path("queues", &[]));
        let list = not_too_early(|| self.http.get(&path)).expect_status(200);
        let mut queues = list.as_array().expect("a list").iter().filter_map(Value::as_object);
        queues.find(|queue| queue["name"] == name).unwrap_or_else(|| panic!("no {name}: {list}")).clone()
    }

    /// Takes one message out and gives it back or not: `ack_requeue_true`, `reject_requeue_false`, and so on.
    fn take(&self, queue: &str, how: &str) -> Said {
        let body = json!({"count": 1, "ackmode": how, "encoding": "auto", "truncate": 0});
        let path = self.path("queues", &[queue, "get"]);
        self.said(not_too_early(|| self.http.post(&path, &body)))
    }

    /// Takes one message out and rejects it; it must be there.
    fn reject(&self, queue: &str) {
        assert_eq!(self.amqp().reject(queue, 1), 1, "{queue}");
    }

    fn said(&self, answer: Answer) -> Said {
        let reason = answer.body.get("reason").unwrap_or(&answer.body);
        let words = match reason.as_str() {
            Some(words) => words.replace(self.vhost.name(), "v"),
            None if reason.is_null() => String::new(),
            None => reason.to_string(),
        };
        Said { status: answer.status, words, body: answer.body }
    }
}

/// What the broker said to a request, with the vhost's name as `v`.
#[derive(Debug)]
struct Said {
    status: u16,
    /// Its reason, if it gave one.
    words: String,
    body: Value,
}

impl Said {
    #[track_caller]
    fn is(self, status: u16, words: &str) {
        assert_eq!((self.status, self.words.as_str()), (status, words));
    }

    /// A new object was made.
    #[track_caller]
    fn created(self) {
        self.is(201, "");
    }

    /// The request was taken, and there was nothing new in it.
    #[track_caller]
    fn taken(self) {
        self.is(204, "");
    }

    #[track_caller]
    fn refused(self, words: &str) {
        assert_eq!(self.body["error"], "bad_request");
        self.is(400, words);
    }

    /// Refused for a difference to the queue `q`: `x-expires`, `received '1' but current is '2'`.
    #[track_caller]
    fn unequal(self, argument: &str, tail: &str) {
        self.refused(&format!("inequivalent arg '{argument}' for queue 'q' in vhost 'v': {tail}"));
    }
}
