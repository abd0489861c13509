//! Tests `topo explain QUEUE --live`: the current counts of the queue, its tiers and its dead-letter queues.

use serde_json::{Value, json};

use crate::support::{Node, Topo, until};

const SPEC: &str = "defaults: {queue: {type: classic}}\n\
    queues: {orders.work: {retry: {delays: [1h, 2h]}, deadLetter: orders.dead}}\n\
    deadLetterQueues: {orders.dead: {}}\n";

#[test]
fn live_explanation_shows_the_counts_of_each_queue() {
    let vhost = Node::shared().vhost("explain");
    let topo = Topo::new(&vhost).spec(SPEC);
    topo.run(["explain", "orders.work", "--live"])
        .expect_code(0)
        .expect_text("● attempt 1    at 0s · does not exist")
        .expect_text("orders.dead, at +3h · does not exist");
    topo.run(["apply", "--yes"]).expect_code(0);
    let amqp = vhost.amqp();
    for (queue, messages) in [("orders.work", 3), ("orders.work.retry.1.1h", 30), ("orders.dead", 2)] {
        amqp.fill(queue, messages);
    }
    let held = amqp.hold("orders.work", 2);
    let explain = |words: &[&str]| topo.run([&["explain"], words, &["--live"]].concat());
    until("the counts", || {
        let output = explain(&["orders.work"]).expect_code(0);
        let has = |text: &str| output.stdout.contains(text);
        (has("● attempt 1    at 0s · 3 messages (2 unacknowledged), 1 consumer")
            && has("in orders.work.retry.1.1h · 30 messages\n")
            && has("in orders.work.retry.2.2h · 0 messages\n")
            && has("orders.dead, at +3h · 2 messages\n")
            && has(&format!("RabbitMQ {} at http://", vhost.node().version())))
        .then_some(())
    });
    explain(&["orders.dead"]).expect_code(0).expect_text("until it is consumed · 2 messages");
    explain(&["orders.work.retry.1.1h"]).expect_code(0).expect_text("Now: 30 messages.");

    let document: Value = serde_json::from_str(&explain(&["orders.work", "--format", "json"]).stdout).unwrap();
    let counts = &document["explanations"][0]["counts"];
    let entry = |queue: &str, [messages, held, consumers]: [u64; 3]| {
        json!({"queue": queue, "exists": true, "messages": messages, "ready": messages - held, "unacknowledged": held,
            "consumers": consumers})
    };
    let expected = [
        entry("orders.work", [3, 2, 1]),
        entry("orders.work.retry.1.1h", [30, 0, 0]),
        entry("orders.work.retry.2.2h", [0, 0, 0]),
        entry("orders.dead", [2, 0, 0]),
    ];
    assert_eq!(*counts, Value::from(expected.to_vec()));
    drop(held);
}

#[test]
fn live_explanation_of_other_names_is_refused() {
    let vhost = Node::shared().vhost("explain-names");
    let topo = Topo::new(&vhost).spec(SPEC);
    let unknown = topo.run(["explain", "orders.wrok", "--live"]).expect_code(64);
    unknown
        .expect_error("the spec declares no queue `orders.wrok`, and `--live` shows only queues")
        .expect_text("did you mean `orders.work`?");
    topo.run(["explain", "message-loss", "--live"]).expect_code(64).expect_error("`--live` shows only queues");
    let other = if vhost.node().at_least(4, 0) { "3.8" } else { "4.3" };
    topo.run(["explain", "orders.work", "--live", "--broker-version", other])
        .expect_code(0)
        .expect_text(&format!("RabbitMQ {} at ", vhost.node().version()));
    topo.run(["explain", "orders.work", "--live", "--url", "http://127.0.0.1:1"]).expect_code(1);
    let missing = Topo::for_name(Node::shared(), "explain-missing").spec(SPEC);
    missing.run(["explain", "orders.work", "--live"]).expect_code(1).expect_error("does not exist");
}
