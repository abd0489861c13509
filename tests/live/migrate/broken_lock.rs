//! A migration whose lock is broken stops, loses nothing, and the next run finishes it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL, at_once, said_twice, twice};
use super::traffic::{Publisher, emptied};
use crate::support::{Fault, Topo, writes};

#[test]
fn a_migration_whose_lock_is_broken_loses_nothing() {
    let stopped = AtomicUsize::new(0);
    let cases = TRANSPORTS.into_iter().flat_map(|transport| [1, 5].map(|n| (transport, n)));
    at_once(2, cases, |(transport, n)| {
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
        let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), &again);
        println!("{transport}, write {n}: exit code {:?}, {doubled} came twice", output.code);
        // An interrupted move may deliver again the messages that were under way.
        assert!(doubled <= 200 + said_twice(&again), "{context}{again}");
    });
    assert!(stopped.into_inner() >= 2, "hardly any run noticed it");
}
