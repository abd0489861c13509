//! Tests stand-ins in test files: exchanges and queues in place of the external objects in a spec.

use serde_json::Value;

use crate::support::Topo;

const EXTERNAL: &str = "version: 1
vhost: shop
exchanges: {events: {external: true}, orders: {type: topic, alternateExchange: events}}
queues:
  work: {type: quorum, deadLetter: legacy, retry: {delays: [5s]}, bindings: [{exchange: events, routingKey: 'order.#'}]}
  audit: {external: true, bindings: [{exchange: orders, routingKey: paid}]}
deadLetterQueues: {legacy: {external: true}}
";

const STAND_INS: &str = "standIns:
  exchanges: {events: {type: topic}}
  queues: {audit: {type: classic, bindings: [{exchange: events, routingKey: '#'}]}, legacy: {type: classic, bindings: [{exchange: legacy.dlx, routingKey: all}]}}
";

const CASES_OF_EXTERNAL: &str = "tests:
  all: {publish: {exchange: events, routingKey: order.paid}, to: [work, audit]}
  alternate: {publish: {exchange: orders, routingKey: order.new}, to: [work, audit]}
  dead: {publish: {queue: work}, workers: {work: fail}, attempts: {work: 2}, ends: {legacy: rejected}}
";

#[test]
fn stand_ins_replace_external_objects() {
    let file = |text: &str| format!("version: 1\n{text}");
    let topo = Topo::offline().file("topology.yaml", EXTERNAL).file("topology.test.yaml", &file(CASES_OF_EXTERNAL));
    let refused = topo.run(["test"]).expect_code(65);
    let refused = refused.expect_text("exchange `events` is external, so its bindings are unknown");
    let refused = refused.expect_text("such as `standIns: {exchanges: {events: {type: topic}}}`");
    refused.expect_text("such as `standIns: {queues: {legacy: {type: classic}}}`");

    let complete = file(&format!("{STAND_INS}{CASES_OF_EXTERNAL}"));
    topo.write("topology.test.yaml", &complete);
    topo.run(["test"]).expect_code(0).expect_text("3 cases: 3 passed");
    // Mismatches of stand-ins have positions in the test file.
    topo.write("topology.test.yaml", &complete.replace("to: [work, audit]", "to: [work]"));
    let failed = topo.run(["test"]).expect_code(1);
    failed.expect_text("audit is bound to events with routing key `#`").expect_text("topology.test.yaml:4");
    // The bindings of stand-ins are not counted.
    topo.write("topology.test.yaml", &complete);
    let document = topo.run(["test", "--coverage", "--format", "json"]).expect_code(0).test_results();
    let parts = document["coverage"][0]["elements"].as_array().unwrap_or_else(|| panic!("{document:#}"));
    assert!(parts.iter().any(|part| part.to_string().contains("order.#")), "{document:#}");
    let of_audit = |part: &&Value| part["binding"]["destination"]["queue"] == "audit";
    let keys: Vec<&Value> = parts.iter().filter(of_audit).map(|part| &part["binding"]["routing_key"]).collect();
    assert_eq!(keys, ["paid"], "{document:#}");
}

#[test]
fn invalid_stand_ins_are_rejected() {
    let cases = "tests: {it: {publish: {exchange: orders, routingKey: paid}, to: [audit]}}\n";
    for (stand_ins, message, hint) in [
        ("{exchanges: {event: {type: topic}}}", "the spec has no external exchange `event`", "did you mean `events`?"),
        ("{exchanges: {orders: {type: topic}}}", "the spec has no external exchange `orders`", "remove the stand-in"),
        ("{queues: {work: {type: classic}}}", "the spec has no external queue `work`", "remove the stand-in"),
        ("{exchanges: {events: {}}}", "`type`", "topic"),
        ("{queues: {audit: {}}}", "`type`", "quorum"),
        ("{queues: {audit: {type: classic, retry: {}}}}", "unknown key `retry`", "bindings"),
        (
            "{queues: {audit: {type: classic, bindings: [{exchange: event}]}}}",
            "exchange `event` does not exist",
            "events",
        ),
        ("{exchanges: {events: {type: topic, alternateExchange: order}}}", "exchange `order` does not exist", "orders"),
        ("[]", "expected a mapping", ""),
        (
            "{exchanges: {events: {type: topic, arguments: {alternate-exchange: order}}}}",
            "exchange `order` does not exist",
            "orders",
        ),
        (
            "{exchanges: {events: {type: topic, alternateExchange: orders, arguments: {alternate-exchange: orders}}}}",
            "`alternateExchange` is set twice",
            "keep `alternateExchange`",
        ),
        (
            "{queues: {audit: {type: classic, arguments: {x-dead-letter-exchange: order}}}}",
            "exchange `order` does not exist",
            "orders",
        ),
        ("{queues: {audit: {type: classic, arguments: {x-message-ttl: soon}}}}", "x-message-ttl", "30s"),
        ("{queues: {audit: {type: classic, arguments: {messageTtl: 5s}}}}", "`messageTtl` is a key of the queue", ""),
    ] {
        let file = format!("version: 1\nstandIns: {stand_ins}\n{cases}");
        let topo = Topo::offline().file("topology.yaml", EXTERNAL).file("topology.test.yaml", &file);
        let output = topo.run(["test"]).expect_code(65).expect_text(message);
        output.expect_text(hint).expect_text("topology.test.yaml:2");
    }
}

/// The arguments of a stand-in have the effect that they have in a spec.
#[test]
fn arguments_of_stand_ins_apply() {
    let stand_ins = "standIns: {queues: {audit: {type: classic, arguments: {x-message-ttl: 5s}}}, exchanges: {events: {type: fanout, arguments: {alternate-exchange: orders}}}}";
    let cases = "tests:
  expires: {publish: {queue: audit}, ends: {audit: dropped}, within: 5s}
  alternate: {publish: {exchange: events, routingKey: paid}, reaches: [work]}
";
    let file = format!("version: 1\n{stand_ins}\n{cases}");
    let topo = Topo::offline().file("topology.yaml", EXTERNAL).file("topology.test.yaml", &file);
    topo.run(["test"]).expect_code(0).expect_text("2 cases: 2 passed");
}

/// The spec declares the exchange of an external dead-letter queue, so topo does not generate the exchange.
#[test]
fn external_dead_letter_queue_with_a_declared_exchange_has_a_stand_in() {
    let spec = "version: 1
vhost: shop
exchanges: {own: {type: direct}, corp.dlx: {external: true}}
queues:
  work: {type: classic, deadLetter: own.dead}
  mail: {type: classic, deadLetter: {exchange: corp.dlx}}
deadLetterQueues:
  own.dead: {external: true, exchange: {name: own}}
  corp.dead: {external: true, exchange: {name: corp.dlx}}
";
    let file = "version: 1
standIns:
  exchanges: {corp.dlx: {type: fanout}}
  queues:
    own.dead: {type: classic, bindings: [{exchange: own, routingKey: work}]}
    corp.dead: {type: quorum, bindings: [{exchange: corp.dlx}]}
tests:
  own: {publish: {queue: work}, workers: {work: fail}, ends: {own.dead: rejected}}
  corp: {publish: {queue: mail}, workers: {mail: fail}, ends: {corp.dead: rejected}}
";
    let topo = Topo::offline().file("topology.yaml", spec).file("topology.test.yaml", file);
    topo.run(["test"]).expect_code(0).expect_text("2 cases: 2 passed");
    // Without its binding, the dead-letter queue receives nothing.
    topo.write("topology.test.yaml", &file.replace(", bindings: [{exchange: own, routingKey: work}]", ""));
    topo.run(["test"]).expect_code(1).expect_text("ends in own.dead: expected rejected, got no message");
}

#[test]
fn snapshot_cannot_have_stand_ins() {
    let file = format!("version: 1\nsnapshot: true\n{STAND_INS}{CASES_OF_EXTERNAL}");
    let topo = Topo::offline().file("topology.yaml", EXTERNAL).file("topology.test.yaml", &file);
    topo.run(["test", "--update"]).expect_code(65).expect_text("a snapshot cannot have stand-ins");
    assert_eq!(topo.read("topology.test.yaml"), file, "the file is unchanged");
}

/// Each file runs with its own stand-ins, also for the coverage.
#[test]
fn coverage_uses_the_stand_ins_of_each_file() {
    let spec = "version: 1
vhost: shop
exchanges: {events: {type: topic}}
queues:
  audit: {external: true}
  work: {type: classic, deadLetter: none, bindings: [{exchange: events, routingKey: 'order.*'}]}
";
    let file = |key: &str, cases: &str| {
        format!(
            "version: 1\nspec: topology.yaml\nstandIns: {{queues: {{audit: {{type: classic, bindings: [{{exchange: events, routingKey: '{key}'}}]}}}}}}\ntests: {{{cases}}}\n"
        )
    };
    let all = file("#", "all: {publish: {exchange: events, routingKey: user.created}, to: [audit]}");
    let orders = file(
        "order.*",
        "none: {publish: {exchange: events, routingKey: user.created}, to: []}, order: {publish: {exchange: events, routingKey: order.paid}, to: [audit, work]}",
    );
    let topo = Topo::offline().file("topology.yaml", spec).file("a.test.yaml", &all).file("b.test.yaml", &orders);
    topo.run(["test", "--fail-under", "100"]).expect_code(0).expect_text("3 cases: 3 passed").expect_text("1 of 1");
}
