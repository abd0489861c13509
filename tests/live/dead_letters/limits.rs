//! Tests delivery limits, and the maximum number of held messages.

use super::fixture::{DEAD, Fixture, KINDS, WORK, number_header, numbers, report};
use super::large::{fill, take_all};
use crate::support::{Node, text, until};

/// From 4.0 on, a quorum queue with the default limit drops a message after 20 returned deliveries. topo refuses the
/// inspection; with `--allow inspection-cost`, it renews messages near their limit. From 4.3 on, an inspection is not
/// counted.
#[test]
fn inspections_of_a_limited_queue_lose_no_message() {
    let node = Node::shared();
    if !node.at_least(4, 0) {
        return;
    }
    let fixture = Fixture::with("limited", "quorum", "", ", deliveryLimit: 20");
    // A queue of an application has the default limit.
    fixture.vhost.http().delete(&fixture.vhost.path("queues", &[DEAD])).expect_status(204);
    fixture.amqp.declare_queue(DEAD, &[("x-queue-type", text("quorum"))]).unwrap();
    fixture.amqp.bind_queue("orders.dead.dlx", DEAD, "#", &[]);
    fixture.dead_letter(20);
    let refused = fixture.dlq("peek", &[]).expect_code(3);
    refused.expect_text("inspection-cost").expect_text("delivery limit of 20");
    let flags: &[&str] = &["--allow", "inspection-cost"];
    for _ in 0..25 {
        fixture.dlq("peek", flags).expect_code(0);
        fixture.until_dead(20);
    }
    let listed = fixture.dlq("list", &[flags, &["--format", "json"]].concat()).expect_code(0).json();
    assert_eq!(listed["messages"], 20);
    let drained = fixture.drain(DEAD);
    let mut found = numbers(&drained);
    if node.at_least(4, 3) {
        assert_eq!(found, (0..20).collect::<Vec<_>>(), "the order is kept");
        let counts: Vec<i64> =
            drained.iter().map(|message| number_header(message, "x-delivery-count").unwrap_or(0)).collect();
        // The rejection in the work queue.
        assert!(counts.iter().all(|count| *count == 1), "{counts:?}");
    }
    found.sort_unstable();
    assert_eq!(found, (0..20).collect::<Vec<_>>());
}

/// From 4.3 on, the delivery count of a message includes the deliveries by earlier queues, so a killed inspection could
/// exceed the limit. topo renews such messages.
#[test]
fn killed_inspections_of_a_limited_queue_lose_no_message() {
    const MESSAGES: usize = 500;
    if !Node::shared().at_least(4, 3) {
        return;
    }
    let fixture = Fixture::with("killed-limited", "quorum", "", ", deliveryLimit: 4");
    fixture.dead_letter(MESSAGES);
    let allow = ["--allow", "inspection-cost"];
    let mut renewals = 0;
    for _ in 0..8 {
        let words = fixture.words("list", &allow);
        let mut running = fixture.topo.start(words.iter().map(String::as_str));
        // The inspection holds messages.
        until("a message to be held", || (fixture.ready(DEAD) < MESSAGES || running.is_over()).then_some(()));
        if !running.is_over() {
            running.signal("KILL");
        }
        running.wait();
        // A complete inspection renews the messages that the killed one has brought near their limit.
        let listed = until("the lock to be free", || {
            let listed = fixture.dlq("list", &allow);
            (listed.code == Some(0)).then_some(listed)
        });
        renewals += usize::from(listed.stdout.contains("near the delivery limit"));
        fixture.until_dead(MESSAGES);
    }
    assert!(renewals > 0, "no killed inspection held messages");
    let mut found = numbers(&fixture.drain(DEAD));
    found.sort_unstable();
    assert_eq!(found, (0..MESSAGES).collect::<Vec<_>>());
}

/// topo returns the held messages before the broker closes the channel, and continues.
#[test]
fn run_continues_after_the_hold_time() {
    for kind in KINDS {
        let fixture = Fixture::new("hold-time", kind);
        fixture.dead_letter(90);
        // At this rate, the replay of 30 messages takes 3 s.
        let flags = ["--hold-time", "1s", "--rate", "10", "--header", "tenant=acme", "--format", "json"];
        let words = [&["--yes", "--canary", "0", "--settle", "1s", "--allow", "no-consumers"], &flags[..]].concat();
        let replayed = report(&fixture.dlq("replay", &words).expect_code(0));
        let counts = ["before", "received", "matched", "done"].map(|name| replayed[name].as_u64());
        assert_eq!(counts, [90, 90, 30, 30].map(Some), "{kind}: {replayed}");
        let of_acme = |number: &usize| number.is_multiple_of(3);
        let (acme, others): (Vec<usize>, Vec<usize>) = (0..90).partition(of_acme);
        assert_eq!(numbers(&fixture.drain(WORK)), acme, "{kind}");
        // Without the continuation, the report names the option.
        let listed = fixture.dlq("list", &["--hold-time", "1ns"]).expect_code(1);
        listed.expect_text("--hold-time");
        fixture.until_dead(60);
        assert_eq!(numbers(&fixture.drain(DEAD)), others, "{kind}");
    }
}

#[test]
fn held_messages_are_limited() {
    let fixture = Fixture::new("hold", "classic");
    fixture.dead_letter(100);
    let listed = fixture.dlq("list", &["--hold", "10"]).expect_code(1);
    listed
        .expect_text("100 messages: 10 inspected and requeued.")
        .expect_text("topo reached the limit for held messages");
    let stopped = fixture.replay(&["--hold", "10", "--header", "n=50"]).expect_code(1);
    stopped.expect_text("topo reached the limit for held messages").expect_text("0 messages replayed.");
    let stopped = fixture.replay(&["--hold", "10", "--header", "n=5", "--format", "json"]).expect_code(4);
    let stopped = report(&stopped);
    assert_eq!((stopped["done"].as_u64(), stopped["end"].as_str()), (Some(1), Some("stopped")));
    fixture.until_dead(99);
    // Without messages that stay, the number of messages is not limited.
    fixture.replay(&["--hold", "10"]).expect_code(0).expect_text("99 messages replayed.");
}

/// Messages of 100 KB fill a consumer long before `--hold`, so that topo holds them with several consumers.
#[test]
fn messages_of_several_consumers_keep_their_order_at_any_end() {
    const SIZE: usize = 100_000;
    const MESSAGES: usize = 600;
    for kind in KINDS {
        let fixture = Fixture::new("several", kind);
        fill(&fixture, MESSAGES, SIZE);
        fixture.until_dead(MESSAGES);
        // The number of messages that one consumer holds depends on their size.
        let sizes = || fixture.vhost.queue(DEAD)["message_bytes"].as_u64();
        until("the sizes", || sizes().is_some_and(|bytes| bytes >= (MESSAGES * SIZE) as u64).then_some(()));
        for _ in 0..2 {
            fixture.dlq("peek", &["--limit", "1", "--body-as", "none"]).expect_code(0);
            fixture
                .dlq("list", &["--hold", "400"])
                .expect_code(1)
                .expect_text("600 messages: 400 inspected and requeued.")
                .expect_text("topo reached the limit for held messages");
            fixture.dlq("list", &[]).expect_code(0).expect_text("600 messages: all inspected and requeued.");
        }
        let drop = ["--position", "3", "--position", "590", "--no-backup", "--yes"];
        fixture.dlq("drop", &drop).expect_code(0).expect_text("2 messages dropped.");
        let peeked = fixture.dlq("peek", &["--format", "json", "--limit", "1"]).expect_code(0);
        if kind == "quorum" && Node::shared().at_least(4, 3) {
            assert!(!peeked.stdout.contains("x-delivery-count"), "an inspection is not counted: {peeked}");
        }
        fixture.until_dead(MESSAGES - 2);
        let expected: Vec<usize> = (0..MESSAGES).filter(|number| ![2, 589].contains(number)).collect();
        assert_eq!(take_all(&fixture, MESSAGES - 2), expected, "{kind}");
    }
}
