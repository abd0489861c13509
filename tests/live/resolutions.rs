//! Applies each suggested resolution, and checks its promise: no conflict, a successful apply, and the effective
//! setting.

mod argument_origins;
mod dead_letters;
mod equals_export;
mod retries;

use lapin::options::QueueDeclareOptions;
use serde_json::{Value, json};

use crate::support::apply_resolution::{apply_resolution_to, resolutions_of};
use crate::support::{Argument, NONE, Node, Topo, Vhost, text, until};

/// A current queue, its entry in the spec, and the value that the policy must set, if a policy helps.
struct Case {
    name: &'static str,
    live: Value,
    spec: &'static str,
    by_policy: Option<Value>,
}

fn case(name: &'static str, live: Value, spec: &'static str, by_policy: Option<Value>) -> Case {
    Case { name, live, spec, by_policy }
}

fn cases(node: &Node) -> Vec<Case> {
    let quorum = |mut arguments: Value| {
        arguments["x-queue-type"] = "quorum".into();
        arguments
    };
    let mut cases = vec![
        case("ttl.shorter", json!({"x-message-ttl": 60_000}), "messageTtl: 30s", Some(json!({"message-ttl": 30_000}))),
        case("ttl.longer", json!({"x-message-ttl": 60_000}), "messageTtl: 2m", None),
        case("ttl.added", json!({}), "messageTtl: 90s", Some(json!({"message-ttl": 90_000}))),
        case("ttl.removed", json!({"x-message-ttl": 60_000}), "", None),
        case("length.added", json!({}), "maxLength: 10", Some(json!({"max-length": 10}))),
        case("length.less", json!({"x-max-length": 10}), "maxLength: 2", Some(json!({"max-length": 2}))),
        case(
            "bytes",
            json!({"x-max-length-bytes": 2_097_152}),
            "maxLengthBytes: 1MiB",
            Some(json!({"max-length-bytes": 1_048_576})),
        ),
        case("expires", json!({"x-expires": 7_200_000}), "expires: 1h", Some(json!({"expires": 3_600_000}))),
        case("overflow.added", json!({}), "overflow: reject-publish", Some(json!({"overflow": "reject-publish"}))),
        case("overflow.removed", json!({"x-overflow": "reject-publish"}), "", None),
        case("priority", json!({}), "maxPriority: 5", None),
        case("single", json!({"x-single-active-consumer": true}), "singleActiveConsumer: false", None),
        case(
            "dead.added",
            json!({}),
            "deadLetter: {exchange: amq.topic, routingKey: dead}",
            Some(json!({"dead-letter-exchange": "amq.topic", "dead-letter-routing-key": "dead"})),
        ),
        case(
            "dead.changed",
            json!({"x-dead-letter-exchange": "amq.topic"}),
            "deadLetter: {exchange: amq.fanout}",
            None,
        ),
        case("dead.unknown", json!({"x-dead-letter-exchange": "gone"}), "deadLetter: none", None),
        case(
            "dead.key",
            json!({"x-dead-letter-exchange": "amq.topic"}),
            "deadLetter: {exchange: amq.topic, routingKey: dead}",
            Some(json!({"dead-letter-routing-key": "dead"})),
        ),
        case(
            "several (1)/x|y",
            json!({"x-message-ttl": 60_000, "x-expires": 7_200_000}),
            "messageTtl: 30s\n    expires: 1h\n    maxLength: 7",
            Some(json!({"message-ttl": 30_000, "expires": 3_600_000, "max-length": 7})),
        ),
        // A policy already governs the queue; the suggested policy copies its keys.
        case("governed", json!({}), "maxLength: 5", Some(json!({"max-length": 5, "message-ttl": 77_000}))),
        case(
            "quorum.limit",
            quorum(json!({"x-delivery-limit": 9})),
            "type: quorum\n    deliveryLimit: 4",
            Some(json!({"delivery-limit": 4})),
        ),
        case("quorum.length", quorum(json!({})), "type: quorum\n    maxLength: 6", Some(json!({"max-length": 6}))),
        case("type", quorum(json!({})), "type: classic", None),
    ];
    if node.at_least(3, 10) {
        cases.extend([
            case(
                "quorum.overflow",
                quorum(json!({"x-overflow": "reject-publish"})),
                "type: quorum\n    overflow: drop-head",
                Some(json!({"overflow": "drop-head"})),
            ),
            case(
                "quorum.ttl",
                quorum(json!({"x-message-ttl": 60_000})),
                "type: quorum\n    messageTtl: 30s",
                Some(json!({"message-ttl": 30_000})),
            ),
            case(
                "stream.age",
                json!({"x-queue-type": "stream", "x-max-age": "1D"}),
                "type: stream\n    maxAge: 7D",
                Some(json!({"max-age": "7D"})),
            ),
            case(
                "stream.bytes",
                json!({"x-queue-type": "stream"}),
                "type: stream\n    maxLengthBytes: 1GiB",
                Some(json!({"max-length-bytes": 1_073_741_824})),
            ),
        ]);
    }
    cases
}

fn make(vhost: &Vhost<'_>, case: &Case) {
    let body = json!({"durable": true, "auto_delete": false, "arguments": case.live});
    vhost.http().put(&vhost.path("queues", &[case.name]), &body).expect_status(201);
}

fn spec(vhost: &Vhost<'_>, cases: &[Case]) -> String {
    let mut text = format!("version: 1\nvhost: {}\nqueues:\n", vhost.name());
    for case in cases {
        let kind = if case.spec.starts_with("type:") { "" } else { "    type: classic\n" };
        let entry = if case.spec.is_empty() { String::new() } else { format!("    {}\n", case.spec) };
        text.push_str(&format!("  {}:\n{kind}{entry}", case.name));
    }
    text
}

#[test]
fn suggested_change_resolves_the_conflict() {
    let node = Node::shared();
    let vhost = node.vhost("advice");
    let cases = cases(node);
    cases.iter().for_each(|case| make(&vhost, case));
    let unmanaged = json!({"pattern": "^governed", "apply-to": "queues", "priority": 7, "definition": {"message-ttl": 77_000, "max-length": 100}});
    vhost.http().put(&vhost.path("policies", &["theirs"]), &unmanaged).expect_status(201);
    let desired = spec(&vhost, &cases);
    let topo = Topo::new(&vhost).spec(&desired);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    // 3.8 does not compare the limit. The difference is drift, which blocks the plan like a conflict.
    assert_eq!(plan["summary"]["conflict"], cases.len(), "{plan:#}");
    let address = |case: &Case| {
        vhost.path("queues", &[case.name]).replacen("/api/", "", 1).replace("%2E", ".").replace("%2D", "-")
    };
    let way = |case: &Case, kind: &str| {
        let address = plan["vhosts"][0]["changes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|change| change["before"]["name"] == case.name || change["address"] == address(case).as_str())
            .unwrap_or_else(|| panic!("{}", address(case)))["address"]
            .as_str()
            .unwrap()
            .to_owned();
        resolutions_of(&plan, &address, kind)[0].clone()
    };

    let mut kept = desired.clone();
    for case in &cases {
        let keep = way(case, "keep");
        assert_eq!(keep["applicability"], "yes", "{}: {keep:#}", case.name);
        kept = apply_resolution_to(&kept, ("queues", case.name), &keep);
    }
    topo.rewrite(&kept);
    let again = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let queues: Vec<&Value> = again["vhosts"][0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["address"].as_str().unwrap().starts_with("queues/"))
        .collect();
    assert!(queues.is_empty() && again["summary"]["conflict"] == 0, "{kept}\n{queues:#?}");

    let mut governed = desired;
    for case in &cases {
        let policy = way(case, "policy");
        let applicability = if case.by_policy.is_some() { "yes" } else { "no" };
        assert_eq!(policy["applicability"], applicability, "{}: {policy:#}", case.name);
        let chosen = if applicability == "yes" { policy } else { way(case, "keep") };
        governed = apply_resolution_to(&governed, ("queues", case.name), &chosen);
    }
    topo.rewrite(&governed);
    topo.run(["apply", "-y", "--allow", "message-drop,publisher-block"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    let amqp = vhost.amqp();
    for case in &cases {
        let Some(Value::Object(expected)) = &case.by_policy else { continue };
        until(&format!("the policy of {} in {governed}", case.name), || {
            let queue = vhost.queue(case.name);
            // Without a request, the statistics of an idle queue are not updated.
            amqp.ready(case.name);
            let holds = expected.iter().all(|(key, value)| queue["effective_policy_definition"][key] == *value);
            holds.then_some(())
        });
    }
    // An application may repeat its earlier declaration.
    amqp.declare_queue("length.less", &[("x-max-length", Argument::LongInt(10))]).unwrap();
    amqp.fill("length.less", 5);
    amqp.fill("length.added", 12);
    until("the messages over the limit to be dropped", || {
        (amqp.ready("length.less") == 2 && amqp.ready("length.added") == 10).then_some(())
    });
}

/// If topo reports that a policy does not help, it has no effect on the broker either.
#[test]
fn rejected_policy_does_not_help() {
    let node = Node::shared();
    let vhost = node.vhost("no-help");
    let amqp = vhost.amqp();
    amqp.declare_queue("limit", &[("x-max-length", Argument::LongInt(2))]).unwrap();
    amqp.declare_queue("full", &[("x-max-length", Argument::LongInt(2)), ("x-overflow", text("drop-head"))]).unwrap();
    let topo = Topo::new(&vhost).spec(
        "queues:\n  limit: {type: classic, maxLength: 4}\n  full: {type: classic, maxLength: 2, overflow: reject-publish}\n",
    );
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    for queue in ["limit", "full"] {
        let way = resolutions_of(&plan, &format!("queues/{}/{queue}", vhost.name()), "policy")[0];
        assert_eq!(way["applicability"], "no", "{way:#}");
    }
    let policy = |definition: Value| json!({"pattern": ".*", "apply-to": "queues", "definition": definition});
    let definition = policy(json!({"max-length": 4, "overflow": "reject-publish"}));
    vhost.http().put(&vhost.path("policies", &["p"]), &definition).expect_status(201);
    until("the policy to govern", || {
        (vhost.queue("full")["effective_policy_definition"]["max-length"] == 4).then_some(())
    });
    amqp.fill("full", 4);
    until("the argument to hold", || (amqp.ready("full") == 2).then_some(()));
}

/// A policy cannot exceed the operator policy, whose limit is effective.
#[test]
fn operator_policy_limits_the_policy() {
    let node = Node::shared();
    let vhost = node.vhost("operator");
    let amqp = vhost.amqp();
    amqp.declare_queue("more", NONE).unwrap();
    amqp.declare_queue("less", NONE).unwrap();
    let by = |length: u32| json!({"pattern": ".*", "apply-to": "queues", "definition": {"max-length": length}});
    vhost.http().put(&vhost.path("operator-policies", &["cap"]), &by(50)).expect_status(201);
    let topo = Topo::new(&vhost)
        .spec("queues:\n  more: {type: classic, maxLength: 200}\n  less: {type: classic, maxLength: 20}\n");
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let way = |queue: &str| resolutions_of(&plan, &format!("queues/{}/{queue}", vhost.name()), "policy")[0].clone();
    assert_eq!(way("more")["applicability"], "no", "{plan:#}");
    assert!(way("more")["text"].as_str().unwrap().contains("operator policy cap keeps max-length at 50"), "{plan:#}");
    assert_eq!(way("less")["applicability"], "yes", "{plan:#}");
    for (length, held) in [(200, 50), (20, 20)] {
        let answer = vhost.http().put(&vhost.path("policies", &["p"]), &by(length));
        assert!(answer.is_success(), "{answer:?}");
        until("the smaller to hold", || {
            amqp.ready("more");
            (vhost.queue("more")["effective_policy_definition"]["max-length"] == held).then_some(())
        });
    }
}

#[test]
fn error_after_a_recreate_matches_the_broker() {
    let node = Node::shared();
    let vhost = node.vhost("after");
    let amqp = vhost.amqp();
    let live: &[(&str, Argument)] = &[("x-message-ttl", Argument::LongLongInt(60_000))];
    amqp.declare_queue("changed", live).unwrap();
    amqp.declare_queue("typed", live).unwrap();
    amqp.declare_queue("bare", NONE).unwrap();
    amqp.declare_exchange("exchange", "topic", NONE).unwrap();
    let topo = Topo::new(&vhost).spec(
        "exchanges:\n  exchange: {type: fanout}\nqueues:\n  changed: {type: classic, messageTtl: 30s}\n  typed: {type: quorum}\n  bare: {type: classic, maxLength: 5}\n",
    );
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let error_after_recreate = |address: &str| {
        let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
        let change = changes.iter().find(|change| change["address"] == address).unwrap();
        change["conflict"]["errorAfterRecreate"].as_str().unwrap().to_owned()
    };
    let mut arguments = vec![
        "apply".to_owned(),
        "-y".into(),
        "--allow".into(),
        "routing-gap,durability-down,consumer-disruption".into(),
    ];
    for name in ["changed", "typed", "bare"] {
        arguments.extend(["--recreate".to_owned(), format!("queues/{}/{name}=ifEmpty", vhost.name())]);
    }
    arguments.extend(["--recreate".to_owned(), format!("exchanges/{}/exchange=discard", vhost.name())]);
    topo.run(arguments.iter().map(String::as_str)).expect_code(0);
    for (name, declared) in [("changed", live), ("typed", live), ("bare", NONE)] {
        let error = amqp.declare_queue(name, declared).unwrap_err();
        let mut promised = error_after_recreate(&format!("queues/{}/{name}", vhost.name()));
        if name == "typed" && !node.at_least(4, 0) {
            // The queue was declared without a type. From 4.0 on, the broker sets one.
            promised = promised.replace(
                "received 'classic' but current is 'quorum'",
                "received none but current is the value 'quorum' of type 'longstr'",
            );
        }
        assert_eq!(error, promised, "{name}");
    }
    let error = amqp.declare_exchange("exchange", "topic", NONE).unwrap_err();
    assert_eq!(error, error_after_recreate(&format!("exchanges/{}/exchange", vhost.name())));
    // A passive declaration compares no arguments.
    let passive = QueueDeclareOptions { passive: true, durable: true, ..Default::default() };
    amqp.declare_queue_as("changed", passive, live).unwrap();
}

#[test]
fn default_queue_type_applies_to_declares_without_type() {
    let node = Node::shared();
    // Also sends the first name of the setting, which 3.10 supports only when the vhost is created.
    let default = json!({"default_queue_type": "quorum", "defaultqueuetype": "quorum"});
    let vhost = node.vhost_with("default-type", &default);
    let amqp = vhost.amqp();
    let classic = ("x-queue-type", text("classic"));
    amqp.declare_queue("q", std::slice::from_ref(&classic)).unwrap();
    let topo = Topo::new(&vhost).spec("queues:\n  q:\n    type: classic\n    maxLength: 5\n");
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let note = &plan["vhosts"][0]["changes"][0]["conflict"]["typelessDeclare"];
    if node.at_least(3, 10) {
        assert_eq!(
            note,
            "without x-queue-type, a declaration requests a quorum queue: refused now, refused after recreation"
        );
        amqp.declare_queue("q", NONE).unwrap_err();
    } else {
        assert_eq!(*note, json!(null), "there are no defaults yet");
        amqp.declare_queue("q", NONE).unwrap();
    }
}
