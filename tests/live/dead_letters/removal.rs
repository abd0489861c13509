//! Tests drops, exports and restores.

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::fixture::{DEAD, EXCHANGE, Fixture, KINDS, WORK, numbers};
use crate::support::Outcome;

#[test]
fn dropped_messages_are_in_the_backup_and_can_be_restored() {
    for kind in KINDS {
        let fixture = Fixture::new("dropped", kind);
        fixture.dead_letter(30);
        let flags = ["--yes", "--routing-key", "order.paid", "--backup", "paid.jsonl"];
        let counted = fixture.dlq("drop", &["--dry-run", "--routing-key", "order.paid"]).expect_code(0);
        counted.expect_text("Drop 15 of 30 messages in orders.dead");
        let counted = ["--dry-run", "--all", "--limit", "4", "--format", "json"];
        assert_eq!(fixture.dlq("drop", &counted).expect_code(0).json()["messages"], 4);
        fixture.until_dead(30);
        let dropped = fixture.dlq("drop", &flags).expect_code(0).expect_text("15 messages dropped.");
        assert!(dropped.stderr.contains("to restore the messages: topo dlq restore paid.jsonl --vhost "), "{dropped}");
        fixture.until_dead(15);
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(fixture.topo.path("paid.jsonl")).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
        }
        assert_eq!(fixture.topo.read("paid.jsonl").lines().count(), 15);
        let restore = ["dlq", "restore", "paid.jsonl", "--yes", "--vhost", "{vhost}"];
        let restored = fixture.topo.run(restore).expect_code(0);
        assert!(restored.stderr.contains("\"command\":\"restore\",\"vhost\""), "{restored}");
        restored.expect_text("15 messages restored to orders.dead.");
        let mut found = numbers(&fixture.drain(DEAD));
        found.sort_unstable();
        assert_eq!(found, (0..30).collect::<Vec<_>>(), "{kind}");
        // Only messages that were appended since then are restored.
        let again = fixture.topo.run(restore).expect_code(0);
        assert!(again.stderr.contains("have already been restored"), "{again}");
        assert_eq!(fixture.ready(DEAD), 0);
        fixture.dead_letter(2);
        fixture.dlq("drop", &flags).expect_code(0).expect_text("1 message dropped.");
        fixture.topo.run(restore).expect_code(0).expect_text("1 message restored to orders.dead.");
        fixture.until_dead(2);
        // A different file that begins with the same message is not the file that was restored.
        let first = fixture.topo.read("paid.jsonl").lines().next().unwrap().to_owned();
        std::fs::write(fixture.topo.path("paid.jsonl"), format!("{first}\n").repeat(20)).unwrap();
        fixture.topo.run(restore).expect_code(64).expect_error("contains the progress of a different restore");
        fixture.until_dead(2);
    }
}

/// Every header type, and bodies that are empty, binary or large, survive a drop, a restore and a replay.
#[test]
fn header_types_and_bodies_survive() {
    let fixture = Fixture::new("types", "classic");
    let mut nested = FieldTable::default();
    nested.insert("void".into(), AMQPValue::Void);
    nested.insert(
        "list".into(),
        AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::LongInt(1), AMQPValue::Boolean(true)])),
    );
    let mut headers = FieldTable::default();
    for (name, value) in [
        ("timestamp", AMQPValue::Timestamp(1_700_000_000)),
        ("decimal", AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 12_345 })),
        ("float", AMQPValue::Float(1.5)),
        ("double", AMQPValue::Double(0.1)),
        ("binary", AMQPValue::ByteArray(vec![0xff, 0, 1].into())),
        ("short", AMQPValue::ShortInt(-3)),
        ("byte", AMQPValue::ShortShortInt(-1)),
        ("long", AMQPValue::LongLongInt(i64::MIN)),
        ("nested", AMQPValue::FieldTable(nested)),
        ("text", AMQPValue::LongString("é".into())),
    ] {
        headers.insert(name.into(), value);
    }
    let properties = AMQPProperties::default()
        .with_content_type("text/plain".into())
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_type("k".into())
        .with_app_id("a".into())
        .with_timestamp(1_700_000_000)
        .with_priority(3)
        .with_delivery_mode(2)
        .with_headers(headers);
    let long_key = format!("order.{}", "k".repeat(249));
    // Brokers from 4.0 on accept 16 MiB by default.
    let large = "large ".repeat(5 << 19);
    let bodies = [&b""[..], b"x", large.as_bytes(), "\u{0}\u{1}é".as_bytes(), &[0xff, 0, b'a']];
    for body in bodies {
        let published = fixture.amqp.publish_with(EXCHANGE, &long_key, body, properties.clone());
        assert_eq!(published, Outcome::Routed);
    }
    fixture.fail(WORK, bodies.len());
    fixture.until_dead(bodies.len());
    fixture.dlq("drop", &["--yes", "--all", "--backup", "all.jsonl"]).expect_code(0);
    let restore = ["dlq", "restore", "all.jsonl", "--yes", "--vhost", "{vhost}"];
    fixture.topo.run(restore).expect_code(0);
    fixture.dlq("peek", &[]).expect_code(0).expect_text("decimal: 12345e-2 (decimal)").expect_text("timestamp: 2023-");
    let peeked = fixture.dlq("peek", &["--position", "5"]).expect_code(0);
    peeked.expect_text("body          hex, 3 bytes").expect_text("ff 00 61");
    let peeked = fixture.dlq("peek", &["--position", "5", "--format", "json"]).expect_code(0).json();
    assert_eq!((&peeked[0]["bodyEncoding"], &peeked[0]["body"]), (&"base64".into(), &"/wBh".into()));
    fixture.replay(&[]).expect_code(0).expect_text("5 messages replayed.");
    let drained = fixture.drain(WORK);
    assert_eq!(drained.len(), bodies.len());
    for (message, body) in drained.iter().zip(bodies) {
        assert_eq!((message.body.as_slice(), message.routing_key.as_str()), (body, long_key.as_str()));
        let found = &message.properties;
        let mut found_headers = found.headers().clone().unwrap().inner().clone();
        found_headers.retain(|name, _| !name.as_str().starts_with("x-"));
        assert_eq!(&found_headers, properties.headers().as_ref().unwrap().inner());
        let others = |it: &AMQPProperties| it.clone().with_headers(FieldTable::default());
        assert_eq!(others(found), others(&properties));
    }
}

#[test]
fn backup_of_an_interrupted_drop_is_continued_and_other_files_are_kept() {
    let fixture = Fixture::new("backup", "classic");
    fixture.dead_letter(4);
    fixture.topo.write("notes.txt", "not an archive\n");
    let refused = fixture.dlq("drop", &["--yes", "--all", "--backup", "notes.txt"]).expect_code(1);
    refused.expect_text("was not written by topo dlq");
    assert_eq!(fixture.topo.read("notes.txt"), "not an archive\n");
    fixture.until_dead(4);
    for position in ["1", "2"] {
        fixture.dlq("drop", &["--yes", "--position", position, "--backup", "two.jsonl"]).expect_code(0);
    }
    assert_eq!(fixture.topo.read("two.jsonl").lines().count(), 2);
    fixture.dlq("export", &["--out", "two.jsonl"]).expect_code(1);
    fixture.dlq("drop", &["--yes", "--all", "--no-backup"]).expect_code(0).expect_text("2 messages dropped.");
    // A restore to another queue.
    fixture.amqp.declare_queue("other", &[]).unwrap();
    let restore = ["dlq", "restore", "two.jsonl", "--yes", "--vhost", "{vhost}", "--queue", "other"];
    fixture.topo.run(restore).expect_code(0).expect_text("2 messages restored to other.");
    assert_eq!(numbers(&fixture.drain("other")), [0, 2]);
}

/// A busy work queue dead-letters further messages during a drop. They stay, and do not delay the drop.
#[test]
fn drop_ends_while_messages_arrive() {
    let mut fixture = Fixture::new("arriving", "classic");
    fixture.topo = fixture.topo.timeout(Duration::from_secs(60));
    fixture.dead_letter(10);
    let is_over = AtomicBool::new(false);
    let (dropped, arrived) = std::thread::scope(|scope| {
        let amqp = fixture.vhost.amqp();
        let publishing = scope.spawn(|| {
            let amqp = amqp;
            let mut arrived: u64 = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(amqp.publish_with("", DEAD, "late", AMQPProperties::default()), Outcome::Routed);
                arrived += 1;
            }
            arrived
        });
        let words = ["--yes", "--body", "1", "--no-backup", "--format", "json"];
        let dropped = fixture.dlq("drop", &words);
        is_over.store(true, Ordering::Relaxed);
        (dropped, publishing.join().unwrap())
    });
    let report = dropped.expect_code(0).json();
    assert_eq!(report["end"], "complete", "{report}");
    let done = report["done"].as_u64().unwrap();
    assert_eq!(done, 1, "{report}");
    fixture.until_dead(usize::try_from(10 + arrived - done).unwrap());
}
