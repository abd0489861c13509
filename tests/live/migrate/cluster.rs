//! Tests that one node of a three-node cluster dies during a migration of replicated queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, Q, QUORUM, TRANSPORTS, declare_old, duplicates, since, supports_quorum_queues};
use super::traffic::{Publisher, emptied};
use crate::support::random::is_long;
use crate::support::{Amqp, Node, Random, SetOnDrop, Topo, seed, until, writes};

/// The number of messages in the queue before the migration.
const MESSAGES: usize = 1_000;
/// The number of publishes per second during the migration.
const RATE: usize = 100;
/// The in-flight limit of a transport.
const PREFETCH: usize = 1_000;
/// The lock of a dead node expires after a minute.
const LOCK: [&str; 2] = ["--lock-timeout", "2m"];

/// The node that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The leader of the old queue, which has no client connections.
    Leader,
    /// The node that topo uses.
    Topos,
}

/// Kills one node after this number of writes by topo.
fn kill_one_node(victim: Victim, transport: &str, after: usize) {
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
        let _stop = SetOnDrop([&full]);
        let mut running = fixture.start(transport);
        until("the specified number of requests", || {
            (proxy.count(&writes()) >= after || running.is_over()).then_some(())
        });
        let was_in_time = !running.is_over();
        match victim {
            Victim::Leader => third.kill(),
            Victim::Topos => topos.kill(),
        }
        let mut outputs = vec![running.wait()];
        println!("{what}:\n{}", outputs[0]);
        if outputs[0].code != Some(0) {
            // The next run uses a different node.
            fixture.directly();
            outputs.push(fixture.migrate(transport, &LOCK));
        }
        full.store(true, Ordering::Relaxed);
        publishing.join().unwrap();
        (outputs, was_in_time)
    });
    assert!(was_in_time, "{what}: the migration ended before the kill");
    fixture.directly();
    publisher.expect_all_taken();
    if outputs.last().unwrap().says("none of its members is running") {
        // If the queue is partially deleted, follows topo's instruction and resumes.
        fixture.vhost.http().delete(&fixture.vhost.path("queues", &[Q])).expect_status(204);
        outputs.push(fixture.migrate(transport, &LOCK));
        println!("{what}: {Q} was deleted partially");
    }
    let last = outputs.last().unwrap();
    if last.code != Some(0) {
        // Up to 3.x, a queue whose declaration is interrupted by the death of a node has no leader, but exists. topo
        // reports it and keeps all messages in the holding queues.
        assert!(
            !since(4, 0) && last.says("is not accepting messages: it has no leader"),
            "{what}\n{}\n{last}",
            outputs[0]
        );
        let held = ["q.topo.drained", "q.topo.hold"].into_iter().flat_map(|queue| emptied(&fixture.vhost, queue));
        let duplicated = duplicates(held, publisher.published(), &what);
        println!("{what}: {Q} has no leader; {} messages are held, {duplicated} duplicates", publisher.published());
        return;
    }
    let duplicated = duplicates(emptied(&fixture.vhost, Q), publisher.published(), &what);
    assert!(duplicated <= PREFETCH, "{duplicated} duplicates: {what}");
    fixture.expect_migrated(&what);
    println!("{what}: {} runs, {} messages, {duplicated} duplicates", outputs.len(), publisher.published());
}

/// Runs only in the long form, because a cluster takes half a minute to start and uses all CPUs of a small machine.
#[test]
fn death_of_a_node_loses_no_message() {
    if !supports_quorum_queues() || !is_long() {
        return;
    }
    let mut random = Random::new(seed());
    let victims = [Victim::Leader, Victim::Topos];
    let cases = victims.into_iter().flat_map(|victim| TRANSPORTS.map(|transport| (victim, transport)));
    for (victim, transport) in cases {
        // An uninterrupted run sends about 40 requests.
        let after = 4 + usize::try_from(random.next() % 24).unwrap();
        kill_one_node(victim, transport, after);
    }
}
