//! Deletion of queues: the broker's flags and side effects. `broker::guard` relies on these facts.

use serde_json::{Value, json};

use super::{Stage, supports_streams};
use crate::support::until;

/// Used by `broker::guard`.
#[test]
fn if_empty_refuses_a_classic_queue_with_ready_messages() {
    let stage = Stage::new("full");
    stage.queue("q", "classic", json!({})).expect_created();
    stage.amqp().fill("q", 1);
    for flags in ["if-empty=true", "if-empty=true&if-unused=true"] {
        stage.delete_queue("q", flags).expect_refusal("queue 'q' in vhost 'v' not empty");
    }
}

/// Used by `broker::guard`, which also reads the total for this reason.
#[test]
fn if_empty_does_not_see_unacknowledged_messages() {
    let stage = Stage::new("unseen");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    amqp.fill("q", 2);
    let held = amqp.hold("q", 2);
    assert_eq!(stage.totals("q")["messages"], 2);
    stage.delete_queue("q", "if-empty=true").expect_no_content();
    drop(held);
    stage.delete("queues", "q").expect(404, "Not Found");
}

/// Used by `broker::guard`, which detects the end of this error message.
#[test]
fn if_unused_refuses_a_classic_queue_with_a_consumer() {
    let stage = Stage::new("used");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    let consumer = amqp.hold("q", 0);
    for flags in ["if-unused=true", "if-empty=true&if-unused=true"] {
        stage.delete_queue("q", flags).expect_refusal("queue 'q' in vhost 'v' in use");
    }
    drop(consumer);
    until("the consumer to be gone", || (stage.delete_queue("q", "if-unused=true").status == 204).then_some(()));
}

/// Used by `broker::guard`: only the total includes a message that a client fetched with `basic.get`.
#[test]
fn get_is_not_a_consumer() {
    let stage = Stage::new("getter");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    amqp.fill("q", 1);
    let _kept = amqp.keep_one("q");
    assert_eq!(stage.totals("q")["messages"], 1);
    stage.delete_queue("q", "if-empty=true&if-unused=true").expect_no_content();
}

/// Used by `broker::guard`, which confirms in a different way that a quorum queue is empty.
#[test]
fn quorum_queues_refuse_both_flags() {
    let stage = Stage::new("quorum");
    stage.queue("q", "quorum", json!({})).expect_created();
    for flag in ["if-empty", "if-unused"] {
        stage.delete_queue("q", &format!("{flag}=true")).expect_refusal(&format!(
            "cannot delete queue 'q' in vhost 'v'. queue.delete operations with {flag} flag set are not supported by \
             quorum queues"
        ));
    }
    stage.delete_queue("q", "if-empty=false").expect_no_content();
}

/// Used by `broker::guard`, which never deletes a stream conditionally.
#[test]
fn streams_ignore_both_flags() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("stream");
    let amqp = stage.amqp();
    for name in ["one", "other"] {
        stage.queue(name, "stream", json!({})).expect_created();
        amqp.fill(name, 2);
    }
    stage.delete_queue("one", "if-empty=true").expect_no_content();
    let consumer = amqp.hold("other", 0);
    stage.delete_queue("other", "if-unused=true").expect_no_content();
    drop(consumer);
    assert_eq!(stage.vhost.names("queues"), [""; 0]);
}

/// Used by `plan::recreate` for the hazards of a recreation.
#[test]
fn deletion_cancels_consumers_and_deletes_bindings() {
    let stage = Stage::new("along");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue("q", kind, json!({})).expect_created();
        stage.bind("amq.topic", "q", json!({"routing_key": "k"})).expect_created();
        let mut consumer = amqp.hold("q", 0);
        assert!(consumer.is_subscribed());
        stage.delete("queues", "q").expect_no_content();
        until("the consumer to be cancelled", || (!consumer.is_subscribed()).then_some(()));
        until("the binding to be gone", || (stage.vhost.list("bindings") == [Value::Null; 0]).then_some(()));
    }
}

/// Used by `apply::execute`: a queue with the same name can be declared immediately.
#[test]
fn deleted_queue_can_be_redeclared_immediately() {
    let stage = Stage::new("again");
    for (old, new) in [("classic", "quorum"), ("quorum", "classic"), ("quorum", "quorum")] {
        stage.queue("q", old, json!({})).expect_created();
        stage.amqp().fill("q", 1);
        stage.delete("queues", "q").expect_no_content();
        stage.queue("q", new, json!({"x-max-length": 5})).expect_created();
        assert_eq!((stage.listed("q")["type"].clone(), stage.amqp().ready("q")), (json!(new), 0));
        stage.delete("queues", "q").expect_no_content();
    }
}
