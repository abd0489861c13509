//! Messages at their delivery limit: one that goes back once more is gone.

use std::collections::BTreeSet;

use super::stage::{Conversion, Q, QUORUM, Stage, there_are_quorums};
use super::traffic::{Publisher, emptied};
use crate::support::{Argument, until};

const MESSAGES: u16 = 300;
const LIMIT: u16 = 2;

/// A transport that is killed gives back what it had under way: no more than one of them.
#[test]
fn a_run_that_is_killed_loses_one_message_at_its_limit_at_most() {
    if !there_are_quorums() {
        return;
    }
    let conversion = Conversion { new: "type: quorum, maxLength: 2000000, maxRetries: 2", ..QUORUM };
    let stage = Stage::with("limit", conversion, &[("x-delivery-limit", Argument::LongLongInt(LIMIT.into()))]);
    let mut publisher = Publisher::new(&stage.vhost);
    publisher.fill(MESSAGES.into());
    for _ in 0..LIMIT {
        until("all of them", || (stage.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
        drop(stage.amqp.hold(Q, MESSAGES));
    }
    until("all of them back", || (stage.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    let running = stage.start("amqp");
    let is_there = || !stage.vhost.queue("q.topo.drained").is_null();
    until("the second holding queue", || is_there().then_some(()));
    until("some that are moved", || (stage.amqp.ready("q.topo.drained") > 10).then_some(()));
    running.signal("KILL");
    assert_eq!(running.wait().code, None);
    stage.unlock();
    let output = stage.migrate("amqp", &["--lock-timeout=2m"]);
    let context = output.to_string();
    assert_eq!(output.code, Some(0), "{context}");
    stage.expect_migrated(&context);
    let left: BTreeSet<usize> = emptied(&stage.vhost, Q).into_iter().collect();
    assert!(left.len() + 1 >= MESSAGES.into(), "{} of {MESSAGES} are left: {context}", left.len());
}

/// What was delivered before is moved one by one, and all else as fast as ever.
#[test]
fn what_was_never_delivered_is_moved_many_at_once() {
    if !there_are_quorums() {
        return;
    }
    let stage = Stage::new("limit", QUORUM);
    let mut publisher = Publisher::new(&stage.vhost);
    publisher.fill(MESSAGES.into());
    until("all of them", || (stage.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    drop(stage.amqp.hold(Q, 5));
    until("all of them back", || (stage.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    let output = stage.migrate("amqp", &[]);
    assert_eq!(output.code, Some(0), "{output}");
    stage.expect_migrated(&output);
    let left = emptied(&stage.vhost, Q);
    assert_eq!(left.len(), usize::from(MESSAGES), "{output}");
    assert_eq!(left.iter().copied().collect::<BTreeSet<_>>().len(), left.len(), "{output}");
}
