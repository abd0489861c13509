//! Tests that a slow delivery does not end a move early. A broker can take seconds to encode a message with deeply
//! nested headers, and longer under load.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::fixture::{Fixture, Q, QUORUM, TTL, expect_each_once, supports_quorum_queues};
use super::killed::killed_before;
use super::traffic::{Publisher, disorder, emptied};
use crate::support::random::is_long;
use crate::support::{AmqpProxy, Fault, SetOnDrop, deletes, run_concurrently};

/// The number of messages in the queue before the migration or the rollback.
const MESSAGES: usize = 20;
/// The number of publishes per second during the rollback.
const RATE: usize = 20;
/// The maximum number of messages that new messages may overtake.
const LAST_FEW: usize = 3;

/// The returns of the drained and of the held messages wait for the first two deliveries. After the first one, the
/// prefetch count is larger, so the other messages are neither ready nor received.
#[test]
fn slow_delivery_does_not_end_a_migration() {
    let conversions = [TTL, QUORUM].into_iter().filter(|one| !one.is_slow() || is_long() && supports_quorum_queues());
    run_concurrently(2, conversions, |conversion| {
        let fixture = Fixture::new("slow", conversion);
        Publisher::new(&fixture.vhost).fill(MESSAGES);
        let proxy = AmqpProxy::slow(fixture.vhost.node(), 2, Duration::from_millis(1500));
        let fixture = fixture.through_proxies(&proxy);
        let output = fixture.migrate("amqp", &[]).expect_code(0);
        // The drain and the return use a channel each.
        assert!(proxy.delayed() >= 4, "{} were delayed\n{output}", proxy.delayed());
        fixture.expect_migrated(&output);
        let received = emptied(&fixture.vhost, Q);
        expect_each_once(received.iter().copied(), MESSAGES, &output);
        assert_eq!(disorder(&received).late, 0, "{received:?}\n{output}");
    });
}

/// The return of the held messages waits for the first delivery, which takes 11 s. After 10 s without an idle moment,
/// new messages may overtake messages in transit, and after 20 s, the last few ready messages. These times do not
/// include the first delivery.
#[test]
fn slow_delivery_does_not_end_a_rollback() {
    let (mut fixture, http) = Fixture::new("slow-abort", TTL).through();
    http.add(deletes().path("/e/q.topo.tap/q/"), Fault::HangAfter);
    assert!(killed_before(1, &http, fixture.start("amqp")), "the run ended before the request");
    // These messages wait in the holding queue.
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    assert_eq!(usize::try_from(fixture.amqp.ready("q.topo.hold")), Ok(MESSAGES));
    fixture.unlock();
    fixture.directly();
    let proxy = AmqpProxy::slow(fixture.vhost.node(), 1, Duration::from_secs(11));
    let fixture = fixture.through_proxies(&proxy);
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        let _stop = SetOnDrop([&over]);
        scope.spawn(|| publisher.keep_on(RATE, &over));
        let abort = ["apply", "-y", "--transport", "amqp", "--drain-timeout=3m", "--abort", "queues/{vhost}/q"];
        fixture.topo.run(abort).expect_code(0)
    });
    assert!(proxy.delayed() >= 1, "nothing was delayed\n{output}");
    publisher.expect_all_taken();
    fixture.expect_as_before(&output);
    let received = emptied(&fixture.vhost, Q);
    expect_each_once(received.iter().copied(), publisher.published(), &output);
    assert!(disorder(&received).late <= LAST_FEW, "{:?}: {received:?}\n{output}", disorder(&received));
}
