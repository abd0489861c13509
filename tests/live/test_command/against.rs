//! Tests `topo test --against live` and `--against planned`.

use serde_json::{Value, json};

use super::cases;
use crate::support::{Node, Topo, until};

const SPEC: &str = "exchanges: {orders: {type: topic}, events: {external: true}}
queues:
  work: {type: quorum, deadLetter: dead, retry: {delays: [5s, 30s]}, bindings: [{exchange: orders, routingKey: 'order.*'}, {exchange: events, routingKey: paid}]}
deadLetterQueues: {dead: {type: classic}}
";

const TESTS: &str = "version: 1
spec: topology.yaml
tests:
  order: {publish: {exchange: orders, routingKey: order.paid}, to: [work]}
  refund: {publish: {exchange: orders, routingKey: refund.paid}, publisher: returned}
  event: {publish: {exchange: events, routingKey: paid}, to: [work]}
  retries: {publish: {queue: work}, workers: {work: fail}, attempts: {work: [0s, 5s, 35s]}, ends: {dead: rejected}}
  kept: {publish: {queue: dead}, ends: {dead: waiting}}
";

/// Returns the name and the result of each case.
fn results(document: &Value) -> Vec<(&str, &str)> {
    cases(document).iter().map(|case| (case["name"].as_str().unwrap(), case["result"].as_str().unwrap())).collect()
}

#[test]
fn cases_run_against_live_and_planned_topologies() {
    let node = Node::shared();
    let vhost = node.vhost("against");
    let topo = Topo::new(&vhost).spec(SPEC).file("topology.test.yaml", TESTS);
    let run = |against: &str, code| {
        let output = topo.run(["test", "--against", against, "--format", "json"]).expect_code(code);
        let document = output.test_results();
        let shown = &document["cases"][0];
        assert_eq!((&shown["against"]["topology"], &shown["mode"]), (&against.into(), &"offline".into()), "{output}");
        assert_eq!(shown["brokerVersion"], node.version(), "{output}");
        document
    };
    // The external exchange does not exist yet, so the plan is blocked.
    let blocked = topo.run(["test", "--against", "planned"]).expect_code(1).expect_error("the plan is blocked");
    blocked.expect_text("`external: true`, but does not exist");
    let amqp = vhost.amqp();
    amqp.declare_exchange("events", "direct", &[]).unwrap();
    // Before the apply, the exchange and the queue do not exist. After it, all cases pass.
    let all_failed = run("live", 1);
    assert!(results(&all_failed).iter().all(|(_, result)| *result == "failed"), "{all_failed:#}");
    let names = || ["exchanges", "queues"].map(|kind| vhost.names(kind));
    let before = names();
    run("planned", 0);
    assert_eq!(names(), before, "nothing was changed");
    topo.run(["apply", "-y"]).expect_code(0);
    run("live", 0);
    // A binding that the spec does not declare stays after the plan.
    vhost
        .http()
        .post(&vhost.path("bindings", &["e", "orders", "q", "work"]), &json!({"routing_key": "refund.#"}))
        .expect_status(201);
    until("the binding in the list", || (run_refund(&topo) == Some(1)).then_some(()));
    for against in ["live", "planned"] {
        let document = run(against, 1);
        let expected =
            [("order", "passed"), ("refund", "failed"), ("event", "passed"), ("retries", "passed"), ("kept", "passed")];
        assert_eq!(results(&document), expected, "{document:#}");
        assert_eq!(document["cases"][1]["mismatches"][0]["actual"], "confirmed", "{document:#}");
    }
    // A policy of the broker applies as well.
    let body = json!({"pattern": "^dead$", "apply-to": "queues", "definition": {"message-ttl": 1000}});
    vhost.http().put(&vhost.path("policies", &["ttl"]), &body).expect_status(201);
    let document = run("live", 1);
    assert_eq!(results(&document)[4], ("kept", "failed"), "{document:#}");
    // No messages were published.
    assert!(!vhost.names("queues").iter().any(|name| amqp.ready(name) > 0));
}

/// Returns the exit code of the case that fails because of the new binding.
fn run_refund(topo: &Topo) -> Option<i32> {
    topo.run(["test", "--against", "live", "--run", "refund"]).code
}

/// A user who may only read the vhost can test the live topology.
#[test]
fn live_topology_requires_only_read_access() {
    let node = Node::shared();
    let vhost = node.vhost("against-reader");
    let topo = Topo::new(&vhost).spec(SPEC).file("topology.test.yaml", TESTS);
    vhost.amqp().declare_exchange("events", "direct", &[]).unwrap();
    topo.run(["apply", "-y"]).expect_code(0);
    let reader = node.user("monitoring").may(&vhost, "^$", "^$", ".*");
    let reading = Topo::new(&vhost).user(&reader).spec(SPEC).file("topology.test.yaml", TESTS);
    reading.run(["test", "--against", "live"]).expect_code(0).expect_text("5 cases: 5 passed");
    reading.run(["test", "--against", "planned"]).expect_code(0).expect_text("5 cases: 5 passed");
    let stranger = node.user("monitoring");
    let other = Topo::new(&vhost).user(&stranger).spec(SPEC).file("topology.test.yaml", TESTS);
    other.run(["test", "--against", "live"]).expect_code(1);
}
