//! Contents of lists. `broker::wire` requires only the fields that all versions send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lapin::options::QueueDeclareOptions;
use serde_json::json;

use super::{Stage, since};
use crate::support::{NONE, Node, Options};

/// Used by `broker::wire::Queue`: the list without statistics contains all fields that a plan requires, and is current.
#[test]
fn list_without_statistics_has_all_properties_of_a_queue() {
    let stage = Stage::new("properties");
    let kinds: &[&str] = if since(3, 9) { &["classic", "quorum", "stream"] } else { &["classic", "quorum"] };
    for kind in kinds {
        stage.queue(kind, kind, json!({"x-own": 1})).expect_created();
        let queue = stage.listed(kind);
        for (field, expected) in [
            ("name", json!(kind)),
            ("type", json!(kind)),
            ("vhost", json!(stage.vhost.name())),
            ("durable", json!(true)),
            ("auto_delete", json!(false)),
            ("exclusive", json!(false)),
            ("arguments", json!({"x-queue-type": kind, "x-own": 1})),
        ] {
            assert_eq!(queue[field], expected, "{field}");
        }
        // The field is listed since late 4.x. Before, the queue of a plugin cannot be recognized.
        assert_eq!(queue.get("internal"), since(4, 3).then_some(&json!(false)), "{kind}");
    }
}

/// Used by `broker::answer`, which repeats reads after a 500: a stream has no process until its leader is elected. Until
/// then, 3.10 cannot list the queues of the vhost (`rabbit_amqqueue_process:format/1`). 4.0.5 and 4.3.6 can.
#[test]
fn lists_fail_while_a_stream_is_declared() {
    if !since(3, 9) {
        return;
    }
    let stage = Stage::new("electing");
    let is_done = AtomicBool::new(false);
    let paths = [stage.path("queues", &[]), stage.path("definitions", &[]), "/api/definitions".to_owned()];
    let (has_failed, declares) = std::thread::scope(|scope| {
        let declaring = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(30);
            (0..)
                .take_while(|_| !is_done.load(Ordering::Relaxed) && Instant::now() < until)
                .map(|number| {
                    let name = format!("s{number}");
                    stage.queue(&name, "stream", json!({})).expect_created();
                    stage.delete("queues", &name).expect_no_content();
                })
                .count()
        });
        let has_failed = paths.each_ref().map(|path| (0..200).any(|_| stage.http.get(path).status == 500));
        is_done.store(true, Ordering::Relaxed);
        (has_failed, declaring.join().expect("no declare fails"))
    });
    assert_eq!(has_failed, [!since(4, 0); 3], "{declares} declares");
    assert!(declares > 0);
}

/// Used by `broker::wire::Queue`: `exclusive` is null if the request asks for totals.
#[test]
fn exclusive_is_null_with_the_totals_of_a_quorum_queue() {
    let stage = Stage::new("null");
    stage.queue("q", "quorum", json!({})).expect_created();
    assert_eq!(stage.totals("q")["exclusive"], json!(null));
}

/// Used by `broker::snapshot`: topo recognizes objects that it cannot change by these properties.
#[test]
fn exclusive_and_server_named_queues_are_recognizable() {
    let stage = Stage::new("others");
    let owner = stage.amqp();
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    owner.declare_queue_as("exclusive", exclusive, NONE).unwrap();
    owner.declare_queue_as("", exclusive, NONE).unwrap();
    let passing = QueueDeclareOptions { durable: true, auto_delete: true, ..Default::default() };
    owner.declare_queue_as("auto-delete", passing, NONE).unwrap();
    let names = stage.vhost.names("queues");
    assert!(names.iter().any(|name| name.starts_with("amq.gen-")), "{names:?}");
    assert_eq!(stage.listed("exclusive")["exclusive"], true);
    assert_eq!(stage.listed("auto-delete")["auto_delete"], true);
}

/// Used by `broker::wire::Exchange` and `broker::snapshot`: predeclared exchanges are listed.
#[test]
fn predeclared_exchanges_are_listed() {
    let stage = Stage::new("predeclared");
    let listed = stage.http.get(&stage.path("exchanges", &[])).expect_status(200);
    let mut names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    names.sort_unstable();
    let own = ["", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic"];
    assert_eq!(names, own);
    for exchange in listed.as_array().unwrap() {
        for field in ["durable", "auto_delete", "internal"] {
            assert!(exchange[field].is_boolean(), "{field}: {exchange}");
        }
        assert!(exchange["arguments"].is_object() && exchange["type"].is_string(), "{exchange}");
    }
}

/// Used by `broker::wire::Policy`.
#[test]
fn listed_policy_has_all_fields() {
    let stage = Stage::new("policies");
    stage.put("policies", "p", json!({"pattern": "x", "definition": {"max-length": 1}})).expect_created();
    let expected = json!({"vhost": stage.vhost.name(), "name": "p", "pattern": "x", "apply-to": "all",
                          "definition": {"max-length": 1}, "priority": 0});
    assert_eq!(stage.vhost.list("policies"), [expected]);
    stage.put("operator-policies", "o", json!({"pattern": "x", "definition": {"max-length": 1}})).expect_created();
    let expected = json!({"vhost": stage.vhost.name(), "name": "o", "pattern": "x", "apply-to": "all",
                          "definition": {"max-length": 1}, "priority": 0});
    assert_eq!(stage.vhost.list("operator-policies"), [expected]);
}

/// Used by `model::arguments`: JSON distinguishes integers, floats and strings, but not the widths of integers.
#[test]
fn list_keeps_the_kinds_of_values() {
    let stage = Stage::new("kinds");
    let arguments = json!({"x-queue-type": "classic", "x-i": 5, "x-f": 5.0, "x-h": 1.5, "x-t": "5", "x-b": true,
                           "x-l": [1, "a"], "x-m": {"n": 1}, "x-e": {}, "x-big": i64::MAX, "x-neg": -1});
    stage.queue("q", "", arguments.clone()).expect_created();
    assert!(stage.listed("q")["arguments"].to_string().contains("\"x-f\":5.0"));
    let mut shown = stage.listed("q")["arguments"].clone();
    // An empty table equals an empty list.
    assert!(shown["x-e"] == json!({}) || shown["x-e"] == json!([]), "{shown}");
    shown["x-e"] = json!({});
    assert_eq!(shown, arguments);
}

/// Used by `broker::read`: without a page parameter, the list is complete (a page has 100 entries).
#[test]
fn list_without_a_page_is_complete() {
    let stage = Stage::new("whole");
    stage.queue("q", "classic", json!({})).expect_created();
    for number in 0..101 {
        stage.bind("amq.topic", "q", json!({"routing_key": format!("k{number}")})).expect_created();
    }
    assert_eq!(stage.vhost.list("bindings").len(), 101);
    let paged = stage.http.get(&format!("{}?page=1", stage.path("queues", &[]))).expect_status(200);
    assert_eq!((&paged["page_size"], &paged["items"][0]["name"]), (&json!(100), &json!("q")));
}

/// Used by `broker::definitions`, which reads the export of a vhost and the type of a queue in it.
#[test]
fn export_of_a_vhost_contains_its_version_and_no_vhost() {
    let stage = Stage::new("export");
    stage.queue("q", "", json!({})).expect_created();
    let export = stage.http.get(&stage.path("definitions", &[])).expect_status(200);
    assert_eq!(export["rabbit_version"], Node::shared().version());
    let kind = if since(4, 0) { json!({"x-queue-type": "classic"}) } else { json!({}) };
    let mut queue = export["queues"][0].clone();
    // On some versions, the export contains the vhost.
    queue.as_object_mut().unwrap().remove("vhost");
    // In 4.x, the type is also a separate field.
    queue.as_object_mut().unwrap().remove("type");
    assert_eq!(queue, json!({"name": "q", "durable": true, "auto_delete": false, "arguments": kind}));
    assert!(["exchanges", "bindings", "policies"].iter().all(|kind| export[*kind].is_array()), "{export}");
}

/// Used by `broker::read`: totals are available, but consumers are not.
#[test]
fn node_without_statistics_has_totals_and_refuses_the_list_of_consumers() {
    let node = Node::start(Options::default().line("management.disable_stats = true"));
    let vhost = node.vhost("no-statistics");
    let http = vhost.http();
    vhost.amqp().declare_queue("q", NONE).unwrap();
    vhost.amqp().fill("q", 2);
    let totals = http.get(&format!("{}?disable_stats=true&enable_queue_totals=true", vhost.path("queues", &[])));
    assert_eq!(totals.expect_status(200)[0]["messages"], 2);
    let refused = http.get(&vhost.path("consumers", &[]));
    assert_eq!(
        (refused.status, refused.body),
        (400, json!({"error": "bad_request", "reason": "Stats in management UI are disabled on this node"}))
    );
    assert_eq!(http.get("/api/overview").expect_status(200)["disable_stats"], true);
    assert_eq!(http.get("/api/overview").expect_status(200)["rabbitmq_version"], node.version());
}
