//! Messages that an AMQP library cannot parse: they are moved byte by byte, or a shovel moves them.

use super::killed::killed_before;
use super::stage::{Q, Stage, TTL};
use super::traffic::EXCHANGE;
use crate::support::raw_amqp::{RawAmqp, RawMessage, headers, nested, properties_that_leave};
use crate::support::{Fault, deletes};

fn message(key: &[u8], properties: Vec<u8>) -> RawMessage {
    RawMessage { key: key.to_vec(), properties, body: b"body".to_vec() }
}

/// Publishes the messages to the queue of the stage.
fn publish(stage: &Stage<'_>, messages: &[RawMessage]) {
    let mut raw = RawAmqp::connect(&stage.vhost);
    for message in messages {
        raw.publish(EXCHANGE, message);
    }
}

#[track_caller]
fn expect_taken(stage: &Stage<'_>, messages: &[RawMessage], context: &dyn std::fmt::Display) {
    let taken = RawAmqp::connect(&stage.vhost).take_all(Q);
    let short = |messages: &[RawMessage]| -> Vec<(Vec<u8>, usize)> {
        messages.iter().map(|message| (message.key.clone(), message.properties.len())).collect()
    };
    assert_eq!(short(&taken), short(messages), "{context}");
    assert!(taken == messages, "a message has changed: {context}");
}

/// Header tables of 12,000 and 120,000 bytes.
fn deep() -> [RawMessage; 3] {
    [2_000, 20_000, 1].map(|levels| message(b"work.deep", headers(&nested(levels))))
}

#[test]
fn deeply_nested_headers_survive_a_migration() {
    let stage = Stage::new("nested", TTL);
    publish(&stage, &deep());
    let output = stage.migrate("amqp", &[]).expect_code(0);
    expect_taken(&stage, &deep(), &output);
    stage.expect_migrated(&output);
}

#[test]
fn deeply_nested_headers_survive_an_abort() {
    let (mut stage, proxy) = Stage::new("nested-abort", TTL).through();
    proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangAfter);
    assert!(killed_before(1, &proxy, stage.start("amqp")), "the run ended without the switch");
    // The queue is cut over: these wait in the holding queue.
    publish(&stage, &deep());
    stage.unlock();
    stage.directly();
    let output = stage.topo.run(["apply", "-y", "--transport", "amqp", "--abort", "queues/{vhost}/q"]).expect_code(0);
    stage.expect_as_before(&output);
    expect_taken(&stage, &deep(), &output);
}

/// Bytes that are not UTF-8, in a property and in the name of a header.
#[test]
fn properties_are_moved_byte_by_byte() {
    let stage = Stage::new("bytes", TTL);
    let correlation_id = [&[0x04, 0x00, 4], &b"\xff\x00\xfe\x80"[..]].concat();
    let header = headers(&[&[2, 0xff, 0xfe, b'u'], &[0x12, 0x34][..]].concat());
    let messages = [message(b"work.a", correlation_id), message(b"work.b", header), message(b"work.c", vec![0, 0])];
    publish(&stage, &messages);
    let output = stage.migrate("amqp", &[]).expect_code(0);
    expect_taken(&stage, &messages, &output);
}

/// A frame that is full, and a routing key that is not UTF-8.
fn not_for_amqp() -> [RawMessage; 2] {
    [message(b"work.full", properties_that_leave(0)), message(b"work.\xff", vec![0, 0])]
}

#[test]
fn a_shovel_moves_what_amqp_cannot() {
    for odd in not_for_amqp() {
        let stage = Stage::new("fallback", TTL);
        let messages = [message(b"work.before", vec![0, 0]), odd, message(b"work.after", vec![0, 0])];
        publish(&stage, &messages);
        let output = stage.migrate("auto", &[]).expect_code(0);
        expect_taken(&stage, &messages, &output);
        stage.expect_migrated(&output);
    }
}

#[test]
fn without_a_shovel_the_migration_is_undone() {
    for odd in not_for_amqp() {
        let stage = Stage::new("no-fallback", TTL);
        let messages = [message(b"work.before", vec![0, 0]), odd, message(b"work.after", vec![0, 0])];
        publish(&stage, &messages);
        let output = stage.migrate("amqp", &[]).expect_code(1);
        let output = output.expect_text("AMQP cannot carry a message").expect_text("use `--transport shovel`");
        stage.expect_as_before(&output);
        assert_eq!(RawAmqp::connect(&stage.vhost).take_all(Q).len(), messages.len(), "{output}");
    }
}
