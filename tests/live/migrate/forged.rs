//! Objects that look as if a migration had made them, and swallow or copy what they hold: the plan refuses to use them.

use super::stage::{Q, Stage, TTL};
use super::traffic::{Publisher, emptied};
use crate::support::{Argument, Fault, puts, text};

const MESSAGES: usize = 50;
const DRAINED: &str = "q.topo.drained";

/// The mark of all that a migration declares.
fn mark() -> (&'static str, Argument) {
    ("x-topo-migrates", text(Q))
}

#[track_caller]
fn expect_refused(stage: &Stage<'_>, difference: &str) {
    let refused = stage.migrate("amqp", &[]).expect_code(3);
    let context = refused.expect_text("it differs from what topo declares").expect_text(difference);
    stage.expect_as_before(&context);
}

#[test]
fn a_holding_queue_with_a_ttl_is_not_used() {
    let stage = Stage::new("forged", TTL);
    let mut publisher = Publisher::new(&stage.vhost);
    publisher.fill(MESSAGES);
    let ttl = ("x-message-ttl", Argument::LongLongInt(1));
    stage.amqp.declare_queue(DRAINED, &[("x-queue-type", text("classic")), mark(), ttl]).unwrap();
    let stage = stage.remembered();
    expect_refused(&stage, "it sets x-message-ttl to 1");
    assert_eq!(stage.amqp.ready(Q) as usize, MESSAGES);
    assert_eq!(stage.vhost.http().delete(&stage.vhost.path("queues", &[DRAINED])).status, 204);
    let stage = stage.remembered();
    let output = stage.migrate("amqp", &[]).expect_code(0);
    stage.expect_migrated(&output);
    assert_eq!(emptied(&stage.vhost, Q).len(), MESSAGES, "{output}");
}

/// One that also leads to another queue copies every message that comes back.
#[test]
fn an_exchange_that_also_leads_elsewhere_is_not_used() {
    let stage = Stage::new("copies", TTL);
    let back = "q.topo.back";
    stage.amqp.declare_exchange(back, "fanout", &[mark(), ("alternate-exchange", text(back))]).unwrap();
    stage.amqp.declare_queue("spy", &[("x-queue-type", text("classic"))]).unwrap();
    stage.amqp.bind_queue(back, "spy", "", crate::support::NONE);
    let stage = stage.remembered();
    expect_refused(&stage, "it also leads to queue spy");
}

/// What looks like an interrupted migration is not finished, and not rolled back, by a queue that drops messages.
#[test]
fn a_forged_interrupted_migration_is_refused() {
    let stage = Stage::new("unfinished", TTL);
    let limit = ("x-max-length", Argument::LongLongInt(1));
    stage.amqp.declare_queue("q.topo.hold", &[("x-queue-type", text("classic")), mark(), limit]).unwrap();
    let stage = stage.remembered();
    expect_refused(&stage, "it sets x-max-length to 1");
}

#[test]
fn messages_that_do_not_come_back_are_exit_code_4() {
    let (stage, proxy) = Stage::new("purged", TTL).through();
    let mut publisher = Publisher::new(&stage.vhost);
    publisher.fill(MESSAGES);
    let (http, contents) = (stage.vhost.http(), stage.vhost.path("queues", &[DRAINED, "contents"]));
    let purge = Fault::Meanwhile(Box::new(move || assert_eq!(http.delete(&contents).status, 204)));
    proxy.add(puts().path("/q.topo.back"), purge);
    let output = stage.migrate("amqp", &[]).expect_code(4);
    let output = output.expect_error("50 messages did not come back");
    assert!(stage.is_new(), "{output}");
}
