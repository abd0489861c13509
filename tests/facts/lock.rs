//! A queue as a lock. `broker::lock` relies on these facts.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Stage;
use crate::support::until;

/// The shortest lease that can be observed, in milliseconds.
const LEASE: u64 = 1_000;

/// Sends the PUT of a holder, with a lease in milliseconds.
fn put(stage: &Stage, holder: &str, lease: u64) -> u16 {
    stage.queue("q", "classic", json!({"x-expires": lease, "x-topo-holder": holder})).status
}

fn holder(stage: &Stage) -> String {
    stage.listed("q")["arguments"]["x-topo-holder"].as_str().unwrap_or_default().to_owned()
}

/// The response to a PUT does not identify the holder, but a later read does: all readers see the same holder.
#[test]
fn one_of_many_concurrent_puts_remains_and_several_may_answer_201() {
    let stage = Stage::new("race");
    let seen: Vec<(u16, String)> = thread::scope(|scope| {
        let put_and_look = |number: usize| {
            let stage = &stage;
            scope.spawn(move || (put(stage, &format!("holder {number}"), 60_000), holder(stage)))
        };
        let threads: Vec<_> = (0..8).map(put_and_look).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let last = holder(&stage);
    assert!(last.starts_with("holder "), "{last}");
    assert!(seen.iter().all(|(status, holder)| matches!(status, 201 | 204) && *holder == last), "{last}: {seen:?}");
    assert!(seen.iter().any(|(status, _)| *status == 201), "{seen:?}");
}

/// Used by `broker::lock`, which reads the holder after every PUT.
#[test]
fn put_of_another_holder_is_204_and_keeps_the_holder() {
    let stage = Stage::new("second");
    assert_eq!((put(&stage, "one", 60_000), put(&stage, "other", 60_000)), (201, 204));
    assert_eq!(holder(&stage), "one");
    // The broker would refuse a different lease. All holders use the same lease.
    stage
        .queue("q", "classic", json!({"x-expires": 30_000}))
        .expect_difference("x-expires", "received '30000' but current is '60000'");
}

/// The lease expires without a request, and a read does not extend it.
#[test]
fn queue_with_an_expiry_is_deleted_without_a_put() {
    let stage = Stage::new("expiry");
    let begun = Instant::now();
    assert_eq!(put(&stage, "one", LEASE), 201);
    until("the queue to expire", || (stage.vhost.queue("q").is_null()).then_some(()));
    assert!(begun.elapsed().as_millis() > u128::from(LEASE) * 9 / 10, "{:?}", begun.elapsed());
}

/// A PUT renews the lease.
#[test]
fn put_restarts_the_expiry() {
    let stage = Stage::new("renewal");
    assert_eq!(put(&stage, "one", LEASE), 201);
    let lease = Duration::from_millis(LEASE);
    let (mut begun, mut last) = (Instant::now(), Instant::now());
    until("two leases", || {
        if put(&stage, "one", LEASE) == 201 {
            // On a busy machine, the pause between two PUTs may exceed the lease.
            assert!(last.elapsed() >= lease, "it expired after {:?}", last.elapsed());
            begun = Instant::now();
        }
        last = Instant::now();
        (begun.elapsed() > 2 * lease).then_some(())
    });
}

/// Used by `broker::lock`, which reads a single queue without statistics to find the current holder.
#[test]
fn new_queue_is_readable_immediately_with_its_arguments() {
    let stage = Stage::new("found");
    put(&stage, "one", 60_000);
    let queue = stage.http.get(&format!("{}?disable_stats=true", stage.path("queues", &["q"]))).expect_status(200);
    assert_eq!(queue["arguments"], json!({"x-queue-type": "classic", "x-expires": 60_000, "x-topo-holder": "one"}));
}
