//! An alarm in the middle: while it lasts the broker takes no message, and what is on its way waits.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::fixture::{Fixture, Q, TRANSPORTS, TTL, declare_old, expect_each_once, is_long, twice};
use super::traffic::{Publisher, emptied};
use crate::support::node::Options;
use crate::support::{Fault, Matching, Node, Topo, until, writes};

const MESSAGES: usize = 20_000;
/// Sent before the first message is moved, see [`of_the_migration`].
pub(super) const PREPARED: usize = 19;
/// Sent before the first message comes back, by AMQP.
pub(super) const EXCHANGED: usize = PREPARED + 2;
/// What a transport may have under way.
const PREFETCH: usize = 1_000;

/// What changes something, but for the lock: that is renewed, where it takes long.
pub(super) fn of_the_migration() -> Matching {
    writes().but("/topo.lock")
}

/// Less than any node needs, and the usual.
fn set_alarm(node: &Node, is_set: bool) {
    node.ctl(["set_vm_memory_high_watermark", if is_set { "0.00001" } else { "0.4" }]);
}

#[test]
fn an_alarm_in_the_middle_is_waited_out_or_said() {
    let node = Node::start(Options::default());
    for (transport, begins) in [("amqp", PREPARED), ("amqp", EXCHANGED), ("shovel", PREPARED)] {
        let vhost = node.vhost("alarm");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut fixture = Fixture::of(vhost, topo, TTL);
        let proxy = fixture.through_node(&node);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(MESSAGES);

        // One that ends in time.
        let running = fixture.start(transport);
        until("messages under way", || (proxy.count(&of_the_migration()) >= begins).then_some(()));
        set_alarm(&node, true);
        // How long it lasts is the subject.
        std::thread::sleep(Duration::from_secs(3));
        set_alarm(&node, false);
        let output = running.wait().expect_code(0);
        fixture.expect_migrated(&output);
        expect_each_once(emptied(&fixture.vhost, Q), MESSAGES, &output);
    }
}

#[test]
fn an_alarm_that_stays_is_said_and_the_next_run_goes_on() {
    let node = Node::start(Options::default());
    // A minute it is until the way back is given up.
    for transport in if is_long() { &TRANSPORTS[..] } else { &TRANSPORTS[..1] } {
        let vhost = node.vhost("alarm-stays");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut fixture = Fixture::of(vhost, topo, TTL);
        let mut publisher = Publisher::new(&fixture.vhost);
        publisher.fill(MESSAGES);
        let proxy = fixture.through_node(&node);
        // To set it takes seconds, in which all may be moved: until it is set, the run gets no further than that.
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
        // A shovel is on the broker, and no publisher that an alarm blocks.
        assert!(matches!(output.code, Some(1 | 4)) || *transport == "shovel" && output.code == Some(0), "{output}");
        println!("by {transport}: {:?}", output.code);
        set_alarm(&node, false);
        let again = fixture.migrate(transport, &["--lock-timeout=2m"]).expect_code(0);
        let context = format!("{output}\n{again}");
        fixture.expect_migrated(&context);
        let doubled = twice(emptied(&fixture.vhost, Q), MESSAGES, &context);
        assert!(doubled <= PREFETCH, "{doubled} came twice: {context}");
    }
}
