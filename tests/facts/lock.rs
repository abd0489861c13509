//! A queue as a lock: `broker::lock` stands on these.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Stage;
use crate::support::until;

/// Milliseconds; the shortest that is long enough to be seen.
const LEASE: u64 = 1_000;

/// The queue that a holder would put, with a lease of so many milliseconds.
fn put(stage: &Stage, holder: &str, lease: u64) -> u16 {
    stage.queue("q", "classic", json!({"x-expires": lease, "x-topo-holder": holder})).status
}

fn holder(stage: &Stage) -> String {
    stage.listed("q")["arguments"]["x-topo-holder"].as_str().unwrap_or_default().to_owned()
}

/// The answer to a PUT proves nothing, and a look after it does: all see the same holder.
#[test]
fn of_many_puts_at_once_one_stays_and_several_may_be_told_201() {
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

/// So the holder is read after every PUT.
#[test]
fn a_put_of_another_is_204_and_leaves_the_holder() {
    let stage = Stage::new("second");
    assert_eq!((put(&stage, "one", 60_000), put(&stage, "other", 60_000)), (201, 204));
    assert_eq!(holder(&stage), "one");
    // Another lease would be refused: all holders have the same.
    stage
        .queue("q", "classic", json!({"x-expires": 30_000}))
        .unequal("x-expires", "received '30000' but current is '60000'");
}

/// The lease ends by itself, and looking does not lengthen it.
#[test]
fn a_queue_with_an_expiry_goes_when_nobody_puts_it() {
    let stage = Stage::new("expiry");
    let begun = Instant::now();
    assert_eq!(put(&stage, "one", LEASE), 201);
    until("the queue to expire", || (stage.vhost.queue("q").is_null()).then_some(()));
    assert!(begun.elapsed().as_millis() > u128::from(LEASE) * 9 / 10, "{:?}", begun.elapsed());
}

/// A renewal.
#[test]
fn a_put_starts_the_expiry_anew() {
    let stage = Stage::new("renewal");
    assert_eq!(put(&stage, "one", LEASE), 201);
    let lease = Duration::from_millis(LEASE);
    let (mut begun, mut last) = (Instant::now(), Instant::now());
    until("two leases", || {
        if put(&stage, "one", LEASE) == 201 {
            // On a machine with much else to do, the pause between two of these may be longer than the lease.
            assert!(last.elapsed() >= lease, "it went after {:?}", last.elapsed());
            begun = Instant::now();
        }
        last = Instant::now();
        (begun.elapsed() > 2 * lease).then_some(())
    });
}

/// The look of a holder: one queue, without statistics, at once.
#[test]
fn a_new_queue_is_found_at_once_with_its_arguments() {
    let stage = Stage::new("found");
    put(&stage, "one", 60_000);
    let queue = stage.http.get(&format!("{}?disable_stats=true", stage.path("queues", &["q"]))).expect_status(200);
    assert_eq!(queue["arguments"], json!({"x-queue-type": "classic", "x-expires": 60_000, "x-topo-holder": "one"}));
}
