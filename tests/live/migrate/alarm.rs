//! Tests a resource alarm during a migration: the broker blocks publishers, and messages wait.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL, declare_old, duplicates, expect_each_once};
use super::traffic::{Publisher, emptied};
use crate::support::node::Options;
use crate::support::random::is_long;
use crate::support::{Fault, Matching, Node, Topo, until, writes};

const MESSAGES: usize = 20_000;
/// The number of writes before the first message is moved, see [`of_the_migration`].
pub(super) const PREPARED: usize = 19;
/// The number of writes before AMQP returns the first message.
pub(super) const EXCHANGED: usize = PREPARED + 2;
/// The in-flight limit of a transport.
const PREFETCH: usize = 1_000;

/// Matches writes except lock renewals, which only a slow run sends.
pub(super) fn of_the_migration() -> Matching {
    writes().but("/topo.lock")
}

/// Sets a memory limit below the memory use of any node, or the default.
fn set_alarm(node: &Node, is_set: bool) {
    node.ctl(["set_vm_memory_high_watermark", if is_set { "0.00001" } else { "0.4" }]);
}

#[test]
fn alarm_during_a_migration_is_waited_out_or_reported() {
    let node = Node::start(Options::default());
    for (transport, begins) in [("amqp", PREPARED), ("amqp", EXCHANGED), ("shovel", PREPARED)] {
        let vhost = node.vhost("alarm");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut fixture = Fixture::of(vhost, topo, TTL);
        let proxy = fixture.through_node(&node);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(MESSAGES);

        // This alarm is short.
        let running = fixture.start(transport);
        until("messages under way", || (proxy.count(&of_the_migration()) >= begins).then_some(()));
        set_alarm(&node, true);
        // Waits for the duration of the alarm.
        std::thread::sleep(Duration::from_secs(3));
        set_alarm(&node, false);
        let output = running.wait().expect_code(0);
        fixture.expect_migrated(&output);
        expect_each_once(emptied(&fixture.vhost, Q), MESSAGES, &output);
    }
}

#[test]
fn lasting_alarm_is_reported_and_the_next_run_resumes() {
    let node = Node::start(Options::default());
    // topo stops returning messages after a minute.
    for transport in if is_long() { &TRANSPORTS[..] } else { &TRANSPORTS[..1] } {
        let vhost = node.vhost("alarm-stays");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut fixture = Fixture::of(vhost, topo, TTL);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(MESSAGES);
        let proxy = fixture.through_node(&node);
        // Setting the alarm takes seconds, in which all messages could move. A gate delays the run until the alarm is
        // set.
        let (set, is_set) = channel::<()>();
        let wait = move || is_set.recv().unwrap_or_default();
        proxy.add(of_the_migration().nth(PREPARED + 1), Fault::Meanwhile(Box::new(wait)));
        let words = Fixture::apply(transport);
        let words = words.iter().map(String::as_str).chain(["--drain-timeout=5s"]);
        let running = fixture.topo.start(words);
        until("the drain", || (proxy.count(&of_the_migration()) >= PREPARED).then_some(()));
        set_alarm(&node, true);
        drop(set);
        let output = running.wait();
        // An alarm does not block a shovel, which runs inside the broker.
        assert!(matches!(output.code, Some(1 | 4)) || *transport == "shovel" && output.code == Some(0), "{output}");
        println!("by {transport}: {:?}", output.code);
        set_alarm(&node, false);
        let again = fixture.migrate(transport, &["--lock-timeout=2m"]).expect_code(0);
        let context = format!("{output}\n{again}");
        fixture.expect_migrated(&context);
        let duplicated = duplicates(emptied(&fixture.vhost, Q), MESSAGES, &context);
        assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {context}");
    }
}
