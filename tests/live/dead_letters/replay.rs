//! Tests the way back of each strategy, the headers of replayed messages, and the selection.

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::Value;
use std::time::Duration;

use super::fixture::{DEAD, EXCHANGE, Fixture, KINDS, WORK, header_names, number_header, numbers, report, text_header};
use crate::support::{Node, Outcome, Worker, until};

#[test]
fn replayed_messages_look_as_if_first_published() {
    for kind in KINDS {
        let fixture = Fixture::new("clean", kind);
        fixture.dead_letter(20);
        // Another queue that is bound to the original exchange receives nothing.
        fixture.amqp.declare_queue("audit", &[]).unwrap();
        fixture.amqp.bind_queue(EXCHANGE, "audit", "#", &[]);
        let plan = fixture.dlq("replay", &["--dry-run"]).expect_code(0);
        let plan = plan.expect_text("Replay 20 of 20 messages in orders.dead");
        plan.expect_text("temporary exchange orders.work.topo.replay").expect_text("no-consumers");
        fixture.until_dead(20);
        let replayed = report(&fixture.replay(&["--format", "json"]).expect_code(0));
        assert_eq!((replayed["done"].as_u64(), replayed["after"].as_u64()), (Some(20), Some(0)));
        assert_eq!(replayed["mayExistTwice"], 0);
        assert_eq!(fixture.ready("audit"), 0, "{kind}");
        let drained = fixture.drain(WORK);
        assert_eq!(numbers(&drained), (0..20).collect::<Vec<_>>(), "{kind}");
        for (index, message) in drained.iter().enumerate() {
            let expected = if index % 2 == 0 { "order.paid" } else { "order.created" };
            assert_eq!(message.routing_key, expected);
            let mut names = header_names(message);
            names.sort();
            names.retain(|name| name != "x-delivery-count");
            let expected =
                ["n", "tenant", "x-original-exchange", "x-original-routing-key", "x-topo-replay", "x-topo-replay-run"];
            assert_eq!(names, expected, "{kind}");
            assert_eq!(number_header(message, "x-topo-replay"), Some(1));
            assert_eq!(message.properties.message_id().as_ref().unwrap().as_str(), format!("m{index}"));
        }
        assert_eq!(
            fixture.vhost.http().get(&fixture.vhost.path("exchanges", &["orders.work.topo.replay"])).status,
            404
        );
    }
}

/// A replayed message has all of its retries, in each strategy. The workers follow their contracts.
#[test]
fn replayed_messages_have_all_retries() {
    let node = Node::shared();
    let mut cases = vec![
        ("classic", ", retry: {delays: [100ms, 200ms]}", 3),
        ("quorum", ", retry: {delays: [100ms, 200ms]}", 3),
        ("classic", ", retry: {strategy: republish, delays: [100ms, 200ms]}", 3),
        ("classic", ", maxRetries: 2, retry: {strategy: republish}", 3),
        ("quorum", ", maxRetries: 2, retry: {strategy: redeliver}", 3),
    ];
    if node.at_least(4, 3) {
        cases.push(("quorum", ", maxRetries: 2, retry: {strategy: delayed, delays: [200ms, 400ms]}", 3));
    }
    for (kind, retry, deliveries) in cases {
        let fixture = Fixture::with("retries", kind, retry, "");
        let contract = contract_of(&fixture);
        fixture.publish(1);
        let first = fail_until_dead(&fixture, &contract);
        assert_eq!(first.len(), deliveries, "{kind} {retry}");
        // The circuit breaker waits for all retries.
        let plan = fixture.dlq("replay", &["--dry-run", "--format", "json"]).expect_code(0).json();
        let retries = &contract["replay"]["retriesTake"]["milliseconds"];
        assert_eq!(plan["targets"][0]["retriesMs"], *retries, "{kind} {retry}");
        for round in 1..=2 {
            fixture.replay(&["--again"]).expect_code(0).expect_text("1 message replayed.");
            let again = fail_until_dead(&fixture, &contract);
            assert_eq!(again, first, "{kind} {retry}, replay {round}");
        }
    }
}

fn contract_of(fixture: &Fixture<'_>) -> Value {
    let version = fixture.vhost.node().version();
    let words = ["contract", "topology.yaml", "--format", "json", "--broker-version", version];
    fixture.topo.run(words).expect_code(0).json()["vhosts"][fixture.vhost.name()]["queues"][WORK].clone()
}

/// Fails a message until it is dead-lettered. Returns the routing key and the retry number of each delivery.
fn fail_until_dead(fixture: &Fixture<'_>, contract: &Value) -> Vec<(String, u64)> {
    fail_messages_until_dead(fixture, contract, 1)
}

/// Like [`fail_until_dead`], for a number of messages.
fn fail_messages_until_dead(fixture: &Fixture<'_>, contract: &Value, count: usize) -> Vec<(String, u64)> {
    let mut worker = Worker::of(&fixture.amqp, WORK, contract);
    let mut seen = Vec::new();
    loop {
        if let Some(work) = worker.next(Duration::from_millis(500)) {
            seen.push((work.delivery.routing_key.to_string(), work.retry));
            worker.fail(work);
        } else if fixture.ready(DEAD) == count {
            return seen;
        }
        assert!(seen.len() < 20, "{seen:?}");
    }
}

#[test]
fn selected_messages_are_replayed_and_others_keep_their_order() {
    for kind in KINDS {
        let fixture = Fixture::new("selected", kind);
        fixture.dead_letter(60);
        fixture.replay(&["--header", "tenant=acme", "--limit", "5"]).expect_code(0).expect_text("5 messages replayed.");
        fixture.until_dead(55);
        fixture.replay(&["--header", "tenant=acme"]).expect_code(0).expect_text("15 messages replayed.");
        let of_acme = |number: &usize| number.is_multiple_of(3);
        let (acme, others): (Vec<usize>, Vec<usize>) = (0..60).partition(of_acme);
        assert_eq!(numbers(&fixture.drain(WORK)), acme, "{kind}");
        assert_eq!(numbers(&fixture.drain(DEAD)), others, "{kind}");
    }
}

#[test]
fn destination_can_be_chosen() {
    let fixture = Fixture::new("destination", "classic");
    fixture.dead_letter(4);
    fixture.amqp.declare_queue("repair", &[]).unwrap();
    fixture.replay(&["--to", "repair", "--position", "1"]).expect_code(0).expect_text("1 message replayed.");
    assert_eq!(fixture.drain("repair")[0].routing_key, "order.paid");
    fixture.amqp.declare_queue("audit", &[]).unwrap();
    fixture.amqp.bind_queue(EXCHANGE, "audit", "#", &[]);
    fixture.replay(&["--to-original-exchange"]).expect_code(0).expect_text("every bound queue receives a copy");
    assert_eq!((fixture.ready(WORK), fixture.ready("audit"), fixture.ready(DEAD)), (3, 3, 0));
}

#[test]
fn messages_that_came_back_stay_unless_again_is_set() {
    let fixture = Fixture::new("sticky", "classic");
    fixture.dead_letter(3);
    fixture.replay(&[]).expect_code(0);
    fixture.fail(WORK, 3);
    fixture.until_dead(3);
    fixture.dlq("list", &["--group-by", "replays", "--format", "json"]).expect_code(0);
    let again = fixture.replay(&[]).expect_code(0);
    assert_eq!(again.stderr, "no messages to replay\n");
    assert!(again.stdout.contains("3 messages: replayed before"), "{again}");
    fixture.replay(&["--again"]).expect_code(0).expect_text("3 messages replayed.");
    let drained = fixture.drain(WORK);
    assert_eq!(number_header(&drained[0], "x-topo-replay"), Some(2));
    assert_eq!(text_header(&drained[0], "x-original-routing-key").as_deref(), Some("order.paid"));
}

#[test]
fn plan_respects_the_limit() {
    let fixture = Fixture::new("limited", "classic");
    fixture.dead_letter(4);
    let planned = fixture.dlq("replay", &["--dry-run", "--limit", "1", "--settle", "20m"]).expect_code(0);
    let planned = planned
        .expect_text("Replay 1 of 4 messages")
        .expect_text("4 messages match; --limit restricts the replay to 1");
    planned.expect_text("topo waits for at most 10 minutes: use --canary 0");
}

/// The exchange `Q.return` of a queue with tiers routes only to this queue.
#[test]
fn exchange_of_the_retries_is_used() {
    for kind in KINDS {
        let fixture = Fixture::with("return", kind, ", retry: {delays: [100ms]}", "");
        fixture.publish(2);
        let contract = contract_of(&fixture);
        fail_messages_until_dead(&fixture, &contract, 2);
        let plan = fixture.dlq("replay", &["--dry-run", "--format", "json"]).expect_code(0).json();
        assert_eq!(plan["targets"][0]["way"], "returnExchange", "{kind}: {plan}");
        assert_eq!(plan["targets"][0]["exchange"], "orders.work.return", "{kind}");
        fixture.replay(&[]).expect_code(0).expect_text("2 messages replayed.");
        let keys: Vec<String> = fixture.drain(WORK).into_iter().map(|message| message.routing_key).collect();
        assert_eq!(keys, ["order.paid", "order.created"], "{kind}");
    }
}

/// `CC` and `BCC` would route copies to other queues.
#[test]
fn copies_are_not_sent_again() {
    let fixture = Fixture::new("copies", "classic");
    fixture.amqp.declare_queue("copy", &[]).unwrap();
    fixture.amqp.bind_queue(EXCHANGE, "copy", "copy", &[]);
    let mut headers = FieldTable::default();
    let keys = AMQPValue::FieldArray(vec![AMQPValue::LongString("copy".into())].into());
    headers.insert("CC".into(), keys);
    let properties = AMQPProperties::default().with_delivery_mode(2).with_headers(headers);
    assert_eq!(fixture.amqp.publish_with(EXCHANGE, "order.paid", "0", properties), Outcome::Routed);
    assert_eq!(fixture.drain("copy").len(), 1);
    fixture.fail(WORK, 1);
    fixture.until_dead(1);
    fixture.replay(&["--to-original-exchange"]).expect_code(0).expect_text("1 message replayed.");
    let replayed = fixture.drain(WORK);
    assert_eq!(numbers(&replayed), [0]);
    assert!(!header_names(&replayed[0]).contains(&"CC".to_owned()));
    assert_eq!(fixture.ready("copy"), 0);
}

#[test]
fn unknown_routing_keys_are_reported() {
    let fixture = Fixture::new("unknown-key", "classic");
    fixture.dead_letter(2);
    // A worker publishes a failed message, and records only its queue.
    let mut headers = FieldTable::default();
    headers.insert("x-source-queue".into(), AMQPValue::LongString(WORK.into()));
    let properties = AMQPProperties::default().with_headers(headers);
    assert_eq!(fixture.amqp.publish_with("", DEAD, "2", properties), Outcome::Routed);
    fixture.until_dead(3);
    let planned = fixture.dlq("replay", &["--dry-run", "--format", "json"]).expect_code(0).json();
    let target = &planned["targets"][0];
    assert_eq!((&target["messages"], &target["ofUnknownRoutingKeys"]), (&Value::from(3), &Value::from(1)), "{target}");
    assert_eq!(target["routingKeys"], serde_json::json!({"order.paid": 1, "order.created": 1}));
    let planned = fixture.dlq("replay", &["--dry-run"]).expect_code(0);
    planned.expect_text("1 without an original routing key, published with the current key");
    let peeked = fixture.dlq("peek", &["--position", "3"]).expect_code(0);
    peeked.expect_text("published to  unknown; current routing key orders.dead");
    let peeked = fixture.dlq("peek", &["--position", "3", "--format", "json"]).expect_code(0);
    assert_eq!(peeked.json()["originalRoutingKey"], Value::Null, "{peeked}");
}

/// The binding to the target is removed during a replay: the replay stops, and no message is lost.
#[test]
fn replay_stops_when_its_target_is_unbound() {
    for kind in KINDS {
        let fixture = Fixture::new("unbound", kind);
        fixture.dead_letter(40);
        // The complete replay takes 10 s, so the binding is removed before its end also on a busy machine.
        let flags = ["--yes", "--rate", "4/s", "--canary", "0", "--allow", "no-consumers"];
        let words = fixture.words("replay", &flags);
        let running = fixture.topo.start(words.iter().map(String::as_str));
        until("the first messages", || (fixture.ready(WORK) >= 3).then_some(()));
        let binding = fixture.vhost.path("bindings", &["e", "orders.work.topo.replay", "q", WORK, "~"]);
        fixture.vhost.http().delete(&binding).expect_status(204);
        let stopped = running.wait().expect_code(4);
        stopped.expect_text("exchange orders.work.topo.replay could not route a message");
        let (replayed, left) = (numbers(&fixture.drain(WORK)), numbers(&fixture.drain(DEAD)));
        assert_eq!([replayed, left].concat(), (0..40).collect::<Vec<_>>(), "{kind}");
    }
}

#[test]
fn messages_of_an_unknown_source_stay() {
    let fixture = Fixture::new("unknown-source", "classic");
    fixture.dead_letter(2);
    assert_eq!(fixture.amqp.publish_with("orders.dead.dlx", "lost", "2", AMQPProperties::default()), Outcome::Routed);
    fixture.until_dead(3);
    let replayed = fixture.replay(&["--format", "json"]).expect_code(0);
    let replayed = replayed.json();
    assert_eq!((&replayed["done"], &replayed["unknownSource"]), (&2.into(), &1.into()), "{replayed}");
    fixture.until_dead(1);
    fixture.replay(&["--to", WORK]).expect_code(0).expect_text("1 message replayed.");
    assert_eq!(numbers(&fixture.drain(WORK)), [0, 1, 2]);
}
