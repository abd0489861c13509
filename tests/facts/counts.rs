//! Message counts and their delay.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Stage, since, supports_streams};
use crate::support::{Outcome, text, until};

/// `Broker::totals`: the queue itself reports the count right after a publish.
#[test]
fn total_of_a_classic_queue_is_current() {
    let stage = Stage::new("live");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
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

/// `broker::guard::TWO_TICKS`: the count is from the last tick, every 5 s.
#[test]
fn total_of_a_quorum_queue_is_from_the_last_tick() {
    let stage = Stage::new("tick");
    let amqp = stage.amqp();
    stage.queue("q", "quorum", json!({})).created();
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
        // Right after a tick, the next is seconds away; after a pause of the machine, another tick is awaited.
        if not_yet.is_some_and(|asked| asked.elapsed() < Duration::from_secs(4)) {
            assert!(stale == messages - 1 && amqp.ready("q") == messages, "{stale}");
            return;
        }
    }
}

/// `broker::guard`: a missing count is not 0.
#[test]
fn stream_has_no_total() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("stream");
    stage.queue("q", "stream", json!({})).created();
    stage.amqp().fill("q", 2);
    let totals = stage.totals("q");
    for field in ["messages", "messages_ready", "messages_unacknowledged"] {
        assert_eq!(totals.get(field), None, "{field}");
    }
}

/// `Broker::totals`: the list is read even for a single queue.
#[test]
fn single_queue_has_no_total_before_3_11() {
    let stage = Stage::new("single");
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).created();
        let path = format!("{}?disable_stats=true&enable_queue_totals=true", stage.path("queues", &[kind]));
        let queue = stage.http.get(&path).expect_status(200);
        // Measured on 3.10.8 and 4.0.5.
        assert_eq!(queue.get("messages"), since(4, 0).then_some(&json!(0)), "{kind}");
    }
}

/// `broker::wire::QueueTotals`: all three, also with columns.
#[test]
fn totals_can_be_selected_by_columns() {
    let stage = Stage::new("columns");
    stage.queue("q", "classic", json!({})).created();
    let totals = stage.in_list(
        "q",
        "disable_stats=true&enable_queue_totals=true\
         &columns=name,type,arguments,messages,messages_ready,messages_unacknowledged",
    );
    let expected = json!({"name": "q", "type": "classic", "arguments": {"x-queue-type": "classic"},
                          "messages": 0, "messages_ready": 0, "messages_unacknowledged": 0});
    assert_eq!(Value::from(totals), expected);
}

/// `broker::guard`: "empty" is a total of 0, not ready plus unacknowledged.
#[test]
fn pending_dead_lettered_messages_are_neither_ready_nor_unacknowledged() {
    let stage = Stage::new("backlog");
    let amqp = stage.amqp();
    let mut arguments = vec![
        ("x-queue-type", text("quorum")),
        ("x-dead-letter-exchange", text("not.there")),
        ("x-dead-letter-strategy", text("at-least-once")),
    ];
    // Required for the strategy; quorum queues of 3.8.9 refuse overflow.
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

/// `Broker::totals`: the reason not to read statistics.
#[test]
fn statistics_of_a_new_queue_are_delayed() {
    let stage = Stage::new("statistics");
    let mut number = 0;
    // The first statistics arrive within about a second; an early read finds none.
    let queue = until("a new queue without statistics", || {
        number += 1;
        let queue = format!("q{number}");
        stage.queue(&queue, "classic", json!({})).created();
        let young = stage.http.get(&stage.path("queues", &[&queue]));
        // The read may fail on 3.10.8: a list answers 500 until the first statistics exist.
        (young.status == 500 || young.expect_status(200).get("messages").is_none()).then_some(queue)
    });
    assert_eq!(stage.amqp().publish("", &queue, "hello"), Outcome::Routed);
    assert_eq!(stage.totals(&queue)["messages"], 1);
    stage.vhost.until_counted(&queue, 1);
}

/// `Broker::activity`: a new consumer is not in the list yet.
#[test]
fn consumers_are_listed_with_their_addresses() {
    let stage = Stage::new("consumers");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
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
