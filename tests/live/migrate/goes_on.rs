//! What a run or the next one finds changed in the middle: the broker was restarted, the new queue is gone, the spec is another.

use std::collections::BTreeSet;
use std::time::Duration;

use super::alarm::{EXCHANGED, PREPARED};
use super::killed::killed_before;
use super::stage::{Conversion, Q, Stage, TTL, declare_old, twice};
use super::traffic::{Publisher, emptied};
use crate::support::node::Options;
use crate::support::{Fault, Node, Topo, puts, until, writes};

const MESSAGES: usize = 20_000;
/// What a mover may have under way.
const PREFETCH: usize = 1_000;

/// Every connection is lost, and nothing answers for seconds.
fn restart(node: &Node) {
    node.ctl(["stop_app"]);
    node.ctl(["start_app"]);
}

#[test]
fn a_broker_that_is_restarted_in_the_middle_loses_nothing() {
    let node = Node::start(Options::default());
    for (mover, begins) in [("amqp", PREPARED), ("amqp", EXCHANGED), ("shovel", PREPARED), ("shovel", EXCHANGED)] {
        let vhost = node.vhost("restarted");
        declare_old(&vhost.amqp(), TTL, &[]);
        let topo = Topo::new(&vhost).spec(&TTL.spec()).timeout(Duration::from_secs(200));
        let mut stage = Stage::of(vhost, topo, TTL);
        let proxy = stage.through_node(&node);
        Publisher::new(&stage.vhost).fill(MESSAGES);
        let running = stage.start(mover);
        until("messages under way", || (proxy.count(&writes()) >= begins).then_some(()));
        restart(&node);
        let cut = running.wait();
        println!("by {mover}, after {begins} requests: {:?}", cut.code);
        // Mostly it waits until the broker is there again; else it undoes it, or says that it stands halfway.
        assert!(matches!(cut.code, Some(0 | 1 | 4)), "{cut}");
        assert!(cut.code != Some(4) || cut.says("Cut short: the migration of queue q"), "{cut}");
        let again = stage.migrate(mover, &["--lock-timeout=2m"]).expect_code(0);
        stage.expect_migrated(&again);
        let doubled = twice(emptied(&stage.vhost, Q), MESSAGES, &again);
        assert!(doubled <= PREFETCH, "{doubled} came twice: {again}");
    }
}

/// What had come back goes with it, by whoever deletes it. What had not is held until it is there again.
#[test]
fn a_new_queue_that_is_deleted_while_messages_come_back_keeps_the_rest() {
    let stage = Stage::new("deleted-late", TTL);
    Publisher::new(&stage.vhost).fill(MESSAGES);
    let (http, queue, amqp) = (stage.vhost.http(), stage.vhost.path("queues", &[Q]), stage.vhost.amqp());
    let running = stage.start("amqp");
    until("a message that came back", || (stage.is_new() && amqp.ready(Q) > 0).then_some(()));
    assert!(http.delete(&queue).is_success());
    let output = running.wait();
    assert!(matches!(output.code, Some(0 | 4)), "{output}");
    let again = stage.migrate("amqp", &["--lock-timeout=2m"]).expect_code(0);
    let context = format!("{output}\n{again}");
    stage.expect_migrated(&context);
    let left: BTreeSet<usize> = emptied(&stage.vhost, Q).into_iter().collect();
    let deleted = MESSAGES - left.len();
    println!("{deleted} of {MESSAGES} were deleted");
    assert!(deleted > 0 && deleted < MESSAGES && left == (deleted..MESSAGES).collect(), "{deleted}: {context}");
}

#[test]
fn another_spec_after_the_queue_was_exchanged_is_met_by_another_migration() {
    let (mut stage, proxy) = Stage::new("another-spec", TTL).through();
    let mut publisher = Publisher::new(&stage.vhost);
    publisher.fill(1_000);
    proxy.add(puts().path("/q.topo.back"), Fault::HangBefore);
    assert!(killed_before(1, &proxy, stage.start("amqp")));
    assert!(stage.is_new());
    stage.unlock();
    stage.directly();
    let third = Conversion { new: "type: classic, messageTtl: 3h", becomes: ("x-message-ttl", "10800000"), ..TTL };
    stage.topo.rewrite(&third.spec());
    stage.conversion = third;
    let words = Stage::apply("amqp");
    let plan = words[1..].iter().map(String::as_str).filter(|word| *word != "-y");
    stage.topo.run(["plan"].into_iter().chain(plan)).expect_code(0).expect_text("1 migration to finish");
    let output = stage.migrate("amqp", &[]).expect_code(0);
    stage.expect_migrated(&output);
    let doubled = twice(emptied(&stage.vhost, Q), publisher.published(), &output);
    assert!(doubled <= PREFETCH, "{doubled} came twice: {output}");
}
