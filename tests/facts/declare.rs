//! New queues: omitted fields, supported queue types, and reserved names.

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::Node;

/// Used by `plan::request`, which sends all fields in every write.
#[test]
fn put_defaults_missing_booleans_to_false() {
    let stage = Stage::new("empty");
    stage.put("queues", "q", json!({})).expect_created();
    let queue = stage.listed("q");
    assert_eq!(
        (&queue["durable"], &queue["auto_delete"], &queue["exclusive"]),
        (&json!(false), &json!(false), &json!(false))
    );
    stage.put("exchanges", "e", json!({"type": "topic"})).expect_created();
    let exchange = stage.get("exchanges", "e");
    assert_eq!(
        (&exchange["durable"], &exchange["auto_delete"], &exchange["internal"]),
        (&json!(false), &json!(false), &json!(false))
    );
    stage.put("exchanges", "typeless", json!({"durable": true})).expect_created();
    assert_eq!(stage.get("exchanges", "typeless")["type"], "direct");
}

/// Used by `plan::request`, which never sends `exclusive`.
#[test]
fn exclusive_over_http_declares_a_transient_queue_without_owner() {
    let stage = Stage::new("exclusive");
    stage.put("queues", "q", json!({"durable": true, "exclusive": true})).expect_created();
    let queue = stage.listed("q");
    assert_eq!((&queue["durable"], &queue["exclusive"]), (&json!(false), &json!(false)));
}

/// Used by `plan::request`, which never sends `passive`, because the PUT would create nothing.
#[test]
fn passive_put_declares_nothing() {
    let stage = Stage::new("passive");
    stage.put("queues", "q", json!({"passive": true, "durable": true})).expect(404, "no queue 'q' in vhost 'v'");
    stage.queue("q", "classic", json!({})).expect_created();
    stage.put("queues", "q", json!({"passive": true})).expect_no_content();
}

/// Used by `plan::conflict`, which reports an unknown type before any change.
#[test]
fn unknown_queue_type_is_refused() {
    let stage = Stage::new("kind");
    let why = if since(3, 9) { "\"unsupported queue type 'bogus'\"" } else { "invalid_queue_type" };
    stage
        .queue("q", "bogus", json!({}))
        .expect_refusal(&format!("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': {why}"));
}

/// Used by `plan::conflict`, which reports "streams require RabbitMQ 3.9".
#[test]
fn streams_exist_since_3_9() {
    let stage = Stage::new("stream");
    let reply = stage.queue("q", "stream", json!({}));
    if since(3, 9) {
        reply.expect_created();
    } else {
        reply.expect_refusal("invalid arg 'x-queue-type' for queue 'q' in vhost 'v': invalid_queue_type");
    }
}

/// Used by `spec::check`, which refuses such queues when it reads a spec.
#[test]
fn quorum_queues_and_streams_are_durable_and_not_auto_delete() {
    let stage = Stage::new("properties");
    let kinds: &[&str] = if since(3, 9) { &["quorum", "stream"] } else { &["quorum"] };
    for kind in kinds {
        let arguments = json!({"x-queue-type": kind});
        stage
            .put("queues", "q", json!({"durable": false, "arguments": arguments}))
            .expect_refusal("invalid property 'non-durable' for queue 'q' in vhost 'v'");
        stage
            .put("queues", "q", json!({"durable": true, "auto_delete": true, "arguments": arguments}))
            .expect_refusal("invalid property 'auto-delete' for queue 'q' in vhost 'v'");
    }
}

/// Used by `plan::request`: from 3.13 on, `durable: false` depends on the broker's configuration. RabbitMQ's own build
/// of 4.3 refuses a transient queue, and Debian's build permits it. Since late 4.x, a list reports it.
#[test]
fn transient_queue_requires_the_deprecated_feature() {
    let stage = Stage::new("transient");
    let features = Node::shared().http().get("/api/deprecated-features").found();
    assert_eq!(features.is_null(), !since(3, 13));
    let known = features.as_array().into_iter().flatten().find(|feature| feature["name"] == "transient_nonexcl_queues");
    let denied = known.is_some_and(|feature| feature["state"] == "denied");
    let reply = stage.put("queues", "q", json!({"durable": false, "arguments": {"x-queue-type": "classic"}}));
    if denied {
        assert_eq!(reply.status, 400);
        assert!(reply.words.contains("transient_nonexcl_queues"), "{reply:?}");
    } else {
        reply.expect_created();
    }
    // A durable auto-delete queue is not affected.
    stage.put("queues", "short", json!({"durable": true, "auto_delete": true})).expect_created();
}

/// Used by `spec::references`: a queue with such a name cannot be declared, but an equal redeclaration succeeds.
#[test]
fn names_that_begin_with_amq_are_reserved() {
    let stage = Stage::new("reserved");
    stage.queue("amq.q", "classic", json!({})).expect(401, "Access refused.");
    let exchange = |kind: &str| json!({"type": kind, "durable": true});
    stage.put("exchanges", "amq.new", exchange("topic")).expect(401, "Access refused.");
    stage.put("exchanges", "amq.topic", exchange("topic")).expect_no_content();
    stage.put("exchanges", "amq.topic", exchange("fanout")).expect_refusal(
        "inequivalent arg 'type' for exchange 'amq.topic' in vhost 'v': received 'fanout' but current is 'topic'",
    );
    stage.delete("exchanges", "amq.topic").expect(401, "Access refused.");
}

/// Used by `model::arguments`: HTTP cannot represent a void.
#[test]
fn null_is_refused_as_an_argument_of_a_queue() {
    let stage = Stage::new("void");
    stage.queue("q", "classic", json!({"x-own": null})).expect_refusal("null_not_allowed");
}

/// Used by `broker::lock` and `plan::recreate`: topo marks its objects with arguments that RabbitMQ does not use.
#[test]
fn unknown_argument_of_any_size_is_kept() {
    let stage = Stage::new("own");
    let long = "z".repeat(60_000);
    stage.queue("q", "classic", json!({"x-topo-note": long})).expect_created();
    assert_eq!(stage.listed("q")["arguments"]["x-topo-note"], Value::from(long.as_str()));
    let keep =
        json!({"type": "fanout", "durable": true, "internal": true, "arguments": {"x-topo-kept-bindings": long}});
    stage.put("exchanges", "e", keep).expect_created();
    assert_eq!(stage.get("exchanges", "e")["arguments"]["x-topo-kept-bindings"], Value::from(long));
}

/// Used by `BrokerError::Refused`: a vhost may have reached its limit, so that topo cannot create its own queues, such
/// as its lock.
#[test]
fn vhost_can_have_a_limit_of_queues() {
    let stage = Stage::new("limit");
    let limit = stage.path("vhost-limits", &["max-queues"]);
    stage.queue("q", "classic", json!({})).expect_created();
    assert_eq!(stage.http.put(&limit, &json!({"value": 1})).status, 204);
    let reached = "cannot declare queue 'more': queue limit in vhost 'v' (1) is reached";
    stage.queue("more", "classic", json!({})).expect_refusal(reached);
    stage.queue("q", "classic", json!({})).expect_no_content();
}
