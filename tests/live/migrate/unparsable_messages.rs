//! Tests messages that an AMQP library cannot parse. topo copies their bytes, or a shovel moves them.

use super::fixture::{Fixture, Q, TTL};
use super::killed::killed_before;
use super::traffic::EXCHANGE;
use crate::support::raw_amqp::{RawAmqp, RawMessage, headers, nested, properties_that_leave};
use crate::support::{Fault, deletes};

fn message(key: &[u8], properties: Vec<u8>) -> RawMessage {
    RawMessage { key: key.to_vec(), properties, body: b"body".to_vec() }
}

/// Publishes the messages to the queue of the fixture.
fn publish(fixture: &Fixture<'_>, messages: &[RawMessage]) {
    let mut raw = RawAmqp::connect(&fixture.vhost);
    for message in messages {
        raw.publish(EXCHANGE, message);
    }
}

#[track_caller]
fn expect_taken(fixture: &Fixture<'_>, messages: &[RawMessage], context: &dyn std::fmt::Display) {
    let taken = RawAmqp::connect(&fixture.vhost).take_all(Q);
    let short = |messages: &[RawMessage]| -> Vec<(Vec<u8>, usize)> {
        messages.iter().map(|message| (message.key.clone(), message.properties.len())).collect()
    };
    assert_eq!(short(&taken), short(messages), "{context}");
    assert!(taken == messages, "a message has changed: {context}");
}

/// Returns messages with header tables of 120,000 and 12,000 bytes. The time that the broker needs to deliver them grows
/// with the square of the size: 4.3.6 needs 1.4 s for 120,000 bytes.
fn deep() -> [RawMessage; 3] {
    [20_000, 2_000, 1].map(|levels| message(b"work.deep", headers(&nested(levels))))
}

#[test]
fn deeply_nested_headers_survive_a_migration() {
    let fixture = Fixture::new("nested", TTL);
    publish(&fixture, &deep());
    let output = fixture.migrate("amqp", &["--drain-timeout=3m"]).expect_code(0);
    expect_taken(&fixture, &deep(), &output);
    fixture.expect_migrated(&output);
}

#[test]
fn deeply_nested_headers_survive_an_abort() {
    let (mut fixture, proxy) = Fixture::new("nested-abort", TTL).through();
    proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangAfter);
    assert!(killed_before(1, &proxy, fixture.start("amqp")), "the run ended without the switch");
    // After the swap, these messages wait in the holding queue.
    publish(&fixture, &deep());
    fixture.unlock();
    fixture.directly();
    let output = fixture
        .topo
        .run(["apply", "-y", "--transport", "amqp", "--drain-timeout=3m", "--abort", "queues/{vhost}/q"])
        .expect_code(0);
    fixture.expect_as_before(&output);
    expect_taken(&fixture, &deep(), &output);
}

/// A property and a header name contain bytes that are not UTF-8.
#[test]
fn properties_are_moved_byte_by_byte() {
    let fixture = Fixture::new("bytes", TTL);
    let correlation_id = [&[0x04, 0x00, 4], &b"\xff\x00\xfe\x80"[..]].concat();
    let header = headers(&[&[2, 0xff, 0xfe, b'u'], &[0x12, 0x34][..]].concat());
    let messages = [message(b"work.a", correlation_id), message(b"work.b", header), message(b"work.c", vec![0, 0])];
    publish(&fixture, &messages);
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    expect_taken(&fixture, &messages, &output);
}

/// Returns messages with a full frame and with a routing key that is not UTF-8.
fn unsupported_by_amqp() -> [RawMessage; 2] {
    [message(b"work.full", properties_that_leave(0)), message(b"work.\xff", vec![0, 0])]
}

#[test]
fn shovel_moves_messages_that_amqp_cannot() {
    for odd in unsupported_by_amqp() {
        let fixture = Fixture::new("fallback", TTL);
        let messages = [message(b"work.before", vec![0, 0]), odd, message(b"work.after", vec![0, 0])];
        publish(&fixture, &messages);
        let output = fixture.migrate("auto", &[]).expect_code(0);
        expect_taken(&fixture, &messages, &output);
        fixture.expect_migrated(&output);
    }
}

#[test]
fn without_a_shovel_the_migration_is_rolled_back() {
    for odd in unsupported_by_amqp() {
        let fixture = Fixture::new("no-fallback", TTL);
        let messages = [message(b"work.before", vec![0, 0]), odd, message(b"work.after", vec![0, 0])];
        publish(&fixture, &messages);
        let output = fixture.migrate("amqp", &[]).expect_code(1);
        let output = output.expect_text("AMQP cannot carry a message").expect_text("use `--transport shovel`");
        fixture.expect_as_before(&output);
        assert_eq!(RawAmqp::connect(&fixture.vhost).take_all(Q).len(), messages.len(), "{output}");
    }
}
