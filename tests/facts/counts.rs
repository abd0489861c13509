//! Message counts and their delay.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Stage, since, supports_streams};
use crate::support::{Outcome, text, until};

/// Used by `Broker::totals`: a classic queue itself reports the count immediately after a publish.
#[test]
fn total_of_a_classic_queue_is_current() {
    let stage = Stage::new("live");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    assert_eq!(stage.totals("q")["messages"], 0);
    for count in 1..=3 {
        amqp.fill("q", 1);
        assert_eq!(stage.totals("q")["messages"], count);
    }
    let _held = amqp.hold("q", 2);
    let totals = stage.totals("q");
    let counts = ["messages", "messages_ready", "messages_unacknowledged"].map(|field| totals[field].clone());
    assert_eq!(counts, [3, 1, 2].map(Value::from));
}

/// Used by `broker::guard`: the count of a quorum queue is from the last tick, every 5 s.
#[test]
fn total_of_a_quorum_queue_is_from_the_last_tick() {
    let stage = Stage::new("tick");
    let amqp = stage.amqp();
    stage.queue("q", "quorum", json!({})).expect_created();
    amqp.fill("q", 3);
    assert_eq!(amqp.ready("q"), 3, "a passive declare asks the queue");
    let mut messages = 3;
    loop {
        let mut not_yet = None;
        until("the tick", || {
            let asked = Instant::now();
            let is_shown = stage.totals("q")["messages"] == messages;
            not_yet = if is_shown { not_yet } else { Some(asked) };
            is_shown.then_some(())
        });
        amqp.fill("q", 1);
        messages += 1;
        let stale = stage.totals("q")["messages"].clone();
        // Immediately after a tick, the next tick is seconds away. After a pause of the machine, the test waits for
        // another tick.
        if not_yet.is_some_and(|asked| asked.elapsed() < Duration::from_secs(4)) {
            assert!(stale == messages - 1 && amqp.ready("q") == messages, "{stale}");
            return;
        }
    }
}

/// Used by `broker::guard`, which does not treat a missing count as 0.
#[test]
fn stream_has_no_total() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("stream");
    stage.queue("q", "stream", json!({})).expect_created();
    stage.amqp().fill("q", 2);
    let totals = stage.totals("q");
    for field in ["messages", "messages_ready", "messages_unacknowledged"] {
        assert_eq!(totals.get(field), None, "{field}");
    }
}

/// Used by `Broker::totals`, which reads the list even for a single queue.
#[test]
fn single_queue_has_no_total_before_3_11() {
    let stage = Stage::new("single");
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).expect_created();
        let path = format!("{}?disable_stats=true&enable_queue_totals=true", stage.path("queues", &[kind]));
        let queue = stage.http.get(&path).expect_status(200);
        // Measured on 3.10.8 and 4.0.5.
        assert_eq!(queue.get("messages"), since(4, 0).then_some(&json!(0)), "{kind}");
    }
}

/// Used by `broker::wire::QueueTotals`: the list contains all three totals, even if the request selects columns.
#[test]
fn totals_can_be_selected_by_columns() {
    let stage = Stage::new("columns");
    stage.queue("q", "classic", json!({})).expect_created();
    let totals = stage.in_list(
        "q",
        "disable_stats=true&enable_queue_totals=true\
         &columns=name,type,arguments,messages,messages_ready,messages_unacknowledged",
    );
    let expected = json!({"name": "q", "type": "classic", "arguments": {"x-queue-type": "classic"},
                          "messages": 0, "messages_ready": 0, "messages_unacknowledged": 0});
    assert_eq!(Value::from(totals), expected);
}

/// Used by `broker::guard`: "empty" means a total of 0, because ready plus unacknowledged can be 0 earlier.
#[test]
fn pending_dead_lettered_messages_are_neither_ready_nor_unacknowledged() {
    let stage = Stage::new("backlog");
    let amqp = stage.amqp();
    let mut arguments = vec![
        ("x-queue-type", text("quorum")),
        ("x-dead-letter-exchange", text("not.there")),
        ("x-dead-letter-strategy", text("at-least-once")),
    ];
    // At-least-once dead-lettering requires this argument, which quorum queues of 3.8.9 refuse.
    arguments.extend(since(3, 10).then(|| ("x-overflow", text("reject-publish"))));
    amqp.declare_queue("q", &arguments).unwrap();
    amqp.fill("q", 2);
    until("the tick", || (stage.totals("q")["messages"] == 2).then_some(()));
    stage.reject("q");
    stage.reject("q");
    assert_eq!(amqp.ready("q"), 0);
    if !since(3, 10) {
        // Without this strategy, the messages are dropped.
        return until("the tick", || (stage.totals("q")["messages"] == 0).then_some(()));
    }
    until("the tick", || {
        let totals = stage.totals("q");
        let counts = ["messages", "messages_ready", "messages_unacknowledged"].map(|field| totals[field].clone());
        (counts == [2, 0, 0].map(Value::from)).then_some(())
    });
    assert_eq!(stage.take("q", "ack_requeue_true").body, json!([]), "a get does not see them either");
}

/// Used by `Broker::totals`, which does not read statistics for this reason.
#[test]
fn statistics_of_a_new_queue_are_delayed() {
    let stage = Stage::new("statistics");
    let mut number = 0;
    // The first statistics arrive within about a second, so an early read finds none.
    let queue = until("a new queue without statistics", || {
        number += 1;
        let queue = format!("q{number}");
        stage.queue(&queue, "classic", json!({})).expect_created();
        let young = stage.http.get(&stage.path("queues", &[&queue]));
        // On 3.10.8, the read can fail: a list responds with 500 until the first statistics exist.
        (young.status == 500 || young.expect_status(200).get("messages").is_none()).then_some(queue)
    });
    assert_eq!(stage.amqp().publish("", &queue, "hello"), Outcome::Routed);
    assert_eq!(stage.totals(&queue)["messages"], 1);
    stage.vhost.until_counted(&queue, 1);
}

/// Used by `Broker::activity`: the list does not contain a new consumer yet.
#[test]
fn consumers_are_listed_with_their_addresses() {
    let stage = Stage::new("consumers");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    let _consumer = amqp.hold("q", 0);
    let list = until("the consumer", || {
        let list = stage.http.get(&stage.path("consumers", &[])).expect_status(200);
        let peer = &list[0]["channel_details"]["peer_host"];
        peer.is_string().then_some(list.clone())
    });
    assert_eq!(
        (&list[0]["queue"]["name"], &list[0]["channel_details"]["peer_host"]),
        (&json!("q"), &json!("127.0.0.1"))
    );
    assert!(list[0]["channel_details"]["peer_port"].is_u64(), "{list}");
}
