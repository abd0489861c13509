//! A cluster of three nodes, and queues with a member on each: one node dies in the middle of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, Q, QUORUM, TRANSPORTS, declare_old, is_long, since, there_are_quorums, twice};
use super::traffic::{Publisher, emptied};
use crate::support::{Amqp, Node, Random, Topo, seed, until, writes};

/// Before it begins.
const MESSAGES: usize = 1_000;
/// A second, while it goes on.
const RATE: usize = 100;
/// What a transport may have under way.
const PREFETCH: usize = 1_000;
/// A lock that died with its node is free after a minute.
const LOCK: [&str; 2] = ["--lock-timeout", "2m"];

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The node on which the old queue has its leader, and nobody's connection.
    Leader,
    /// The node that topo talks to.
    Topos,
}

/// Ends what waits for it, whatever happens.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One node is killed when topo has sent so many requests that change something.
fn one_dies(victim: Victim, transport: &str, after: usize) {
    let [topos, applications, third] = Node::cluster();
    let vhost = applications.vhost("cluster");
    vhost.until_on_all_nodes();
    declare_old(&Amqp::connect(third.amqp_port(), vhost.name(), "guest", "guest"), QUORUM, &[]);
    until("a queue of three members", || {
        (vhost.queue(Q)["members"].as_array().is_some_and(|members| members.len() == 3)).then_some(())
    });
    let topo = Topo::new(&vhost).url(&topos.url()).spec(&QUORUM.spec()).timeout(Duration::from_secs(300));
    let mut fixture = Fixture::of(vhost, topo, QUORUM);
    let proxy = fixture.through_node(&topos);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let full = AtomicBool::new(false);
    let what = format!("{victim:?} dies after request {after}, by {transport}");
    let (mut outputs, was_in_time) = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.keep_on(RATE, &full));
        // Also when the run fails the test: the publisher would go on for ever.
        let _over = Over(&full);
        let mut running = fixture.start(transport);
        until("so many requests", || (proxy.count(&writes()) >= after || running.is_over()).then_some(()));
        let was_in_time = !running.is_over();
        match victim {
            Victim::Leader => third.kill(),
            Victim::Topos => topos.kill(),
        }
        let mut outputs = vec![running.wait()];
        println!("{what}:\n{}", outputs[0]);
        if outputs[0].code != Some(0) {
            // By the next node, as one would.
            fixture.directly();
            outputs.push(fixture.migrate(transport, &LOCK));
        }
        full.store(true, Ordering::Relaxed);
        publishing.join().unwrap();
        (outputs, was_in_time)
    });
    assert!(was_in_time, "{what}: it was over before");
    fixture.directly();
    publisher.expect_all_taken();
    if outputs.last().unwrap().says("none of its members is running") {
        // A queue that was deleted by halves: what topo says is done, and then it goes on.
        fixture.vhost.http().delete(&fixture.vhost.path("queues", &[Q])).expect_status(204);
        outputs.push(fixture.migrate(transport, &LOCK));
        println!("{what}: {Q} was deleted by halves");
    }
    let last = outputs.last().unwrap();
    if last.code != Some(0) {
        // Up to 3.x a queue whose declaration was cut off by the death of a node never gets a leader, and the broker says
        // that it is there. Then topo says so, and everything is still held.
        assert!(!since(4, 0) && last.says("accepts no messages: it has no leader"), "{what}\n{}\n{last}", outputs[0]);
        let held = ["q.topo.drained", "q.topo.hold"].into_iter().flat_map(|queue| emptied(&fixture.vhost, queue));
        let doubled = twice(held, publisher.published(), &what);
        println!("{what}: {Q} has no leader; {} messages are held, {doubled} twice", publisher.published());
        return;
    }
    let doubled = twice(emptied(&fixture.vhost, Q), publisher.published(), &what);
    assert!(doubled <= PREFETCH, "{doubled} came twice: {what}");
    fixture.expect_migrated(&what);
    println!("{what}: {} runs, {} messages, {doubled} twice", outputs.len(), publisher.published());
}

/// In the long form only: a cluster takes half a minute to start, and all of a small machine.
#[test]
fn a_node_that_dies_loses_nothing() {
    if !there_are_quorums() || !is_long() {
        return;
    }
    let mut random = Random::new(seed());
    let victims = [Victim::Leader, Victim::Topos];
    let cases = victims.into_iter().flat_map(|victim| TRANSPORTS.map(|transport| (victim, transport)));
    for (victim, transport) in cases {
        // Some 40 requests it is when nobody dies.
        let after = 4 + usize::try_from(random.next() % 24).unwrap();
        one_dies(victim, transport, after);
    }
}
