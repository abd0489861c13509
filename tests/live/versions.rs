//! What `topo validate --broker-version` calls refused is what a broker of that version refuses, and nothing else is.

use serde_json::{Value, json};

use crate::support::{Fault, Node, Options, Proxy, Topo, Vhost, gets};

/// Objects, one spec each, of which some versions refuse some; and how each is written over HTTP.
const CASES: &[(&str, &str)] = &[
    ("queues", "q: {type: classic}"),
    ("queues", "q: {type: quorum, messageTtl: 1h}"),
    ("queues", "q: {type: quorum, deadLetterStrategy: at-least-once}"),
    ("queues", "q: {type: quorum, queueLeaderLocator: balanced}"),
    ("queues", "q: {type: quorum, consumerTimeout: 1h}"),
    ("queues", "q: {type: quorum, delayedRetryType: failed, delayedRetryMin: 5s}"),
    ("queues", "q: {type: quorum, maxInMemoryLength: 5, deliveryLimit: 3}"),
    ("queues", "q: {type: stream, maxAge: 7D}"),
    ("queues", "q: {type: stream, streamFilterSizeBytes: 32}"),
    ("queues", "q: {type: classic, queueMode: lazy}"),
    ("queues", "q: {type: classic, queueVersion: 1}"),
    ("queues", "q: {type: classic, queueVersion: 2}"),
    ("queues", "q: {type: classic, queueLeaderLocator: client-local}"),
    ("queues", "q: {type: classic, queueMasterLocator: min-masters}"),
    ("queues", "q: {type: classic, arguments: {x-mesage-ttl: 5}}"),
    ("exchanges", "q: {type: topic, arguments: {x-foo: bar}}"),
    ("policies", "q: {pattern: q, definition: {ha-mode: all}}"),
    ("policies", "q: {pattern: q, definition: {ha-mode: all, ha-sync-mode: automatic}}"),
    ("policies", "q: {pattern: q, definition: {max-lenght: 5}}"),
    ("policies", "q: {pattern: q, definition: {queue-mode: lazy}}"),
    ("policies", "q: {pattern: q, applyTo: quorum_queues, definition: {maxLength: 5}}"),
];

/// What it would be sent as: the desired object of a plan from nothing, which is no part of what is tested here.
fn body(kind: &str, spec: &str) -> Value {
    let line = ["plan", "--against", "empty", "--format", "json"];
    let plan = Topo::offline().spec(spec).run(line).expect_code(0).plan();
    let topology = &plan["vhosts"][0]["wanted"]["topology"];
    let mut body = topology[kind]["q"].clone();
    assert!(body.is_object(), "{topology:#}");
    body.as_object_mut().unwrap().remove("name");
    body
}

fn is_called_refused(spec: &str, version: &str) -> bool {
    let output = Topo::offline().spec(spec).run(["validate", "--broker-version", version, "--format", "json"]);
    let refused = output.json()["diagnostics"].as_array().unwrap().iter().any(|it| it["severity"] == "error");
    output.expect_code(i32::from(refused));
    refused
}

#[test]
fn what_validate_calls_refused_is_refused() {
    let node = Node::shared();
    let vhost = node.vhost("refused");
    let mut wrong = Vec::new();
    for (kind, text) in CASES {
        let spec = format!("{kind}:\n  {text}\n");
        let path = vhost.path(kind, &["q"]);
        let answer = vhost.http().put(&path, &body(kind, &spec));
        assert!([201, 400].contains(&answer.status), "{text}: {answer:?}");
        let _ = vhost.http().send("DELETE", &path, None);
        let is_refused = answer.status == 400;
        if is_called_refused(&spec, node.version()) != is_refused {
            wrong.push(format!("{text}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} is called otherwise:\n{}", node.version(), wrong.join("\n"));
}

const TRANSIENT: &str = "queues: {tmp: {type: classic, durable: false}}\n";

/// The state of a deprecated feature is read, so that a plan blocks where the broker refuses, and warns where it does not.
#[test]
fn a_transient_queue_is_planned_as_this_broker_permits() {
    let node = Node::shared();
    let vhost = node.vhost("transient");
    let path = vhost.path("queues", &["by-hand"]);
    let answer = vhost.http().put(&path, &json!({"durable": false}));
    let output = Topo::new(&vhost).spec(TRANSIENT).run(["plan", "--detailed-exitcode"]);
    if answer.status == 400 {
        output.expect_code(3).expect_text("deprecated_features.permit.transient_nonexcl_queues = true");
    } else {
        let output = output.expect_code(2);
        let warned = output.stderr.contains("warning[transient-queue]");
        assert_eq!(warned, node.at_least(3, 13), "{output}");
        Topo::new(&vhost).spec(TRANSIENT).run(["apply", "-y"]).expect_code(0);
    }
}

/// A node that is told to deny it: from 4.3 on it says whether it does, before that topo sees it too late.
#[test]
fn a_broker_that_denies_transient_queues_blocks_the_plan() {
    let line = "deprecated_features.permit.transient_nonexcl_queues = false";
    if !Node::shared().at_least(3, 13) {
        return Node::expect_unknown(line);
    }
    let node = Node::start(Options::default().line(line));
    let vhost = Vhost::create(&node, "denied".to_owned());
    let answer = vhost.http().put(&vhost.path("queues", &["by-hand"]), &json!({"durable": false}));
    assert!(!answer.is_success(), "{answer:?}");
    if !node.at_least(4, 3) {
        let topo = Topo::new(&vhost).spec(TRANSIENT);
        topo.run(["plan", "--detailed-exitcode"]).expect_code(2);
        let failed = topo.run(["apply", "-y"]).expect_code(1);
        assert!(failed.stdout.contains("transient_nonexcl_queues"), "{failed}");
        return;
    }
    let output = Topo::new(&vhost).spec(TRANSIENT).run(["plan", "--detailed-exitcode"]).expect_code(3);
    let output = output.expect_text("deprecated_features.permit.transient_nonexcl_queues = true");
    // The plan says it; once is enough.
    output.expect_no_text("warning[transient-queue]");
}

#[test]
fn a_live_plan_has_the_warnings_of_this_version() {
    let node = Node::shared();
    let vhost = node.vhost("warned");
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic, queueMode: lazy, arguments: {x-mesage-ttl: 5}}}\n");
    let output = topo.run(["plan"]).expect_code(0);
    assert_eq!(output.stderr.contains("warning[lazy-mode]"), node.at_least(3, 12), "{output}");
    let output = output.expect_text("warning[unknown-argument]").expect_text("did you mean `x-message-ttl`?");
    assert!(!output.stdout.contains("warning["), "{output}");
    // Said again as long as it is so, also when there is nothing to change.
    topo.run(["apply", "-y"]).expect_code(0).expect_text("warning[unknown-argument]");
    topo.run(["plan"]).expect_code(0).expect_text("warning[unknown-argument]").expect_text("No changes.");
}

/// What the broker permits is asked for once, and a broker that has no such list is planned all the same.
#[test]
fn deprecated_features_cost_one_request() {
    let node = Node::shared();
    let vhost = node.vhost("features");
    let proxy = Proxy::to(node);
    Topo::new(&vhost).through(&proxy).spec(TRANSIENT).run(["plan"]).expect_code(0);
    assert_eq!(proxy.count(&gets().path("/api/deprecated-features")), 1);
}

/// What a plan says of a broker that calls itself so.
fn plan_of(overview: Value) -> crate::support::Output {
    let node = Node::shared();
    let vhost = node.vhost("overview");
    let proxy = Proxy::to(node);
    let proxy = proxy.on(gets().path("/api/overview"), Fault::Instead(Box::new(move || overview.clone())));
    Topo::new(&vhost).through(&proxy).spec("queues: {q: {type: classic}}\n").run(["plan"])
}

#[test]
fn a_broker_that_is_too_old_or_none_is_refused_and_a_newer_one_is_taken_for_the_newest() {
    let product = |version: &str| json!({"product_name": "RabbitMQ", "rabbitmq_version": version, "cluster_name": "c"});
    let output = plan_of(product("3.7.28")).expect_code(1).expect_no_result();
    output.expect_error("RabbitMQ 3.7.28 is too old: topo supports RabbitMQ 3.8 and later");
    let output = plan_of(product("4.4.1")).expect_code(0);
    output.expect_text("note: RabbitMQ 4.4.1 is newer than all that this topo knows; it is taken to behave as 4.3");
    let lavin = json!({"product_name": "LavinMQ", "product_version": "2.9.0", "lavinmq_version": "2.9.0"});
    let output = plan_of(lavin).expect_code(1).expect_no_result();
    output.expect_error("does not say which version of RabbitMQ it is (it calls itself LavinMQ 2.9.0)");
}
