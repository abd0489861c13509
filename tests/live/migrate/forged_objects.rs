//! Tests objects that imitate those of a migration and would drop or copy messages. The plan refuses to use them.

use super::fixture::{Fixture, Q, TTL};
use super::traffic::{Publisher, emptied};
use crate::support::{Argument, Fault, puts, text};

const MESSAGES: usize = 50;
const DRAINED: &str = "q.topo.drained";

/// Returns the argument that marks the objects of a migration.
fn mark() -> (&'static str, Argument) {
    ("x-topo-migrates", text(Q))
}

#[track_caller]
fn expect_refused(fixture: &Fixture<'_>, difference: &str) {
    let refused = fixture.migrate("amqp", &[]).expect_code(3);
    let context = refused.expect_text("differs from the object that topo declares").expect_text(difference);
    fixture.expect_as_before(&context);
}

#[test]
fn holding_queue_with_a_ttl_is_refused() {
    let fixture = Fixture::new("forged", TTL);
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let ttl = ("x-message-ttl", Argument::LongLongInt(1));
    fixture.amqp.declare_queue(DRAINED, &[("x-queue-type", text("classic")), mark(), ttl]).unwrap();
    let fixture = fixture.remembered();
    expect_refused(&fixture, "it sets x-message-ttl to 1");
    assert_eq!(fixture.amqp.ready(Q) as usize, MESSAGES);
    assert_eq!(fixture.vhost.http().delete(&fixture.vhost.path("queues", &[DRAINED])).status, 204);
    let fixture = fixture.remembered();
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
    assert_eq!(emptied(&fixture.vhost, Q).len(), MESSAGES, "{output}");
}

/// An exchange with an additional destination would copy every returned message.
#[test]
fn exchange_with_another_destination_is_refused() {
    let fixture = Fixture::new("copies", TTL);
    let back = "q.topo.back";
    fixture.amqp.declare_exchange(back, "fanout", &[mark(), ("alternate-exchange", text(back))]).unwrap();
    fixture.amqp.declare_queue("spy", &[("x-queue-type", text("classic"))]).unwrap();
    fixture.amqp.bind_queue(back, "spy", "", crate::support::NONE);
    let fixture = fixture.remembered();
    expect_refused(&fixture, "it also routes to queue spy");
}

/// topo neither resumes nor rolls back an apparent migration whose holding queue drops messages.
#[test]
fn forged_interrupted_migration_is_refused() {
    let fixture = Fixture::new("unfinished", TTL);
    let limit = ("x-max-length", Argument::LongLongInt(1));
    fixture.amqp.declare_queue("q.topo.hold", &[("x-queue-type", text("classic")), mark(), limit]).unwrap();
    let fixture = fixture.remembered();
    expect_refused(&fixture, "it sets x-max-length to 1");
}

#[test]
fn missing_messages_exit_with_4() {
    let (fixture, proxy) = Fixture::new("purged", TTL).through();
    let mut publisher = Publisher::new(&fixture.vhost);
    publisher.fill(MESSAGES);
    let (http, contents) = (fixture.vhost.http(), fixture.vhost.path("queues", &[DRAINED, "contents"]));
    let purge = Fault::Meanwhile(Box::new(move || assert_eq!(http.delete(&contents).status, 204)));
    proxy.add(puts().path("/q.topo.back"), purge);
    let output = fixture.migrate("amqp", &[]).expect_code(4);
    let output = output.expect_error("50 messages did not return");
    assert!(fixture.is_new(), "{output}");
}
