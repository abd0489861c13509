//! Destinations of dead-lettered messages. `deadLetter` and `deadLetterQueues` in `expand` rely on these facts.

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Amqp, until};

fn until_ready(amqp: &Amqp, queue: &str, count: u32) {
    until(&format!("{count} messages in {queue}"), || (amqp.ready(queue) == count).then_some(()));
}

/// A direct exchange requires a routing key in the queue's settings; topic and fanout exchanges do not.
#[test]
fn dead_lettered_message_keeps_its_routing_key_by_default() {
    let stage = Stage::new("keys");
    let amqp = stage.amqp();
    stage.queue("dead", "classic", json!({})).expect_created();
    stage.put("exchanges", "dlx", json!({"type": "direct", "durable": true, "internal": true})).expect_created();
    stage.bind("dlx", "dead", json!({"routing_key": "own"})).expect_created();
    stage.bind("dlx", "dead", json!({"routing_key": "explicit"})).expect_created();
    for kind in ["classic", "quorum"] {
        for (arguments, key, arrives) in [
            (json!({"x-dead-letter-exchange": "dlx"}), "own", "own"),
            (json!({"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "explicit"}), "other", "explicit"),
        ] {
            stage.queue("q", kind, arguments).expect_created();
            stage.bind("amq.topic", "q", json!({"routing_key": key})).expect_created();
            amqp.publish("amq.topic", key, "hello");
            stage.reject("q");
            until_ready(&amqp, "dead", 1);
            let dead_message = amqp.get("dead").unwrap();
            assert_eq!((dead_message.exchange.as_str(), dead_message.routing_key.as_str()), ("dlx", arrives));
            stage.delete("queues", "q").expect_no_content();
        }
    }
}

/// The lint rule `dead-letters-reach-nothing` relies on this: without a dead-letter routing key, the broker also routes a
/// dead-lettered message by the headers `CC` and `BCC` of its publisher. A dead-letter routing key replaces all keys.
#[test]
fn dead_lettered_message_is_also_routed_by_its_cc_header() {
    let stage = Stage::new("cc");
    let amqp = stage.amqp();
    stage.queue("dead", "classic", json!({})).expect_created();
    stage.put("exchanges", "dlx", json!({"type": "direct", "durable": true})).expect_created();
    stage.bind("dlx", "dead", json!({"routing_key": "copy"})).expect_created();
    for kind in ["classic", "quorum"] {
        for (header, key, arrives) in
            [("CC", None, true), ("BCC", None, true), ("CC", Some("other"), false), ("CC", Some("copy"), true)]
        {
            let mut arguments = json!({"x-dead-letter-exchange": "dlx"});
            if let Some(key) = key {
                arguments["x-dead-letter-routing-key"] = json!(key);
            }
            stage.queue("q", kind, arguments).expect_created();
            let mut headers = FieldTable::default();
            let keys = FieldArray::from(vec![AMQPValue::LongString("copy".into())]);
            headers.insert(header.into(), AMQPValue::FieldArray(keys));
            amqp.publish_with("", "q", b"hello", AMQPProperties::default().with_headers(headers));
            stage.reject("q");
            until("the message to leave the queue", || (amqp.ready("q") == 0).then_some(()));
            if arrives {
                until_ready(&amqp, "dead", 1);
                amqp.get("dead").unwrap();
            } else {
                until("the message to be dropped", || (stage.totals("q")["messages"] == 0).then_some(()));
                assert_eq!(amqp.ready("dead"), 0, "{kind} {header} {key:?}");
            }
            stage.delete("queues", "q").expect_no_content();
        }
    }
}

/// Used by `plan::target`, which includes the exchange and its bindings with the queue.
#[test]
fn dead_lettered_message_is_dropped_if_its_exchange_is_missing() {
    let stage = Stage::new("missing");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({"x-dead-letter-exchange": "not.there"})).expect_created();
    amqp.fill("q", 1);
    stage.reject("q");
    until("the message to be dropped", || (stage.totals("q")["messages"] == 0).then_some(()));
}

/// Used by `known_arguments`: the queue dead-letters messages that are rejected, that expire, and that it drops from
/// the head because it is full.
#[test]
fn rejected_expired_and_excess_messages_are_dead_lettered() {
    let stage = Stage::new("reasons");
    let amqp = stage.amqp();
    stage.queue("dead", "classic", json!({})).expect_created();
    stage.put("exchanges", "dlx", json!({"type": "fanout", "durable": true})).expect_created();
    stage.bind("dlx", "dead", json!({})).expect_created();
    for (limit, messages, reason) in [
        (json!({"x-max-length": 10}), 1, "rejected"),
        (json!({"x-message-ttl": 1}), 1, "expired"),
        (json!({"x-max-length": 1}), 2, "maxlen"),
    ] {
        let mut arguments = limit;
        arguments["x-dead-letter-exchange"] = json!("dlx");
        stage.queue("q", "classic", arguments).expect_created();
        for _ in 0..messages {
            amqp.publish("", "q", "hello");
        }
        if reason == "rejected" {
            stage.reject("q");
        }
        let dead_message = until(reason, || stage.take("dead", "ack_requeue_false").body.get(0).cloned());
        let death: &Value = &dead_message["properties"]["headers"]["x-death"][0];
        assert_eq!((&death["reason"], &death["queue"]), (&json!(reason), &json!("q")));
        stage.delete("queues", "q").expect_no_content();
    }
}

/// Used by `plan::effects`: pending dead-lettered messages are kept only while the strategy of the queue is
/// at-least-once.
#[test]
fn pending_dead_lettered_messages_are_dropped_without_at_least_once() {
    let waiting = json!({"dead-letter-exchange": "not.there", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"});
    for key in ["dead-letter-strategy", "overflow", "dead-letter-exchange"] {
        let stage = Stage::new("no-longer");
        let written = stage.policy("p", 1.0, waiting.clone());
        if !since(3, 10) {
            assert_eq!(written.status, 400, "unsupported strategy: {written:?}");
            continue;
        }
        written.expect_created();
        stage.queue("q", "quorum", json!({})).expect_created();
        stage.amqp().fill("q", 5);
        (0..3).for_each(|_| stage.reject("q"));
        until("the tick", || (stage.totals("q")["messages"] == 5).then_some(()));
        let mut left = waiting.clone();
        left.as_object_mut().unwrap().remove(key);
        stage.policy("p", 1.0, left).expect_no_content();
        // The other messages stay.
        until("the tick", || (stage.totals("q")["messages"] == 2).then_some(()));
        assert_eq!(stage.amqp().ready("q"), 2, "without {key}");
    }
}
