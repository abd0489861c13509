//! Tests the requests of a plan, and the time to confirm that quorum queues are empty.

use std::time::Instant;

use serde_json::json;

use crate::scenarios::make_live;
use crate::support::{Fault, Node, Proxy, Topo, Vhost, gets};

#[test]
fn plan_requests_only_lists() {
    let vhost = Node::shared().vhost("lists");
    let proxy = Proxy::to(Node::shared());
    let queue = |number: usize| {
        let ttl = if number.is_multiple_of(2) { "messageTtl: 1h, " } else { "" };
        format!("  q{number:02}: {{type: classic, {ttl}bindings: [{{exchange: amq.topic, routingKey: k{number}}}]}}\n")
    };
    let queues: String = (0..60).map(queue).collect();
    let topo = Topo::new(&vhost).through(&proxy).spec(&format!("queues:\n{queues}"));
    topo.run(["apply", "-y"]).expect_code(0);
    // Every second queue differs, so the plan needs counts and consumers.
    topo.rewrite(&format!("queues:\n{}", queues.replace("1h", "2h")));
    proxy.reset();
    topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text("30 objects in conflict");
    let requests = proxy.requests();
    assert_eq!(proxy.count(&gets()), requests.len());
    assert!(requests.len() <= 10, "{requests:#?}");
    assert_eq!(proxy.count(&gets().path("/api/definitions")), 0);
    // The path is `/api/KIND/VHOST` or shorter.
    let deep = requests.iter().find(|request| request.path.split('?').next().unwrap().split('/').count() > 4);
    assert_eq!(deep, None, "a request for one object");
}

pub(super) fn five_quorum_queues(vhost: &Vhost<'_>) -> Topo {
    let arguments = json!({"x-queue-type": "quorum"});
    let queues: Vec<_> =
        (1..6).map(|number| json!({"name": format!("own.q{number}"), "arguments": arguments})).collect();
    make_live(vhost, &json!({"queues": queues}));
    Topo::new(vhost).spec("owns: [\"own.*\"]\nqueues: {other: {type: classic}}\n")
}

#[test]
fn deletions_of_quorum_queues_wait_in_parallel() {
    let vhost = Node::shared().vhost("ticks");
    let topo = five_quorum_queues(&vhost);
    let started = Instant::now();
    topo.run(["apply", "-y", "--prune", "--allow", "mass-delete"]).expect_code(0);
    let took = started.elapsed();
    assert_eq!(vhost.names("queues"), ["other"]);
    assert!(
        took >= crate::live::transport::fixture::intervals_of(vhost.node()).two_ticks(),
        "two ticks must pass: {took:?}"
    );
    println!("five empty quorum queues were deleted in {took:.1?}");
}

#[test]
fn message_during_the_wait_for_other_queues_is_detected() {
    let node = Node::shared();
    let vhost = node.vhost("late-message");
    let topo = five_quorum_queues(&vhost);
    let amqp = vhost.amqp();
    let publish = move || amqp.fill("own.q3", 1);
    // The plans read the totals too; the guard makes the fourth read. Deletions run from own.q5 to own.q1.
    let reads = gets().path("enable_queue_totals").nth(4);
    let proxy = Proxy::to(node).on(reads, Fault::Meanwhile(Box::new(publish)));
    let output = topo.through(&proxy).run(["apply", "-y", "--prune", "--allow", "mass-delete"]).expect_code(4);
    assert!(output.to_string().contains("own.q3"), "{output}");
    assert_eq!(vhost.names("queues"), ["other", "own.q1", "own.q2", "own.q3"]);
    assert_eq!(vhost.amqp().ready("own.q3"), 1);
}
