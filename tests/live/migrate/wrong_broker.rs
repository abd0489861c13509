//! An AMQP address that leads to another broker than the management URL, as behind a tunnel: nothing is touched on either.

use super::super::ownership::objects;
use super::fixture::{Fixture, Q, TTL, declare_old, expect_each_once};
use super::traffic::{Publisher, emptied};
use crate::support::{Node, Options, Vhost};

#[test]
fn a_queue_of_another_broker_is_left_alone() {
    let fixture = Fixture::new("here", TTL);
    let other = Node::start(Options::default());
    // The same names, and what is empty here is not empty there.
    let there = Vhost::create(&other, fixture.vhost.name().to_owned());
    declare_old(&there.amqp(), TTL, &[]);
    let mut publisher = Publisher::new(&there);
    publisher.fill(7);
    there.until_counted(Q, 7);
    let before = objects(&there);
    let url = format!("--amqp-url=amqp://127.0.0.1:{}", other.amqp_port());
    // It says of which cluster it is; the other transport would do.
    fixture.migrate("amqp", &[&url]).expect_code(3).expect_text("but the management API belongs to");
    fixture.expect_as_before(&"by name");
    // A name can be the same, and something in between may not pass it on.
    let overview = fixture.vhost.http().get("/api/overview").expect_status(200);
    other.ctl(["set_cluster_name", overview["cluster_name"].as_str().unwrap()]);
    let output = fixture.migrate("auto", &[&url]).expect_code(1).expect_text("nothing was changed");
    let context = output.expect_text("is not the broker at").expect_text("--transport shovel");
    fixture.expect_as_before(&context);
    assert_eq!(objects(&there), before, "{context}");
    expect_each_once(emptied(&there, Q), 7, &context);
    // Nothing was left that keeps it from being done right.
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
}
