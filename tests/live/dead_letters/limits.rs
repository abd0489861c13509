//! Tests delivery limits, and the maximum number of held messages.

use super::fixture::{DEAD, Fixture, number_header, numbers, report};
use crate::support::Node;

/// From 4.0 on, a quorum queue with the default limit drops a message after 20 returned deliveries. Up to 4.2, topo refuses
/// the inspection; with `--allow inspection-cost`, it renews messages at their limit. From 4.3 on, an inspection is not
/// counted.
#[test]
fn inspections_of_a_limited_queue_lose_no_message() {
    let node = Node::shared();
    if !node.at_least(4, 0) {
        return;
    }
    let fixture = Fixture::with("limited", "quorum", "", ", deliveryLimit: 20");
    fixture.dead_letter(20);
    let flags: &[&str] = match node.at_least(4, 3) {
        true => &[],
        false => {
            let refused = fixture.dlq("peek", &[]).expect_code(3);
            refused.expect_text("inspection-cost").expect_text("delivery limit 20");
            &["--allow", "inspection-cost"]
        }
    };
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

#[test]
fn held_messages_are_limited() {
    let fixture = Fixture::new("hold", "classic");
    fixture.dead_letter(100);
    let listed = fixture.dlq("list", &["--hold", "10"]).expect_code(0);
    listed
        .expect_text("100 messages: 10 inspected and requeued.")
        .expect_text("topo holds the maximum number of messages");
    let stopped = fixture.replay(&["--hold", "10", "--header", "n=50"]).expect_code(1);
    stopped.expect_text("topo holds the maximum number of messages").expect_text("0 messages replayed.");
    let stopped = fixture.replay(&["--hold", "10", "--header", "n=5", "--format", "json"]).expect_code(4);
    let stopped = report(&stopped);
    assert_eq!((stopped["done"].as_u64(), stopped["end"].as_str()), (Some(1), Some("stopped")));
    fixture.until_dead(99);
    // Without messages that stay, the number of messages is not limited.
    fixture.replay(&["--hold", "10"]).expect_code(0).expect_text("99 messages replayed.");
}
