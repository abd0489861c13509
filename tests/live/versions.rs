//! Tests that `topo validate --broker-version` refuses exactly the objects that a broker of this version refuses. The
//! version may be a release, a series, or omitted for the newest known version.

use serde_json::{Value, json};

use crate::support::{Fault, NONE, Node, Options, Proxy, Topo, Vhost, gets};

/// Objects that some versions refuse, each with a spec and the path of its HTTP request.
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
    ("queues", "q: {type: classic, consumerTimeout: 1h}"),
    ("queues", "q: {type: stream, consumerTimeout: 1h}"),
    ("exchanges", "q: {type: topic, arguments: {x-foo: bar}}"),
    ("exchanges", "q: {type: x-local-random}"),
    ("exchanges", "q: {type: x-consistent-hash, arguments: {hash-property: app_id}}"),
    ("policies", "q: {pattern: q, definition: {ha-mode: all}}"),
    ("policies", "q: {pattern: q, definition: {ha-mode: all, ha-sync-mode: automatic}}"),
    ("policies", "q: {pattern: q, definition: {max-lenght: 5}}"),
    ("policies", "q: {pattern: q, definition: {queue-mode: lazy}}"),
    ("policies", "q: {pattern: q, applyTo: quorum_queues, definition: {maxLength: 5}}"),
];

/// The version that topo assumes by default.
const NEWEST_KNOWN: &str = "4.3.6";

/// Returns the request body, which is the desired object of a plan against an empty broker.
fn body(kind: &str, spec: &str) -> Value {
    let line = ["plan", "--against", "empty", "--format", "json"];
    let plan = Topo::offline().spec(spec).run(line).expect_code(0).plan();
    let topology = &plan["vhosts"][0]["desired"]["topology"];
    let mut body = topology[kind]["q"].clone();
    assert!(body.is_object(), "{topology:#}");
    body.as_object_mut().unwrap().remove("name");
    body
}

fn is_called_refused(spec: &str, version: Option<&str>) -> bool {
    let asked = version.map(|version| ["--broker-version", version]);
    let line = ["validate", "--format", "json"].into_iter().chain(asked.into_iter().flatten());
    let output = Topo::offline().spec(spec).run(line);
    let refused = output.json()["diagnostics"].as_array().unwrap().iter().any(|it| it["severity"] == "error");
    output.expect_code(i32::from(refused));
    refused
}

/// Bindings of a classic queue to an exchange of each type.
const BINDINGS: &[(&str, &str)] = &[
    ("headers", "arguments: {x-match: all-with-x, kind: a}"),
    ("headers", "arguments: {x-match: bogus}"),
    ("headers", "arguments: {x-match: any, kind: a}"),
    ("x-consistent-hash", "routingKey: notanumber"),
    ("x-consistent-hash", "routingKey: \"3\""),
    ("topic", "routingKey: '#.a.#.b.#'"),
    ("topic", "routingKey: '#.a.#'"),
    ("fanout", "routingKey: '#.a.#.b.#', arguments: {x-match: bogus}"),
];

/// Returns a pattern that exceeds the limit of the newest releases.
fn long_pattern() -> String {
    format!("q: {{pattern: '{}', definition: {{maxLength: 5}}}}", "a".repeat(1500))
}

/// Returns equivalent `--broker-version` arguments: the release, its series, and none for the newest version.
fn equivalent_arguments(node: &Node, spec: &str, is_refused: bool) -> Vec<String> {
    let series = node.version().rsplit_once('.').unwrap().0;
    let mut asked = vec![Some(node.version()), Some(series)];
    asked.extend((node.version() == NEWEST_KNOWN).then_some(None));
    asked.retain(|version| is_called_refused(spec, *version) != is_refused);
    asked.iter().map(|version| format!("{version:?}, is refused: {is_refused}: {spec}")).collect()
}

#[test]
fn refused_objects_match_the_broker() {
    let node = Node::shared();
    let vhost = node.vhost("refused");
    let long = long_pattern();
    let cases = CASES.iter().copied().chain([("policies", long.as_str())]);
    let mut wrong = Vec::new();
    for (kind, text) in cases {
        let spec = format!("{kind}:\n  {text}\n");
        let path = vhost.path(kind, &["q"]);
        let answer = vhost.http().put(&path, &body(kind, &spec));
        assert!([201, 400].contains(&answer.status), "{text}: {answer:?}");
        let _ = vhost.http().send("DELETE", &path, None);
        wrong.extend(equivalent_arguments(node, &spec, answer.status == 400));
    }
    assert!(wrong.is_empty(), "{} says otherwise:\n{}", node.version(), wrong.join("\n"));
}

#[test]
fn refused_bindings_match_the_broker() {
    let node = Node::shared();
    let vhost = node.vhost("refused-bindings");
    vhost.amqp().declare_queue("q", NONE).unwrap();
    let (mut wrong, mut answers) = (Vec::new(), Vec::new());
    for (kind, text) in BINDINGS {
        let spec = format!(
            "exchanges:\n  x: {{type: {kind}}}\nqueues:\n  q: {{type: classic, bindings: [{{exchange: x, {text}}}]}}\n"
        );
        // The plan for an older version contains the refusals of that version.
        let line = ["plan", "--against", "empty", "--broker-version", "3.10.8", "--format", "json"];
        let mut plan = Topo::offline().spec(&spec).run(line).plan();
        let binding = plan["vhosts"][0]["desired"]["topology"]["bindings"][0].take();
        vhost.http().put(&vhost.path("exchanges", &["x"]), &json!({"type": kind})).expect_status(201);
        let body = json!({"routing_key": binding["routing_key"], "arguments": binding["arguments"]});
        let path = format!("{}/e/x/q/q", vhost.path("bindings", &[]));
        let answer = vhost.http().send("POST", &path, Some(&body)).unwrap();
        assert!([201, 400].contains(&answer.status), "{text}: {answer:?}");
        vhost.http().delete(&vhost.path("exchanges", &["x"])).expect_status(204);
        wrong.extend(equivalent_arguments(node, &spec, answer.status == 400));
        answers.push(answer.status);
    }
    assert!(wrong.is_empty(), "{} says otherwise:\n{}", node.version(), wrong.join("\n"));
    assert!(answers.contains(&201) && answers.contains(&400), "{answers:?}");
}

/// Here, the broker responds with 201 and sets no default.
#[test]
fn refused_default_type_is_not_set() {
    let node = Node::shared();
    let body = json!({"default_queue_type": "quorum", "defaultqueuetype": "quorum"});
    let vhost = node.vhost_with("default-type", &body);
    let shown = vhost.http().get(&format!("/api/vhosts/{}", vhost.name())).expect_status(200);
    let spec = "version: 1\nvhost: {name: shop, defaultQueueType: quorum}\n";
    let wrong = equivalent_arguments(node, spec, shown["default_queue_type"] != "quorum");
    assert!(wrong.is_empty(), "{shown:#}\n{}", wrong.join("\n"));
}

const TRANSIENT: &str = "queues: {tmp: {type: classic, durable: false}}\n";

/// The plan reads the state of a deprecated feature. It is blocked if the broker denies the feature, and contains a
/// warning otherwise.
#[test]
fn transient_queue_follows_the_permissions_of_the_broker() {
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

/// The node is configured to deny transient queues. From 4.3 on, the broker reports this; before, topo detects it only
/// during the apply.
#[test]
fn denied_transient_queue_blocks_the_plan() {
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
    // The plan already reports the queue.
    output.expect_no_text("warning[transient-queue]");
}

#[test]
fn plan_contains_the_warnings_of_this_version() {
    let node = Node::shared();
    let vhost = node.vhost("warned");
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic, queueMode: lazy, arguments: {x-mesage-ttl: 5}}}\n");
    let output = topo.run(["plan"]).expect_code(0);
    assert_eq!(output.stderr.contains("warning[lazy-mode]"), node.at_least(3, 12), "{output}");
    let output = output.expect_text("warning[unknown-argument]").expect_text("did you mean `x-message-ttl`?");
    assert!(!output.stdout.contains("warning["), "{output}");
    // The warning is repeated, even if there are no changes.
    topo.run(["apply", "-y"]).expect_code(0).expect_text("warning[unknown-argument]");
    topo.run(["plan"]).expect_code(0).expect_text("warning[unknown-argument]").expect_text("No changes.");
}

/// A single request reads the permitted features. topo also plans for a broker without this list.
#[test]
fn deprecated_features_require_one_request() {
    let node = Node::shared();
    let vhost = node.vhost("features");
    let proxy = Proxy::to(node);
    Topo::new(&vhost).through(&proxy).spec(TRANSIENT).run(["plan"]).expect_code(0);
    assert_eq!(proxy.count(&gets().path("/api/deprecated-features")), 1);
}

/// Returns the plan for a broker that reports this version.
fn plan_of(overview: Value) -> crate::support::Output {
    let node = Node::shared();
    let vhost = node.vhost("overview");
    let proxy = Proxy::to(node);
    let proxy = proxy.on(gets().path("/api/overview"), Fault::Instead(Box::new(move || overview.clone())));
    Topo::new(&vhost).through(&proxy).spec("queues: {q: {type: classic}}\n").run(["plan"])
}

#[test]
fn unsupported_brokers_are_refused_and_newer_ones_are_treated_as_the_latest() {
    let product = |version: &str| json!({"product_name": "RabbitMQ", "rabbitmq_version": version, "cluster_name": "c"});
    let output = plan_of(product("3.7.28")).expect_code(1).expect_no_result();
    output.expect_error("RabbitMQ 3.7.28 is too old: topo supports RabbitMQ 3.8 and later");
    let output = plan_of(product("4.4.1")).expect_code(0);
    output.expect_text(
        "info: RabbitMQ 4.4.1 is newer than the newest supported version; topo assumes the behavior of 4.3",
    );
    let lavin = json!({"product_name": "LavinMQ", "product_version": "2.9.0", "lavinmq_version": "2.9.0"});
    let output = plan_of(lavin).expect_code(1).expect_no_result();
    output.expect_error("does not report its RabbitMQ version (it identifies itself as LavinMQ 2.9.0)");
}
