//! Tests an AMQP URL of a different broker than the management URL, for example through a tunnel. topo changes neither
//! broker.

use super::super::ownership::objects;
use super::fixture::{Fixture, Q, TTL, declare_old, expect_each_once};
use super::traffic::{Publisher, emptied};
use crate::support::{Node, Options, Vhost};

#[test]
fn queue_of_another_broker_is_not_changed() {
    let fixture = Fixture::new("here", TTL);
    let other = Node::start(Options::default());
    // Both brokers have the same names. A queue that is empty on one broker contains messages on the other.
    let there = Vhost::create(&other, fixture.vhost.name().to_owned());
    declare_old(&there.amqp(), TTL, &[]);
    let mut publisher = Publisher::new(&there);
    publisher.fill(7);
    there.until_counted(Q, 7);
    let before = objects(&there);
    let url = format!("--amqp-url=amqp://127.0.0.1:{}", other.amqp_port());
    // The error contains the name of the cluster. The other transport would work.
    fixture.migrate("amqp", &[&url]).expect_code(3).expect_text("but the management API belongs to");
    fixture.expect_as_before(&"by name");
    // Cluster names can be equal, and a proxy may omit them.
    let overview = fixture.vhost.http().get("/api/overview").expect_status(200);
    other.ctl(["set_cluster_name", overview["cluster_name"].as_str().unwrap()]);
    let output = fixture.migrate("auto", &[&url]).expect_code(1).expect_text("nothing was changed");
    let context = output.expect_text("is not the broker at").expect_text("--transport shovel");
    fixture.expect_as_before(&context);
    assert_eq!(objects(&there), before, "{context}");
    expect_each_once(emptied(&there, Q), 7, &context);
    // No leftover object prevents the correct run.
    let output = fixture.migrate("amqp", &[]).expect_code(0);
    fixture.expect_migrated(&output);
}
