//! Tests `topo test --against` with definitions files and other specs.

use serde_json::json;

use crate::support::Topo;

const SPEC: &str = "version: 1
vhost: shop
exchanges: {orders: {type: topic}, events: {external: true}}
queues:
  work: {type: quorum, deadLetter: none, bindings: [{exchange: orders, routingKey: 'order.*'}, {exchange: events, routingKey: paid}]}
  audit: {type: classic, bindings: [{exchange: orders, routingKey: '#'}]}
";

const TESTS: &str = "version: 1
standIns: {exchanges: {events: {type: direct}}}
tests:
  routed: {publish: {exchange: orders, routingKey: order.paid}, to: [work, audit]}
  of an external exchange: {publish: {exchange: events, routingKey: paid}, to: [work]}
  attempts: {publish: {queue: audit}, workers: {audit: ack}, attempts: {audit: 1}}
";

fn topo() -> Topo {
    Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", TESTS)
}

/// Returns the definitions of the vhost, without the queue `audit`. `events` exists in it.
fn definitions() -> String {
    let exchange = |name: &str, kind: &str| json!({"name": name, "vhost": "shop", "type": kind, "durable": true, "auto_delete": false, "internal": false, "arguments": {}});
    let binding = |source: &str, key: &str| json!({"source": source, "vhost": "shop", "destination": "work", "destination_type": "queue", "routing_key": key, "arguments": {}});
    json!({
        "rabbitmq_version": "3.10.8",
        "vhosts": [{"name": "shop"}],
        "exchanges": [exchange("orders", "topic"), exchange("events", "direct")],
        "queues": [{"name": "work", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}}],
        "bindings": [binding("orders", "order.paid"), binding("events", "paid")],
    })
    .to_string()
}

#[test]
fn cases_run_against_another_spec() {
    let topo = topo();
    topo.run(["test"]).expect_code(0);
    let old = SPEC.replace("routingKey: 'order.*'", "routingKey: 'order.created'");
    topo.write("old.yaml", &old);
    let output = topo.run(["test", "--against", "old.yaml"]).expect_code(1);
    let output = output.expect_text("RabbitMQ 4.3.6, topology of old.yaml").expect_text("FAIL routed");
    let output = output.expect_text("to: expected audit, work, got audit").expect_text("pass of an external exchange");
    output.expect_text("3 cases: 2 passed, 1 failed");
    // A queue or an exchange that the other spec does not declare.
    topo.write("old.yaml", &old.replace("  audit:", "  other:").replace("orders", "invoices"));
    let output = topo.run(["test", "--against", "old.yaml"]).expect_code(1);
    let output = output.expect_text("cannot publish the message: exchange orders does not exist");
    output.expect_text("cannot publish the message: queue audit does not exist");
    let document = topo.run(["test", "--against", "old.yaml", "--format", "json"]).expect_code(1).test_results();
    assert_eq!(document["cases"][0]["against"], json!({"topology": "file", "file": "old.yaml"}), "{document:#}");
    assert_eq!(document["cases"][0]["mismatches"][0]["aspect"], "publish", "{document:#}");
    // In each format, the target is part of the result.
    for format in ["markdown", "github"] {
        topo.run(["test", "--against", "old.yaml", "--format", format])
            .expect_code(1)
            .expect_text("RabbitMQ 4.3.6, topology of old.yaml");
    }
}

#[test]
fn cases_run_against_a_definitions_file() {
    let topo = topo().file("live.json", &definitions());
    let output = topo.run(["test", "--against", "live.json"]).expect_code(1);
    let output = output.expect_text("RabbitMQ 3.10.8, topology of live.json");
    let output = output.expect_text("to: expected audit, work, got work").expect_text("pass of an external exchange");
    output.expect_text("3 cases: 1 passed, 2 failed");
    let other = ["test", "--against", "live.json", "--broker-version", "4.0", "--broker-version", "3.8"];
    topo.run(other).expect_code(1).expect_text("6 cases: 2 passed, 4 failed");
    // The file contains the external exchange, so a stand-in is not necessary.
    topo.write("topology.test.yaml", &TESTS.replace("standIns: {exchanges: {events: {type: direct}}}\n", ""));
    topo.run(["test", "--against", "live.json"]).expect_code(1).expect_text("3 cases: 1 passed, 2 failed");
    topo.run(["test"]).expect_code(65);
    topo.write("topology.test.yaml", &TESTS.replace("tests:", "brokers: [\"4.3\"]\ntests:"));
    let version = ["test", "--against", "live.json", "--broker-version", "4.0"];
    topo.run(version).expect_code(1).expect_text("3 cases: 1 passed, 2 failed");
    let skipped = topo.run(["test", "--against", "live.json"]).expect_code(0).expect_text("3 cases: 3 skipped");
    skipped.expect_text("skipped the cases of topology.test.yaml: `brokers` (4.3.6) does not include RabbitMQ 3.10.8");
}

/// A case that cannot fail in the other topology fails.
#[test]
fn cases_need_their_exchanges_and_queues_in_the_other_topology() {
    let tests = "version: 1
tests:
  published: {publish: {exchange: orders, routingKey: order.paid}, reaches: [work]}
  to a queue: {publish: {queue: audit}, never: [work]}
  never: {publish: {queue: work}, never: [audit]}
";
    let topo = Topo::offline().file("topology.yaml", SPEC).file("topology.test.yaml", tests);
    topo.run(["test"]).expect_code(0);
    topo.write(
        "old.yaml",
        &SPEC.replace("{type: topic}", "{type: topic, internal: true}").replace("  audit:", "  other:"),
    );
    let output = topo.run(["test", "--against", "old.yaml"]).expect_code(1).expect_text("3 cases: 3 failed");
    let output = output.expect_text("cannot publish the message: exchange orders is internal");
    let output = output.expect_text("cannot publish the message: queue audit does not exist");
    output
        .expect_text("audit: expected no copy, got no such queue")
        .expect_text("queue `audit` does not exist in this");
}

/// A stand-in replaces only an object that is external in the other spec, too.
#[test]
fn stand_ins_do_not_change_declared_objects_of_the_other_spec() {
    let spec = "version: 1
vhost: shop
exchanges: {events: {type: topic}}
queues: {audit: {external: true}}
";
    let tests = "version: 1
standIns: {queues: {audit: {type: classic, bindings: [{exchange: events, routingKey: '#'}]}}}
tests: {it: {publish: {exchange: events, routingKey: paid}, to: [audit]}}
";
    let topo = Topo::offline().file("topology.yaml", spec).file("topology.test.yaml", tests);
    topo.run(["test"]).expect_code(0);
    topo.write("old.yaml", spec);
    topo.run(["test", "--against", "old.yaml"]).expect_code(0);
    for declared in ["{audit: {type: classic, deadLetter: none}}", "{other: {type: classic, deadLetter: none}}"] {
        topo.write("old.yaml", &spec.replace("{audit: {external: true}}", declared));
        let output = topo.run(["test", "--against", "old.yaml"]).expect_code(1);
        output.expect_text("to: expected audit, got no queue");
    }
}

/// Definitions files from 4.3.3 on lack internal exchanges, so the result is unknown.
#[test]
fn definitions_file_without_internal_exchanges_is_not_complete() {
    let spec = "version: 1
vhost: shop
exchanges: {orders: {type: topic, alternateExchange: lost}, lost: {type: fanout, internal: true}}
queues: {lost: {type: classic, deadLetter: none, bindings: [{exchange: lost}]}}
";
    let tests = "version: 1\ntests: {it: {publish: {exchange: orders, routingKey: nope}, publisher: returned}}\n";
    let topo = Topo::offline().file("topology.yaml", spec).file("topology.test.yaml", tests);
    let live = |version: &str| {
        json!({
            "rabbitmq_version": version,
            "vhosts": [{"name": "shop"}],
            "exchanges": [{"name": "orders", "vhost": "shop", "type": "topic", "durable": true, "auto_delete": false, "arguments": {"alternate-exchange": "lost"}}],
            "queues": [{"name": "lost", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {}}],
            "bindings": [{"source": "lost", "vhost": "shop", "destination": "lost", "destination_type": "queue", "routing_key": "", "arguments": {}}],
        })
        .to_string()
    };
    topo.write("live.json", &live("4.3.6"));
    let output = topo.run(["test", "--against", "live.json"]).expect_code(1);
    output.expect_text("cannot determine the result").expect_text("`lost`");
    // In an older file, the exchange is really missing.
    topo.write("live.json", &live("4.0.5"));
    topo.run(["test", "--against", "live.json"]).expect_code(0);
}

#[test]
fn unusable_targets_are_reported() {
    let topo =
        topo().file("live.json", &definitions()).file("other.yaml", &SPEC.replace("vhost: shop", "vhost: other"));
    topo.write("other.json", &definitions().replace("\"shop\"", "\"other\""));
    topo.write("wrong.json", "[1]");
    topo.write("wrong.yaml", "version: 1\nqueue: {}\n");
    for (target, code, message) in [
        ("other.yaml", 1, "other.yaml does not declare vhost shop"),
        ("other.json", 1, "other.json has no vhost shop"),
        ("missing.json", 64, "cannot read missing.json"),
        ("missing.yaml", 65, "cannot read missing.yaml"),
        ("wrong.json", 65, "wrong.json is not a usable definitions file"),
    ] {
        topo.run(["test", "--against", target]).expect_code(code).expect_error(message);
    }
    topo.run(["test", "--against", "wrong.yaml"]).expect_code(65).expect_text("unknown key `queue`");
    let version = ["test", "--against", "live", "--broker-version", "4.0"];
    topo.run(version).expect_code(64).expect_error("--against live uses the version of the broker");
    for other in ["--live", "--coverage", "--init", "--update", "--clean"] {
        topo.run(["test", "--against", "live.json", other]).expect_code(64).expect_text("cannot be used with");
    }
    topo.run(["plan", "--against", "empty", "--out", "plan.json"]).expect_code(0);
    topo.run(["test", "--against", "plan.json"]).expect_code(64).expect_error("plan.json is a saved plan");
    let unreachable = ["test", "--against", "live", "--url", "http://127.0.0.1:1"];
    topo.run(unreachable).expect_code(1).expect_error("cannot connect to http://127.0.0.1:1");
    // The variable applies only to topologies without a version of their own.
    let topo = topo.env("TOPO_BROKER_VERSION", "3.10");
    topo.run(unreachable).expect_code(1).expect_error("cannot connect to http://127.0.0.1:1");
    topo.run(["test", "--against=planned", "--url", "http://127.0.0.1:1"]).expect_code(1);
}
