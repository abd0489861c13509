//! A new queue: what a request leaves out, which queues can be, and which names are taken.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::Node;

/// `plan::request`: every write says everything.
#[test]
fn what_a_put_leaves_out_counts_as_false() {
    let stage = Stage::new("empty");
    stage.put("queues", "q", json!({})).created();
    let queue = stage.listed("q");
    assert_eq!(
        (&queue["durable"], &queue["auto_delete"], &queue["exclusive"]),
        (&json!(false), &json!(false), &json!(false))
    );
    stage.put("exchanges", "e", json!({"type": "topic"})).created();
    let exchange = stage.get("exchanges", "e");
    assert_eq!(
        (&exchange["durable"], &exchange["auto_delete"], &exchange["internal"]),
        (&json!(false), &json!(false), &json!(false))
    );
    stage.put("exchanges", "typeless", json!({"durable": true})).created();
    assert_eq!(stage.get("exchanges", "typeless")["type"], "direct");
}

/// `plan::request`: `exclusive` is never sent.
#[test]
fn exclusive_over_http_makes_a_transient_queue_of_nobody() {
    let stage = Stage::new("nobody");
    stage.put("queues", "q", json!({"durable": true, "exclusive": true})).created();
    let queue = stage.listed("q");
    assert_eq!((&queue["durable"], &queue["exclusive"]), (&json!(false), &json!(false)));
}

/// `plan::request`: a PUT must not ask for `passive`, which would make nothing.
#[test]
fn a_passive_put_looks_and_makes_nothing() {
    let stage = Stage::new("passive");
    stage.put("queues", "q", json!({"passive": true, "durable": true})).is(404, "no queue 'q' in vhost 'v'");
    stage.queue("q", "classic", json!({})).created();
    stage.put("queues", "q", json!({"passive": true})).taken();
}

/// `plan::conflict`: a type that no version has is said before anything is done.
#[test]
fn a_type_that_the_broker_does_not_know_is_refused() {
    let stage = Stage::new("kind");
    let why = if since(3, 9) { "\"unsupported queue type 'bogus'\"" } else { "invalid_queue_type" };
    stage
        .queue("q", "bogus", json!({}))
        .refused(&format!("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': {why}"));
}

/// `plan::conflict`: "streams exist since RabbitMQ 3.9".
#[test]
fn streams_exist_since_3_9() {
    let stage = Stage::new("stream");
    let said = stage.queue("q", "stream", json!({}));
    if since(3, 9) {
        said.created();
    } else {
        said.refused("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': invalid_queue_type");
    }
}

/// `spec::check`: the two are refused when a spec is read.
#[test]
fn quorum_queues_and_streams_are_durable_and_stay() {
    let stage = Stage::new("properties");
    let kinds: &[&str] = if since(3, 9) { &["quorum", "stream"] } else { &["quorum"] };
    for kind in kinds {
        let arguments = json!({"x-queue-type": kind});
        stage
            .put("queues", "q", json!({"durable": false, "arguments": arguments}))
            .refused("invalid property 'non-durable' for queue 'q' in vhost 'v'");
        stage
            .put("queues", "q", json!({"durable": true, "auto_delete": true, "arguments": arguments}))
            .refused("invalid property 'auto-delete' for queue 'q' in vhost 'v'");
    }
}

/// `plan::request`: what the broker does with `durable: false` depends on its configuration from 3.13 on, and on 4.3 of
/// RabbitMQ's own build it is refused. Debian's permits it again. The list says which, since late 4.x.
#[test]
fn a_transient_queue_is_made_where_the_deprecated_feature_is_permitted() {
    let stage = Stage::new("transient");
    let features = Node::shared().http().get("/api/deprecated-features").found();
    assert_eq!(features.is_null(), !since(3, 13));
    let known = features.as_array().into_iter().flatten().find(|feature| feature["name"] == "transient_nonexcl_queues");
    let denied = known.is_some_and(|feature| feature["state"] == "denied");
    let said = stage.put("queues", "q", json!({"durable": false, "arguments": {"x-queue-type": "classic"}}));
    if denied {
        assert_eq!(said.status, 400);
        assert!(said.words.contains("transient_nonexcl_queues"), "{said:?}");
    } else {
        said.created();
    }
    // A queue that goes with its consumers is transient enough when it is durable.
    stage.put("queues", "short", json!({"durable": true, "auto_delete": true})).created();
}

/// `spec::references`: nobody can declare such a name, and a declare of what is there is equal.
#[test]
fn names_that_begin_with_amq_are_reserved() {
    let stage = Stage::new("reserved");
    stage.queue("amq.q", "classic", json!({})).is(401, "Access refused.");
    let exchange = |kind: &str| json!({"type": kind, "durable": true});
    stage.put("exchanges", "amq.new", exchange("topic")).is(401, "Access refused.");
    stage.put("exchanges", "amq.topic", exchange("topic")).taken();
    stage.put("exchanges", "amq.topic", exchange("fanout")).refused(
        "inequivalent arg 'type' for exchange 'amq.topic' in vhost 'v': received 'fanout' but current is 'topic'",
    );
    stage.delete("exchanges", "amq.topic").is(401, "Access refused.");
}

/// `model::arguments`: HTTP cannot send a void.
#[test]
fn null_is_refused_as_an_argument_of_a_queue() {
    let stage = Stage::new("void");
    stage.queue("q", "classic", json!({"x-own": null})).refused("null_not_allowed");
}

/// `broker::lock`, `plan::recreate`: topo's own objects are known by arguments that no broker knows.
#[test]
fn an_unknown_argument_of_any_size_is_kept() {
    let stage = Stage::new("own");
    let long = "z".repeat(60_000);
    stage.queue("q", "classic", json!({"x-topo-note": long})).created();
    assert_eq!(stage.listed("q")["arguments"]["x-topo-note"], Value::from(long.as_str()));
    let keep =
        json!({"type": "fanout", "durable": true, "internal": true, "arguments": {"x-topo-kept-bindings": long}});
    stage.put("exchanges", "e", keep).created();
    assert_eq!(stage.get("exchanges", "e")["arguments"]["x-topo-kept-bindings"], Value::from(long));
}

/// `broker::error::BrokerError::Refused`: a vhost may be full for what topo makes, such as its lock.
#[test]
fn a_vhost_may_have_a_limit_of_queues() {
    let stage = Stage::new("limit");
    let limit = stage.path("vhost-limits", &["max-queues"]);
    stage.queue("q", "classic", json!({})).created();
    assert_eq!(stage.http.put(&limit, &json!({"value": 1})).status, 204);
    let reached = "cannot declare queue 'more': queue limit in vhost 'v' (1) is reached";
    stage.queue("more", "classic", json!({})).refused(reached);
    stage.queue("q", "classic", json!({})).taken();
}
