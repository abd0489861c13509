//! Tests large dead-letter queues: the order of what stays, and the memory of topo. The short form has 20,000 messages. The
//! long form has a million messages of 1 KB in a classic queue, more than the largest prefetch count, and prints the times. A
//! quorum queue then has 200,000 messages, because the time of a filtered replay is quadratic in their number: for each
//! acknowledgement, the broker searches all messages that topo holds.

use futures_util::StreamExt;
use futures_util::future::join_all;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use std::time::{Duration, Instant};

use super::fixture::{DEAD, Fixture, KINDS, WORK};
use crate::support::random::is_long;
use crate::support::{Output, block_on, until};

/// The number of messages that are published before their confirms are awaited.
const BATCH: usize = 5_000;
/// One of this number of messages is selected.
const EACH: usize = 100;
/// The text that selects a message.
const SELECTED: &str = "selected";
/// The memory that topo may use in the short form.
const SHORT_KIB: u64 = 150 << 10;
/// The memory that topo may use in the long form. A debug build needs 50 MiB without messages. Up to 31 consumers start one
/// after another, so at most the 32,259 messages of one consumer wait in topo.
const LONG_KIB: u64 = 256 << 10;
/// The maximum time of a run with a million messages in a debug build.
const TIMEOUT: Duration = Duration::from_secs(2_400);

/// Publishes messages to the dead-letter queue. Their bodies begin with their numbers, and have about this size.
pub(super) fn fill(fixture: &Fixture<'_>, count: usize, size: usize) {
    let channel = fixture.amqp.channel();
    block_on(channel.confirm_select(ConfirmSelectOptions::default())).unwrap();
    for start in (0..count).step_by(BATCH) {
        let published = block_on(async {
            let mut confirms = Vec::new();
            for number in start..count.min(start + BATCH) {
                let word = if number % EACH == 0 { SELECTED } else { "-" };
                let body = format!("{number} {word} {}", "x".repeat(size));
                let (options, properties) = (BasicPublishOptions::default(), AMQPProperties::default());
                let properties = properties.with_delivery_mode(2);
                confirms
                    .push(channel.basic_publish("".into(), DEAD.into(), options, body.as_bytes(), properties).await?);
            }
            for confirmed in join_all(confirms).await {
                assert!(confirmed?.is_ack());
            }
            Ok::<_, lapin::Error>(())
        });
        published.unwrap();
    }
}

/// Removes all messages of the dead-letter queue. Returns their numbers.
pub(super) fn take_all(fixture: &Fixture<'_>, count: usize) -> Vec<usize> {
    let channel = fixture.amqp.channel();
    let options = BasicConsumeOptions { no_ack: true, ..Default::default() };
    let mut consumer = block_on(channel.basic_consume(DEAD.into(), "".into(), options, FieldTable::default())).unwrap();
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let delivery = block_on(consumer.next()).expect("the consumer is not canceled").unwrap();
        let body = String::from_utf8(delivery.data).unwrap();
        numbers.push(body.split(' ').next().unwrap().parse().unwrap());
    }
    numbers
}

/// Runs a command, and prints its time and its peak memory.
fn measured(fixture: &Fixture<'_>, command: &str, flags: &[&str]) -> Output {
    let words = fixture.words(command, &[&["--hold", "1000000"], flags].concat());
    let began = Instant::now();
    let mut running = fixture.topo.start(words.iter().map(String::as_str));
    let mut peak = 0;
    while !running.is_over() {
        peak = running.peak_kib().unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{command} {flags:?}: {:?}, at most {peak} KiB", began.elapsed());
    let output = running.wait().expect_code(0);
    let max = if is_long() { LONG_KIB } else { SHORT_KIB };
    assert!(peak > 0 && peak < max, "{peak} KiB: {output}");
    output
}

#[test]
fn large_queue_keeps_its_order_in_bounded_memory() {
    for kind in KINDS {
        let (count, size) = match (is_long(), kind) {
            (false, _) => (20_000, 10),
            (true, "quorum") => (200_000, 1_000),
            (true, _) => (1_000_000, 1_000),
        };
        let mut fixture = Fixture::new("large", kind);
        fixture.topo = fixture.topo.timeout(TIMEOUT);
        fill(&fixture, count, size);
        fixture.until_dead(count);
        let selected = count / EACH;
        let listed = measured(&fixture, "list", &["--format", "json"]).json();
        assert_eq!((&listed["messages"], &listed["inspected"]), (&count.into(), &count.into()), "{kind}");
        assert_eq!(listed["complete"], true, "{kind}");
        // A busy quorum queue returns many messages only after some time.
        fixture.until_dead(count);
        let flags = [
            "--body",
            SELECTED,
            "--to",
            WORK,
            "--rate",
            "none",
            "--canary",
            "0",
            "--settle",
            "0s",
            "--allow",
            "no-consumers",
            "--yes",
        ];
        measured(&fixture, "replay", &flags);
        until("the replayed messages", || (fixture.ready(WORK) == selected).then_some(()));
        fixture.until_dead(count - selected);
        let numbers = take_all(&fixture, count - selected);
        assert!(numbers.is_sorted() && numbers.iter().all(|number| number % EACH != 0), "{kind}");
    }
}
