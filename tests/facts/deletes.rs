//! Deletion of queues: the broker's flags and side effects, on which `broker::guard` depends.

use serde_json::{Value, json};

use super::{Stage, supports_streams};
use crate::support::until;

/// `broker::guard::full_is_not_empty`.
#[test]
fn if_empty_refuses_a_classic_queue_with_ready_messages() {
    let stage = Stage::new("full");
    stage.queue("q", "classic", json!({})).created();
    stage.amqp().fill("q", 1);
    for flags in ["if-empty=true", "if-empty=true&if-unused=true"] {
        stage.delete_queue("q", flags).refused("queue 'q' in vhost 'v' not empty");
    }
}

/// `broker::guard`: the reason to read the total, too.
#[test]
fn if_empty_does_not_see_unacknowledged_messages() {
    let stage = Stage::new("unseen");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    amqp.fill("q", 2);
    let held = amqp.hold("q", 2);
    assert_eq!(stage.totals("q")["messages"], 2);
    stage.delete_queue("q", "if-empty=true").taken();
    drop(held);
    stage.delete("queues", "q").is(404, "Not Found");
}

/// `broker::guard::delete_if_empty`: it looks for the end of this error.
#[test]
fn if_unused_refuses_a_classic_queue_with_a_consumer() {
    let stage = Stage::new("used");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    let consumer = amqp.hold("q", 0);
    for flags in ["if-unused=true", "if-empty=true&if-unused=true"] {
        stage.delete_queue("q", flags).refused("queue 'q' in vhost 'v' in use");
    }
    drop(consumer);
    until("the consumer to be gone", || (stage.delete_queue("q", "if-unused=true").status == 204).then_some(()));
}

/// `broker::guard`: only the total counts a message that `basic.get` took.
#[test]
fn get_is_not_a_consumer() {
    let stage = Stage::new("getter");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    amqp.fill("q", 1);
    let _kept = amqp.keep_one("q");
    assert_eq!(stage.totals("q")["messages"], 1);
    stage.delete_queue("q", "if-empty=true&if-unused=true").taken();
}

/// `broker::guard`: quorum queues are proven empty in another way.
#[test]
fn quorum_queues_refuse_both_flags() {
    let stage = Stage::new("quorum");
    stage.queue("q", "quorum", json!({})).created();
    for flag in ["if-empty", "if-unused"] {
        stage.delete_queue("q", &format!("{flag}=true")).refused(&format!(
            "cannot delete queue 'q' in vhost 'v'. queue.delete operations with {flag} flag set are not supported by \
             quorum queues"
        ));
    }
    stage.delete_queue("q", "if-empty=false").taken();
}

/// `broker::guard`: streams are never deleted conditionally.
#[test]
fn streams_ignore_both_flags() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("stream");
    let amqp = stage.amqp();
    for name in ["one", "other"] {
        stage.queue(name, "stream", json!({})).created();
        amqp.fill(name, 2);
    }
    stage.delete_queue("one", "if-empty=true").taken();
    let consumer = amqp.hold("other", 0);
    stage.delete_queue("other", "if-unused=true").taken();
    drop(consumer);
    assert_eq!(stage.vhost.names("queues"), [""; 0]);
}

/// `plan::recreate`: the hazards of a recreation.
#[test]
fn deletion_cancels_consumers_and_deletes_bindings() {
    let stage = Stage::new("along");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue("q", kind, json!({})).created();
        stage.bind("amq.topic", "q", json!({"routing_key": "k"})).created();
        let mut consumer = amqp.hold("q", 0);
        assert!(consumer.is_subscribed());
        stage.delete("queues", "q").taken();
        until("the consumer to be cancelled", || (!consumer.is_subscribed()).then_some(()));
        until("the binding to be gone", || (stage.vhost.list("bindings") == [Value::Null; 0]).then_some(()));
    }
}

/// `apply::execute`: a queue of the same name can be declared immediately.
#[test]
fn deleted_queue_can_be_redeclared_immediately() {
    let stage = Stage::new("again");
    for (old, new) in [("classic", "quorum"), ("quorum", "classic"), ("quorum", "quorum")] {
        stage.queue("q", old, json!({})).created();
        stage.amqp().fill("q", 1);
        stage.delete("queues", "q").taken();
        stage.queue("q", new, json!({"x-max-length": 5})).created();
        assert_eq!((stage.listed("q")["type"].clone(), stage.amqp().ready("q")), (json!(new), 0));
        stage.delete("queues", "q").taken();
    }
}
