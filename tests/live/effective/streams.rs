//! Tests that the policy takes precedence over the argument on a stream. The deleted segments show the effective value.

use std::time::Duration;

use serde_json::{Value, json};
use topo::model::QueueType;

use super::precedence::arrange;
use crate::support::{Amqp, Node, Outcome, until};

/// The number of initial messages. A few of them fill a small segment.
const MESSAGES: usize = 60;
const MORE: usize = 20;

fn publish(amqp: &Amqp, stream: &str, count: usize) {
    let body = "x".repeat(500);
    for _ in 0..count {
        assert_eq!(amqp.publish("", stream, &body), Outcome::Routed);
    }
}

/// A stream: its argument, its policy, the key, and whether the broker deletes old segments.
struct Case {
    name: &'static str,
    arguments: Value,
    definition: Value,
    key: &'static str,
    drops: bool,
}

fn cases() -> Vec<Case> {
    let case = |name, arguments, definition, key, drops| Case { name, arguments, definition, key, drops };
    let (small, large) = (5_000, 1_000_000_000);
    let segments = "stream-max-segment-size-bytes";
    vec![
        case(
            "bytes.policy-less",
            json!({"x-max-length-bytes": large, "x-stream-max-segment-size-bytes": 2_000}),
            json!({"max-length-bytes": small}),
            "max-length-bytes",
            true,
        ),
        case(
            "bytes.policy-more",
            json!({"x-max-length-bytes": small, "x-stream-max-segment-size-bytes": 2_000}),
            json!({"max-length-bytes": large}),
            "max-length-bytes",
            false,
        ),
        case(
            "segments.policy-less",
            json!({"x-max-length-bytes": small, "x-stream-max-segment-size-bytes": large}),
            json!({segments: 2_000}),
            segments,
            true,
        ),
        case(
            "segments.policy-more",
            json!({"x-max-length-bytes": small, "x-stream-max-segment-size-bytes": 2_000}),
            json!({segments: large}),
            segments,
            false,
        ),
        case(
            "age.policy-less",
            json!({"x-max-age": "1Y", "x-stream-max-segment-size-bytes": 2_000}),
            json!({"max-age": "1s"}),
            "max-age",
            true,
        ),
        case(
            "age.policy-more",
            json!({"x-max-age": "1s", "x-stream-max-segment-size-bytes": 2_000}),
            json!({"max-age": "1Y"}),
            "max-age",
            false,
        ),
    ]
}

#[test]
fn policy_takes_precedence_on_a_stream() {
    let node = Node::shared();
    if !node.at_least(3, 9) {
        let vhost = node.vhost("no-streams");
        let body = json!({"durable": true, "arguments": {"x-queue-type": "stream"}});
        vhost.http().put(&vhost.path("queues", &["s"]), &body).expect_status(400);
        return;
    }
    let vhost = node.vhost("streams");
    let amqp = vhost.amqp();
    for case in cases() {
        let desired = case.definition[case.key].clone();
        let (holds, by_policy) =
            arrange(&vhost, case.name, QueueType::Stream, case.arguments, case.definition, case.key);
        assert_eq!((holds, by_policy), (desired, true), "{}", case.name);
        publish(&amqp, case.name, MESSAGES);
    }
    // Waits until all messages are older than the shortest age.
    std::thread::sleep(Duration::from_secs(2));
    for case in cases() {
        // A new segment triggers the retention check of the old segments.
        publish(&amqp, case.name, MORE);
    }
    for case in cases() {
        until(case.name, || {
            let ready = amqp.ready(case.name) as usize;
            // A stream has more offsets than messages.
            let is_so = if case.drops { (1..MESSAGES).contains(&ready) } else { ready >= MESSAGES + MORE };
            is_so.then_some(())
        });
    }
}
