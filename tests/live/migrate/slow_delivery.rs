//! Tests that a move does not end before a delivery that takes long. A broker needs seconds to encode a message with
//! deeply nested headers, and longer under load.

use std::time::Duration;

use super::fixture::{Fixture, Q, QUORUM, TTL, expect_each_once, run_concurrently, supports_quorum_queues};
use super::killed::killed_before;
use super::traffic::{Disorder, Publisher, disorder, emptied};
use crate::support::random::is_long;
use crate::support::{AmqpProxy, Fault, deletes};

const MESSAGES: usize = 20;

#[track_caller]
fn expect_in_order(fixture: &Fixture<'_>, context: &dyn std::fmt::Display) {
    let taken = emptied(&fixture.vhost, Q);
    expect_each_once(taken.iter().copied(), MESSAGES, context);
    assert_eq!(disorder(&taken), Disorder::default(), "{taken:?}\n{context}");
}

/// The return of the drained messages waits for the first delivery.
#[test]
fn slow_delivery_does_not_end_a_migration() {
    let conversions = [TTL, QUORUM].into_iter().filter(|one| !one.is_slow() || is_long() && supports_quorum_queues());
    run_concurrently(2, conversions, |conversion| {
        let fixture = Fixture::new("slow", conversion);
        Publisher::new(&fixture.vhost).fill(MESSAGES);
        let road = AmqpProxy::slow(fixture.vhost.node(), Duration::from_millis(1500));
        let fixture = fixture.through_proxies(&road);
        let output = fixture.migrate("amqp", &[]).expect_code(0);
        fixture.expect_migrated(&output);
        expect_in_order(&fixture, &output);
    });
}

/// The return of the held messages waits for the first delivery, even if it takes longer than the 10 s after which new
/// messages may overtake the last few messages.
#[test]
fn slow_delivery_does_not_end_a_rollback() {
    let (mut fixture, proxy) = Fixture::new("slow-abort", TTL).through();
    proxy.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangAfter);
    assert!(killed_before(1, &proxy, fixture.start("amqp")), "the run ended before the request");
    // These messages wait in the holding queue.
    Publisher::new(&fixture.vhost).fill(MESSAGES);
    fixture.unlock();
    fixture.directly();
    let road = AmqpProxy::slow(fixture.vhost.node(), Duration::from_secs(11));
    let fixture = fixture.through_proxies(&road);
    let output = fixture
        .topo
        .run(["apply", "-y", "--transport", "amqp", "--drain-timeout=3m", "--abort", "queues/{vhost}/q"])
        .expect_code(0);
    fixture.expect_as_before(&output);
    expect_in_order(&fixture, &output);
}
