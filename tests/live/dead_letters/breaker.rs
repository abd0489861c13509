//! Tests the circuit breaker: it stops a replay whose messages come back, on each way back to the dead-letter queue.

use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use serde_json::Value;
use std::time::Duration;

use futures_util::StreamExt;

use super::fixture::{DEAD, Fixture, KINDS, WORK, report};
use crate::support::{Outcome, Worker, block_on, text, until};

#[test]
fn breaker_stops_a_replay_to_a_broken_worker() {
    for kind in KINDS {
        let fixture = Fixture::new("breaker", kind);
        fixture.dead_letter(200);
        let flags = ["--yes", "--rate", "200/s", "--settle", "60s", "--stop-after", "5%", "--format", "json"];
        let words = fixture.words("replay", &[&flags[..], &["--allow", "no-consumers"]].concat());
        let running = fixture.topo.start(words.iter().map(String::as_str));
        fixture.fail(WORK, 5);
        let output = running.wait().expect_code(4);
        let stopped = report(&output);
        assert_eq!((stopped["end"].as_str(), stopped["done"].as_u64()), (Some("breaker"), Some(5)), "{kind} {stopped}");
        // One of five messages is more than 5 %. The others may still come back.
        let count = stopped["cameBack"].as_u64().unwrap();
        assert!(count > 0 && stopped["pending"] == 5 - count, "{kind} {stopped}");
        let came_back = stopped["cameBackMessages"].as_array().unwrap();
        assert_eq!((came_back.len() as u64, &came_back[0]["source"]), (count, &Value::from(WORK)), "{kind}");
        fixture.until_dead(200);
        assert!(output.stderr.contains("audit: {\"formatVersion\":1,\"command\":\"replay\""), "{output}");
        // The worker is repaired: the others are replayed, and the five stay.
        let words = fixture.words(
            "replay",
            &["--yes", "--rate", "none", "--settle", "1s", "--format", "json", "--allow", "no-consumers"],
        );
        let done = report(&fixture.topo.run(words.iter().map(String::as_str)).expect_code(0));
        assert_eq!((done["done"].as_u64(), done["replayedBefore"].as_u64()), (Some(195), Some(5)), "{kind} {done}");
        assert_eq!(fixture.drain(WORK).len(), 195);
        until("five messages", || (fixture.ready(DEAD) == 5).then_some(()));
    }
}

/// Without a binding of the dead-letter queue, messages come back through the default exchange. topo detects them when the
/// queue delivers them.
#[test]
fn breaker_stops_a_replay_without_an_exchange() {
    for kind in KINDS {
        let fixture = Fixture::new("no-tap", kind);
        fixture
            .amqp
            .declare_queue("jobs", &[("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text(DEAD))])
            .unwrap();
        for number in 0..50 {
            assert_eq!(
                fixture.amqp.publish_with(
                    "",
                    "jobs",
                    number.to_string(),
                    AMQPProperties::default().with_delivery_mode(2)
                ),
                Outcome::Routed
            );
        }
        fixture.fail("jobs", 50);
        fixture.until_dead(50);
        let plan = fixture.dlq("replay", &["--dry-run"]).expect_code(0);
        plan.expect_text("replays up to 5 messages first").expect_no_text("default exchange");
        let flags = ["--yes", "--rate", "200/s", "--settle", "60s", "--format", "json", "--allow", "no-consumers"];
        let words = fixture.words("replay", &flags);
        let running = fixture.topo.start(words.iter().map(String::as_str));
        fixture.fail("jobs", 5);
        let stopped = report(&running.wait().expect_code(4));
        assert_eq!((stopped["end"].as_str(), stopped["done"].as_u64()), (Some("breaker"), Some(5)), "{kind} {stopped}");
        let came_back = stopped["cameBackMessages"].as_array().unwrap();
        assert!(!came_back.is_empty() && came_back[0]["source"] == "jobs", "{kind} {stopped}");
        fixture.until_dead(50);
        // Another message arrives during a replay that succeeds: it is counted, and not judged.
        let words = fixture.words(
            "replay",
            &["--yes", "--rate", "none", "--settle", "6s", "--format", "json", "--allow", "no-consumers"],
        );
        let running = fixture.topo.start(words.iter().map(String::as_str));
        until("the first messages", || (fixture.ready("jobs") >= 5).then_some(()));
        assert_eq!(fixture.amqp.publish_with("", DEAD, "other", AMQPProperties::default()), Outcome::Routed);
        let done = report(&running.wait().expect_code(0));
        assert_eq!(
            (done["done"].as_u64(), done["arrived"].as_u64(), done["cameBack"].as_u64()),
            (Some(45), Some(1), Some(0)),
            "{kind} {done}"
        );
        fixture.until_dead(6);
    }
}

/// A worker that gives up can publish the message to the dead-letter queue itself. The tap receives no copy of it.
#[test]
fn breaker_observes_messages_that_a_worker_publishes() {
    let fixture = Fixture::new("published", "classic");
    fixture.dead_letter(20);
    let flags = ["--yes", "--rate", "200/s", "--settle", "60s", "--format", "json", "--allow", "no-consumers"];
    let words = fixture.words("replay", &flags);
    let running = fixture.topo.start(words.iter().map(String::as_str));
    let channel = fixture.amqp.channel();
    block_on(async {
        channel.basic_qos(1, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let mut consumer = channel.basic_consume(WORK.into(), "".into(), options, FieldTable::default()).await?;
        let delivery = consumer.next().await.expect("a delivery")?;
        let properties = delivery.properties.clone();
        let published =
            channel.basic_publish("".into(), DEAD.into(), BasicPublishOptions::default(), &delivery.data, properties);
        published.await?.await?;
        delivery.ack(BasicAckOptions::default()).await
    })
    .unwrap();
    let stopped = report(&running.wait().expect_code(4));
    assert_eq!((stopped["end"].as_str(), stopped["cameBack"].as_u64()), (Some("breaker"), Some(1)), "{stopped}");
    assert_eq!(stopped["done"], 5, "{stopped}");
}

/// The first of the messages is acknowledged only after its outcome, so a wait of more than 10 minutes is refused.
#[test]
fn long_wait_is_refused() {
    let fixture = Fixture::new("long-wait", "classic");
    fixture.dead_letter(3);
    let flags = ["--yes", "--settle", "11m", "--allow", "no-consumers"];
    let refused = fixture.dlq("replay", &flags).expect_code(3);
    refused
        .expect_error("topo waits for at most 10 minutes")
        .expect_text("replay without waiting for the outcome: --canary 0");
    fixture.until_dead(3);
}

/// A ladder shows the outcome of a message only after its last retry. Messages of others are counted, and not judged.
#[test]
fn breaker_waits_for_the_last_retry() {
    let fixture = Fixture::with("ladder", "classic", ", retry: {delays: [300ms, 300ms]}", "");
    let version = fixture.vhost.node().version();
    let words = ["contract", "topology.yaml", "--format", "json", "--broker-version", version];
    let contracts = fixture.topo.run(words).expect_code(0).json();
    let contract = &contracts["vhosts"][fixture.vhost.name()]["queues"][WORK];
    let mut worker = Worker::of(&fixture.amqp, WORK, contract);
    let mut fail_next = || {
        if let Some(work) = worker.next(Duration::from_millis(50)) {
            worker.fail(work);
        }
    };
    fixture.publish(12);
    while fixture.ready(DEAD) < 12 {
        fail_next();
    }
    let flags = ["--yes", "--rate", "none", "--settle", "20s", "--format", "json"];
    let words = fixture.words("replay", &flags);
    let mut running = fixture.topo.start(words.iter().map(String::as_str));
    // Also stops waiting when the run ends, so that the test reports its output.
    until("the first message", || (fixture.ready(DEAD) < 12 || running.is_over()).then_some(()));
    // A new message fails as well.
    fixture.publish(1);
    while !running.is_over() {
        fail_next();
    }
    let stopped = report(&running.wait().expect_code(4));
    assert_eq!((stopped["end"].as_str(), stopped["done"].as_u64()), (Some("breaker"), Some(5)), "{stopped}");
    assert!(stopped["cameBack"].as_u64() >= Some(1), "{stopped}");
    while fixture.ready(DEAD) < 13 {
        fail_next();
    }
}
