//! Checks that a plan predicts each conflict with the broker's error message, and that apply stops before any change.

use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use serde_json::Value;

use crate::support::{Amqp, Argument, NONE, Node, Proxy, Topo, Vhost, any, deletes, gets, posts, puts, text, until};

fn change<'a>(plan: &'a Value, address: &str) -> &'a Value {
    let changes = plan["vhosts"][0]["changes"].as_array().expect("a list");
    changes.iter().find(|change| change["address"] == address).unwrap_or_else(|| panic!("no {address}: {plan:#}"))
}

fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions { durable: true, ..Default::default() }
}

#[test]
fn different_ttl_blocks_the_apply() {
    let vhost = Node::shared().vhost("ttl");
    let amqp = vhost.amqp();
    amqp.declare_queue("orders", &[("x-message-ttl", Argument::LongInt(60_000))]).unwrap();
    amqp.declare_queue("other", NONE).unwrap();
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost)
        .through(&proxy)
        .spec("queues:\n  orders: {type: classic, messageTtl: 30s}\n  fresh: {type: classic}\n");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    let refusal = amqp.declare_queue("orders", &[("x-message-ttl", Argument::LongLongInt(30_000))]).unwrap_err();
    plan.expect_text("60000 (1m) → 30000 (30s)").expect_text(&refusal).expect_text("BLOCKED by 1 conflict");
    // The plan itself succeeds. Only `--detailed-exitcode` reports the conflict.
    topo.run(["plan"]).expect_code(0).expect_text("BLOCKED");

    let applied = topo.run(["apply", "-y"]).expect_code(3);
    applied.expect_text(&refusal).expect_text("nothing was changed");
    assert_eq!(proxy.count(&any()), proxy.count(&gets()), "{:?}", proxy.requests());
    assert_eq!((proxy.count(&puts()), proxy.count(&posts()), proxy.count(&deletes())), (0, 0, 0));
    assert_eq!(vhost.names("queues"), ["orders", "other"]);
    assert_eq!(vhost.queue("orders")["arguments"]["x-message-ttl"], 60_000);
}

/// A queue as an application declared it, as the spec declares it, and as a second application would declare it.
struct Differing<'a> {
    name: &'a str,
    live: (QueueDeclareOptions, &'a [(&'a str, Argument)]),
    spec: &'a str,
    desired: (QueueDeclareOptions, &'a [(&'a str, Argument)]),
}

/// Declares all queues, plans, and compares every predicted error with the error of the broker.
fn expect_broker_errors(vhost: &Vhost<'_>, amqp: &Amqp, cases: &[Differing<'_>]) {
    let mut spec = "queues:\n".to_owned();
    for case in cases {
        amqp.declare_queue_as(case.name, case.live.0, case.live.1).unwrap();
        spec.push_str(&format!("  {}: {}\n", case.name, case.spec));
    }
    let before = vhost.list("queues").len();
    let topo = Topo::new(vhost).spec(&spec);
    let plan = topo.run(["plan", "--detailed-exitcode", "--format", "json"]).expect_code(3).plan();
    let screen = topo.run(["plan"]).expect_code(0);
    topo.run(["apply", "-y"]).expect_code(3);
    let mut wrong = Vec::new();
    for case in cases {
        let change = change(&plan, &format!("queues/{}/{}", vhost.name(), case.name));
        let Err(refusal) = amqp.declare_queue_as(case.name, case.desired.0, case.desired.1) else {
            wrong.push(format!("{}:\n  broker nothing\n  topo   {}", case.name, change["conflict"]["brokerError"]));
            continue;
        };
        assert_eq!(change["kind"], "conflict");
        if change["conflict"]["brokerError"] != refusal.as_str() || !screen.says(&refusal) {
            wrong.push(format!("{}:\n  broker {refusal}\n  topo   {}", case.name, change["conflict"]["brokerError"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(vhost.list("queues").len(), before);
    assert_eq!(plan["summary"]["conflict"], cases.len());
}

#[test]
fn queue_errors_match_the_broker() {
    let vhost = Node::shared().vhost("sentences");
    let amqp = vhost.amqp();
    let classic = text("classic");
    let transient = QueueDeclareOptions::default();
    let passing = QueueDeclareOptions { durable: true, auto_delete: true, ..Default::default() };
    let kind = ("x-queue-type", classic.clone());
    let quorum = ("x-queue-type", text("quorum"));
    let cases = [
        Differing {
            name: "shorter",
            live: (durable(), &[("x-message-ttl", Argument::LongInt(60_000))]),
            spec: "{type: classic, messageTtl: 30s}",
            desired: (durable(), &[kind.clone(), ("x-message-ttl", Argument::LongLongInt(30_000))]),
        },
        Differing {
            name: "durable",
            live: (transient, NONE),
            spec: "{type: classic}",
            desired: (durable(), std::slice::from_ref(&kind)),
        },
        Differing {
            name: "transient",
            live: (durable(), NONE),
            spec: "{type: classic, durable: false}",
            desired: (transient, std::slice::from_ref(&kind)),
        },
        Differing {
            name: "stays",
            live: (passing, NONE),
            spec: "{type: classic}",
            desired: (durable(), std::slice::from_ref(&kind)),
        },
        Differing {
            name: "passes",
            live: (durable(), NONE),
            spec: "{type: classic, autoDelete: true}",
            desired: (passing, std::slice::from_ref(&kind)),
        },
        Differing {
            name: "added",
            live: (durable(), NONE),
            spec: "{type: classic, maxLength: 5}",
            desired: (durable(), &[kind.clone(), ("x-max-length", Argument::LongLongInt(5))]),
        },
        Differing {
            name: "taken-away",
            live: (durable(), &[("x-max-length", Argument::LongLongInt(5))]),
            spec: "{type: classic}",
            desired: (durable(), std::slice::from_ref(&kind)),
        },
        Differing {
            name: "added-text",
            live: (durable(), NONE),
            spec: "{type: classic, overflow: reject-publish}",
            desired: (durable(), &[kind.clone(), ("x-overflow", text("reject-publish"))]),
        },
        Differing {
            name: "taken-text",
            live: (durable(), &[("x-overflow", text("drop-head"))]),
            spec: "{type: classic}",
            desired: (durable(), std::slice::from_ref(&kind)),
        },
        Differing {
            name: "explicit-default",
            live: (durable(), NONE),
            spec: "{type: classic, singleActiveConsumer: false}",
            desired: (durable(), &[kind.clone(), ("x-single-active-consumer", Argument::Boolean(false))]),
        },
        Differing {
            name: "boolean",
            live: (durable(), &[("x-single-active-consumer", Argument::Boolean(false))]),
            spec: "{type: classic, singleActiveConsumer: true}",
            desired: (durable(), &[kind.clone(), ("x-single-active-consumer", Argument::Boolean(true))]),
        },
        Differing {
            name: "quorum-for-classic",
            live: (durable(), NONE),
            spec: "{type: quorum}",
            desired: (durable(), std::slice::from_ref(&quorum)),
        },
        Differing {
            name: "classic-for-quorum",
            live: (durable(), std::slice::from_ref(&quorum)),
            spec: "{type: classic}",
            desired: (durable(), std::slice::from_ref(&kind)),
        },
        Differing {
            name: "dead-letters",
            live: (durable(), &[("x-dead-letter-exchange", text("amq.fanout"))]),
            spec: "{type: classic, deadLetter: {exchange: amq.topic, routingKey: dead}}",
            desired: (
                durable(),
                &[
                    kind.clone(),
                    ("x-dead-letter-exchange", text("amq.topic")),
                    ("x-dead-letter-routing-key", text("dead")),
                ],
            ),
        },
        // If there are several differences, the broker reports the first one that it compares.
        Differing {
            name: "several",
            live: (
                durable(),
                &[
                    ("x-message-ttl", Argument::LongInt(1)),
                    ("x-expires", Argument::LongInt(600_000)),
                    ("x-max-length", Argument::LongInt(1)),
                    ("x-max-priority", Argument::ShortInt(3)),
                ],
            ),
            spec: "{type: classic, messageTtl: 2, expires: 20m, maxLength: 2, maxPriority: 4}",
            desired: (
                durable(),
                &[
                    kind.clone(),
                    ("x-message-ttl", Argument::LongLongInt(2)),
                    ("x-expires", Argument::LongLongInt(1_200_000)),
                    ("x-max-length", Argument::LongLongInt(2)),
                    ("x-max-priority", Argument::LongLongInt(4)),
                ],
            ),
        },
        // The broker never validates this limit in a declaration. 3.8 does not even compare it.
        Differing {
            name: "number-for-text",
            live: (durable(), &[quorum.clone(), ("x-delivery-limit", text("5"))]),
            spec: "{type: quorum, deliveryLimit: 5}",
            desired: (durable(), &[quorum.clone(), ("x-delivery-limit", Argument::LongLongInt(5))]),
        },
    ];
    let compared = if Node::shared().at_least(3, 9) { &cases[..] } else { &cases[..cases.len() - 1] };
    expect_broker_errors(&vhost, &amqp, compared);
}

/// The management API does not show the AMQP type of an integer, but the broker's error contains it. Only in this type
/// can the predicted error differ.
#[test]
fn predicted_error_differs_only_in_integer_width() {
    let vhost = Node::shared().vhost("width");
    let amqp = vhost.amqp();
    amqp.declare_queue("q", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic}}");
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let broker_error = change(&plan, &format!("queues/{}/q", vhost.name()))["conflict"]["brokerError"].clone();
    let refusal = amqp.declare_queue("q", NONE).unwrap_err();
    assert_eq!(broker_error, refusal.replace("'signedint'", "'long'"));
}

#[test]
fn exchange_errors_match_the_broker() {
    let vhost = Node::shared().vhost("exchanges");
    let amqp = vhost.amqp();
    let durable = ExchangeDeclareOptions { durable: true, ..Default::default() };
    let transient = ExchangeDeclareOptions::default();
    let passing = ExchangeDeclareOptions { durable: true, auto_delete: true, ..Default::default() };
    let internal = ExchangeDeclareOptions { durable: true, internal: true, ..Default::default() };
    let to_a: &[(&str, Argument)] = &[("alternate-exchange", text("a"))];
    let to_b: &[(&str, Argument)] = &[("alternate-exchange", text("b"))];
    type Declared<'a> = (&'a str, ExchangeDeclareOptions, &'a [(&'a str, Argument)]);
    let cases: [(&str, Declared<'_>, &str, Declared<'_>); 9] = [
        ("type", ("topic", durable, NONE), "{type: fanout}", ("fanout", durable, NONE)),
        ("durable", ("topic", transient, NONE), "{type: topic}", ("topic", durable, NONE)),
        ("transient", ("topic", durable, NONE), "{type: topic, durable: false}", ("topic", transient, NONE)),
        ("stays", ("topic", passing, NONE), "{type: topic}", ("topic", durable, NONE)),
        ("passes", ("topic", durable, NONE), "{type: topic, autoDelete: true}", ("topic", passing, NONE)),
        ("internal", ("topic", durable, NONE), "{type: topic, internal: true}", ("topic", internal, NONE)),
        ("other-alternate", ("topic", durable, to_a), "{type: topic, alternateExchange: b}", ("topic", durable, to_b)),
        ("alternate", ("topic", durable, NONE), "{type: topic, alternateExchange: b}", ("topic", durable, to_b)),
        ("no-alternate", ("topic", durable, to_a), "{type: topic}", ("topic", durable, NONE)),
    ];
    let mut spec = "exchanges:\n  b: {type: fanout}\n".to_owned();
    amqp.declare_exchange("b", "fanout", NONE).unwrap();
    for (name, (kind, options, arguments), yaml, _) in &cases {
        amqp.declare_exchange_as(name, kind, *options, arguments).unwrap();
        spec.push_str(&format!("  {name}: {yaml}\n"));
    }
    let topo = Topo::new(&vhost).spec(&spec);
    let plan = topo.run(["plan", "--detailed-exitcode", "--format", "json"]).expect_code(3).plan();
    topo.run(["apply", "-y"]).expect_code(3);
    let mut wrong = Vec::new();
    for (name, _, _, (kind, options, arguments)) in &cases {
        let refusal = amqp.declare_exchange_as(name, kind, *options, arguments).unwrap_err();
        let broker_error = &change(&plan, &format!("exchanges/{}/{name}", vhost.name()))["conflict"]["brokerError"];
        if *broker_error != refusal.as_str() {
            wrong.push(format!("{name}:\n  broker {refusal}\n  topo   {broker_error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(plan["summary"]["conflict"], cases.len());
    assert_eq!(vhost.names("exchanges").len(), cases.len() + 1);
}

#[test]
fn equivalent_values_are_not_a_change() {
    let vhost = Node::shared().vhost("same");
    let amqp = vhost.amqp();
    for (name, value) in [
        ("short", Argument::ShortInt(30_000)),
        ("int", Argument::LongInt(30_000)),
        ("long", Argument::LongLongInt(30_000)),
    ] {
        amqp.declare_queue(name, &[("x-message-ttl", value)]).unwrap();
    }
    amqp.declare_queue("bare", NONE).unwrap();
    amqp.declare_queue("foreign", &[("x-custom", text("own"))]).unwrap();
    let topo = Topo::new(&vhost).spec(
        "queues:\n  short: {type: classic, messageTtl: 30s}\n  int: {type: classic, messageTtl: 30s}\n  long: {type: \
         classic, messageTtl: 30s}\n  bare: {type: classic}\n  foreign: {type: classic}\n",
    );
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes. 6 objects");
    plan.expect_text("argument x-custom differs (own → absent)");
    topo.run(["apply", "-y"]).expect_code(0).expect_text("No changes");
}

/// The statistics list consumers, but not clients that use `basic.get`. Therefore, an empty list does not prove that
/// the queue is unused.
#[test]
fn unacknowledged_messages_prove_a_client() {
    let vhost = Node::shared().vhost("taken");
    let amqp = vhost.amqp();
    amqp.declare_queue("orders", &[("x-message-ttl", Argument::LongInt(3_600_000))]).unwrap();
    amqp.fill("orders", 2);
    let _taken = amqp.keep_one("orders");
    let topo = Topo::new(&vhost).spec("queues:\n  orders: {type: classic, messageTtl: 30m}\n");
    let address = format!("queues/{}/orders", vhost.name());
    for how in ["discard", "migrate"] {
        let recreate = format!("--recreate={address}={how}");
        let screen = topo.run(["plan", &recreate]).expect_code(0);
        let screen = screen.expect_text("2 messages (1 unacknowledged) · no consumers listed");
        let screen =
            screen.expect_text("! consumer-disruption").expect_text("1 message is unacknowledged, and no consumer");
        screen.expect_text("with basic.get").expect_text(&format!("--allow consumer-disruption@{address}"));
        let refused = topo.run(["apply", "-y", &recreate, "--allow=message-loss,routing-gap"]).expect_code(3);
        refused.expect_text("consumer-disruption");
    }
    assert_eq!(amqp.ready("orders"), 1);
}

#[test]
fn conflict_shows_activity_and_resolutions() {
    let vhost = Node::shared().vhost("live");
    let amqp = vhost.amqp();
    amqp.declare_queue("orders", &[("x-message-ttl", Argument::LongInt(3_600_000))]).unwrap();
    amqp.fill("orders", 3);
    let consumers = [amqp.hold("orders", 1), amqp.hold("orders", 0)];
    amqp.declare_exchange("audit", "topic", NONE).unwrap();
    amqp.bind_queue("audit", "orders", "order.#", NONE);
    let topo = Topo::new(&vhost).spec("queues:\n  orders: {type: classic, messageTtl: 30m}\n");
    // The statistics list a new consumer with a delay.
    let screen = until("two consumers in the plan", || {
        let screen = topo.run(["plan"]).expect_code(0);
        screen.stdout.contains("· 2 consumers (127.0.0.1").then_some(screen)
    });
    let address = format!("queues/{}/orders", vhost.name());
    let expected = [
        "3600000 (1h) → 1800000 (30m)".to_owned(),
        "3 messages (2 unacknowledged) · 2 consumers (127.0.0.1".to_owned(),
        "messageTtl: 1h".to_owned(),
        "in place: the smaller of argument and policy applies".to_owned(),
        "definition: {messageTtl: 30m}".to_owned(),
        format!("--recreate {address}=ifEmpty"),
        format!("--recreate {address}=discard"),
    ];
    let screen = expected.iter().fold(screen, |screen, text| screen.expect_text(text));

    // With `--recreate`, the plan lists the hazards and the flags that allow them.
    let discard = format!("--recreate={address}=discard");
    let plan = topo.run(["plan", "--detailed-exitcode", &discard, "--format", "json"]).expect_code(3).plan();
    let change = change(&plan, &address);
    assert_eq!(change["kind"], "recreate");
    assert_eq!((&change["live"]["messages"], &change["live"]["unacknowledged"]), (&3.into(), &2.into()));
    assert_eq!(change["live"]["consumers"].as_array().map(Vec::len), Some(2));
    assert_eq!(change["kept"]["unmanaged"].as_array().map(Vec::len), Some(1));
    let kinds: Vec<&str> =
        plan["vhosts"][0]["hazards"].as_array().unwrap().iter().filter_map(|hazard| hazard["kind"].as_str()).collect();
    // The last hazard names the client of the consumers.
    assert_eq!(kinds, ["message-loss", "routing-gap", "consumer-disruption", "consumer-disruption"]);
    let shown = topo.run(["plan", &discard]).expect_code(0);
    for kind in kinds {
        assert!(shown.stdout.contains(&format!("--allow {kind}@{address}")), "{shown}");
    }
    let refused = topo.run(["plan", "--detailed-exitcode", &format!("--recreate={address}=ifEmpty")]).expect_code(3);
    refused.expect_text("it contains 3 messages, so `ifEmpty` does not recreate it");
    drop((screen, consumers));
    assert_eq!(amqp.ready("orders"), 3);
}
