//! Tests that a migration stops without message loss if its lock is deleted, and that the next run completes it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL, duplicates, reported_duplicates};
use super::traffic::{Publisher, emptied};
use crate::support::{Fault, Topo, run_concurrently, writes};

#[test]
fn migration_with_a_broken_lock_loses_no_message() {
    let stopped = AtomicUsize::new(0);
    let cases = TRANSPORTS.into_iter().flat_map(|transport| [1, 5].map(|n| (transport, n)));
    run_concurrently(2, cases, |(transport, n)| {
        let (mut fixture, proxy) = Fixture::new("unlocked", TTL).through();
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(200);
        let breaker = Topo::new(&fixture.vhost).timeout(Duration::from_secs(60));
        let break_it = move || {
            breaker.run(["lock", "--break", "--yes", "--vhost", "{vhost}"]).expect_code(0);
        };
        proxy.add(writes().but("/topo.lock").nth(n), Fault::Meanwhile(Box::new(break_it)));
        let output = fixture.migrate(transport, &[]);
        let context = format!("by {transport}, broken at write {n}: {output}");
        if output.code != Some(0) {
            assert!(matches!(output.code, Some(1 | 4)), "{context}");
            assert!(output.says("the lock on vhost") && output.says("was lost: "), "{context}");
            stopped.fetch_add(1, Ordering::Relaxed);
        }
        fixture.directly();
        let again = fixture.migrate(transport, &["--lock-timeout=2m"]).expect_code(0);
        fixture.expect_migrated(&again);
        let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &again);
        println!("{transport}, write {n}: exit code {:?}, {duplicated} duplicates", output.code);
        // An interrupted transfer may redeliver the messages in flight.
        assert!(duplicated <= 200 + reported_duplicates(&again), "{context}{again}");
    });
    assert!(stopped.into_inner() >= 2, "too few runs detected it");
}
