//! New queues: omitted fields, supported queues, and reserved names.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::Node;

/// `plan::request`: every write contains all fields.
#[test]
fn put_defaults_missing_booleans_to_false() {
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
fn exclusive_over_http_declares_a_transient_queue_without_owner() {
    let stage = Stage::new("exclusive");
    stage.put("queues", "q", json!({"durable": true, "exclusive": true})).created();
    let queue = stage.listed("q");
    assert_eq!((&queue["durable"], &queue["exclusive"]), (&json!(false), &json!(false)));
}

/// `plan::request`: a PUT must not contain `passive`, which would create nothing.
#[test]
fn passive_put_declares_nothing() {
    let stage = Stage::new("passive");
    stage.put("queues", "q", json!({"passive": true, "durable": true})).is(404, "no queue 'q' in vhost 'v'");
    stage.queue("q", "classic", json!({})).created();
    stage.put("queues", "q", json!({"passive": true})).taken();
}

/// `plan::conflict`: an unknown type is reported before any change.
#[test]
fn unknown_queue_type_is_refused() {
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
    let answer_of = stage.queue("q", "stream", json!({}));
    if since(3, 9) {
        answer_of.created();
    } else {
        answer_of.refused("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': invalid_queue_type");
    }
}

/// `spec::check`: refuses both when it reads a spec.
#[test]
fn quorum_queues_and_streams_are_durable_and_not_auto_delete() {
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

/// `plan::request`: from 3.13 on, `durable: false` depends on the broker's configuration. RabbitMQ's own build of 4.3
/// refuses it, Debian's permits it. Since late 4.x, a list reports it.
#[test]
fn transient_queue_requires_the_deprecated_feature() {
    let stage = Stage::new("transient");
    let features = Node::shared().http().get("/api/deprecated-features").found();
    assert_eq!(features.is_null(), !since(3, 13));
    let known = features.as_array().into_iter().flatten().find(|feature| feature["name"] == "transient_nonexcl_queues");
    let denied = known.is_some_and(|feature| feature["state"] == "denied");
    let answer_of = stage.put("queues", "q", json!({"durable": false, "arguments": {"x-queue-type": "classic"}}));
    if denied {
        assert_eq!(answer_of.status, 400);
        assert!(answer_of.words.contains("transient_nonexcl_queues"), "{answer_of:?}");
    } else {
        answer_of.created();
    }
    // A durable auto-delete queue is not affected.
    stage.put("queues", "short", json!({"durable": true, "auto_delete": true})).created();
}

/// `spec::references`: such a name cannot be declared; an equal redeclare succeeds.
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

/// `model::arguments`: HTTP cannot represent a void.
#[test]
fn null_is_refused_as_an_argument_of_a_queue() {
    let stage = Stage::new("void");
    stage.queue("q", "classic", json!({"x-own": null})).refused("null_not_allowed");
}

/// `broker::lock`, `plan::recreate`: topo marks its objects with arguments that no broker knows.
#[test]
fn unknown_argument_of_any_size_is_kept() {
    let stage = Stage::new("own");
    let long = "z".repeat(60_000);
    stage.queue("q", "classic", json!({"x-topo-note": long})).created();
    assert_eq!(stage.listed("q")["arguments"]["x-topo-note"], Value::from(long.as_str()));
    let keep =
        json!({"type": "fanout", "durable": true, "internal": true, "arguments": {"x-topo-kept-bindings": long}});
    stage.put("exchanges", "e", keep).created();
    assert_eq!(stage.get("exchanges", "e")["arguments"]["x-topo-kept-bindings"], Value::from(long));
}

/// `broker::error::BrokerError::Refused`: a vhost may be full for topo's own queues, such as its lock.
#[test]
fn vhost_can_have_a_limit_of_queues() {
    let stage = Stage::new("limit");
    let limit = stage.path("vhost-limits", &["max-queues"]);
    stage.queue("q", "classic", json!({})).created();
    assert_eq!(stage.http.put(&limit, &json!({"value": 1})).status, 204);
    let reached = "cannot declare queue 'more': queue limit in vhost 'v' (1) is reached";
    stage.queue("more", "classic", json!({})).refused(reached);
    stage.queue("q", "classic", json!({})).taken();
}
