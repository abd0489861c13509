//! Tests messages at their delivery limit, which another return would drop.

use std::collections::BTreeSet;

use super::fixture::{Conversion, Fixture, Q, QUORUM, supports_quorum_queues};
use super::traffic::{Publisher, emptied};
use crate::support::{Argument, until};

const MESSAGES: u16 = 300;
const LIMIT: u16 = 2;

/// A killed transport returns at most one message that is in flight at its limit.
#[test]
fn killed_run_loses_at_most_one_message_at_its_limit() {
    if !supports_quorum_queues() {
        return;
    }
    let conversion = Conversion { new: "type: quorum, maxLength: 2000000, maxRetries: 2", ..QUORUM };
    let fixture = Fixture::with("limit", conversion, &[("x-delivery-limit", Argument::LongLongInt(LIMIT.into()))]);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES.into());
    for _ in 0..LIMIT {
        until("all messages", || (fixture.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
        drop(fixture.amqp.hold(Q, MESSAGES));
    }
    until("all messages to return", || (fixture.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    let running = fixture.start("amqp");
    let is_there = || !fixture.vhost.queue("q.topo.drained").is_null();
    until("the second holding queue", || is_there().then_some(()));
    until("some moved messages", || (fixture.amqp.ready("q.topo.drained") > 10).then_some(()));
    running.signal("KILL");
    assert_eq!(running.wait().code, None);
    fixture.unlock();
    let output = fixture.migrate("amqp", &["--lock-timeout=2m"]);
    let context = output.to_string();
    assert_eq!(output.code, Some(0), "{context}");
    fixture.expect_migrated(&context);
    let left: BTreeSet<usize> = emptied(&fixture.vhost, Q).into_iter().collect();
    assert!(left.len() + 1 >= MESSAGES.into(), "{} of {MESSAGES} are left: {context}", left.len());
}

/// Redelivered messages move one by one, and all other messages at full speed.
#[test]
fn undelivered_messages_move_in_parallel() {
    if !supports_quorum_queues() {
        return;
    }
    let fixture = Fixture::new("limit", QUORUM);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES.into());
    until("all messages", || (fixture.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    drop(fixture.amqp.hold(Q, 5));
    until("all messages to return", || (fixture.amqp.ready(Q) == u32::from(MESSAGES)).then_some(()));
    let output = fixture.migrate("amqp", &[]);
    assert_eq!(output.code, Some(0), "{output}");
    fixture.expect_migrated(&output);
    let left = emptied(&fixture.vhost, Q);
    assert_eq!(left.len(), usize::from(MESSAGES), "{output}");
    assert_eq!(left.iter().copied().collect::<BTreeSet<_>>().len(), left.len(), "{output}");
}
