//! Tests the contracts of small specs. `tests/live/contract.rs` tests contracts with a broker.

use super::*;
use crate::expand::expand;
use crate::model::{BrokerVersion, VhostName};
use crate::spec::{SourceFile, Variables, parse};
use std::collections::BTreeMap;

/// Returns the contracts of a spec that consists of these lines and a header.
fn all(yaml: &str, version: BrokerVersion) -> Contracts {
    let text = format!("version: 1\nvhost: v\n{yaml}");
    let file = SourceFile { name: "t.yaml".to_owned(), text };
    let spec = parse(&[file], &Variables::new()).unwrap().vhosts.remove(0);
    let profile = BrokerProfile::of(version);
    let expansion = expand(&spec, &profile).unwrap();
    let vhosts = BTreeMap::from([(VhostName::new("v"), contracts(&spec, &expansion, &profile))]);
    Contracts { format_version: FORMAT_VERSION, broker_version: version, vhosts }
}

fn newest(yaml: &str) -> BTreeMap<QueueName, Contract> {
    all(yaml, BrokerVersion::NEWEST_KNOWN).vhosts.remove(&VhostName::new("v")).unwrap().queues
}

/// Returns the contract of queue `q`, which the spec declares with these keys.
fn one(keys: &str) -> Contract {
    let yaml = format!("queues: {{q: {{{keys}}}}}\ndeadLetterQueues: {{dead: {{type: classic}}}}\n");
    newest(&yaml).remove(&QueueName::new("q")).unwrap()
}

fn to(exchange: &str, keys: &[&str]) -> Option<Publish> {
    let routing_keys = keys.iter().map(|key| (*key).to_owned()).collect();
    Some(Publish { exchange: exchange.into(), routing_keys })
}

#[test]
fn ladder_requires_only_a_nack() {
    let contract = one("type: quorum, retry: {delays: [5s, 90s]}, maxRetries: 3, deadLetter: dead");
    assert_eq!((contract.max_retries, contract.deliveries), (3, 4));
    let waits: Vec<_> = contract.delays.iter().map(|wait| (wait.milliseconds, wait.text.as_str())).collect();
    assert_eq!(waits, [(5000, "5s"), (90_000, "1m30s"), (90_000, "1m30s")]);
    assert_eq!(contract.on_failure, Answer { publish: None, method: Method::Nack, requeue: Some(false) });
    assert_eq!(contract.on_give_up.publish, to("q.retry", &["q.retry.over"]));
    assert_eq!((contract.on_give_up.method, contract.on_give_up.requeue), (Method::Ack, None));
    assert_eq!(contract.retry_arrives.unwrap().exchange.as_str(), "q.return");
    assert_eq!(contract.original.unwrap().routing_key, "x-death[queue=q, reason=rejected].routing-keys[0]");
    assert_eq!(contract.dead_lettered_message.unwrap().publish, contract.on_give_up.publish);
    let dead_letters = contract.dead_letters.unwrap();
    assert_eq!((dead_letters.queue, dead_letters.exchange.as_str()), (Some("dead".into()), "dead.dlx"));
}

#[test]
fn republish_has_a_routing_key_for_each_retry() {
    let tiers = one("type: classic, retry: {strategy: republish, delays: [5s, 6s], jitter: 1s}, deadLetter: dead");
    assert_eq!(tiers.on_failure.publish, to("q.retry", &["1", "2"]));
    assert_eq!((tiers.on_failure.method, tiers.on_give_up.requeue), (Method::Ack, Some(false)));
    assert_eq!(tiers.jitter.unwrap().milliseconds, 1000);
    assert_eq!(tiers.counter.unwrap().header.as_deref(), Some("x-retry-count"));
    assert_eq!(tiers.retry_arrives.unwrap().routing_keys, ["q.retry.1", "q.retry.2"]);
    let back = one("type: classic, maxRetries: 1000000, retry: {strategy: republish}, deadLetter: dead");
    assert_eq!(back.on_failure.publish, to("", &["q"]));
    assert_eq!(back.retry_arrives.unwrap().routing_keys, ["q"]);
    assert!(back.delays.is_empty());
}

#[test]
fn queue_that_counts_deliveries_requires_basic_reject() {
    for keys in ["maxRetries: 3", "retry: {strategy: delayed, delays: [1s, 2s, 3s]}"] {
        let contract = one(&format!("type: quorum, {keys}"));
        assert_eq!(contract.on_failure, Answer { publish: None, method: Method::Reject, requeue: Some(true) });
        assert_eq!(contract.max_retries, 3);
        assert!(contract.warnings[0].starts_with("basic.nack with requeue=true is not counted by RabbitMQ 4.3"));
        assert_eq!(
            contract.warnings.last().unwrap(),
            "a message that is given up is dropped: there is no dead-letter exchange"
        );
        assert_eq!((contract.dead_lettered_message, contract.retry_arrives, contract.original), (None, None, None));
    }
}

#[test]
fn dead_letter_queue_is_found_for_each_wiring() {
    let destination = |yaml: &str| {
        let contract = newest(yaml).remove(&QueueName::new("q")).unwrap();
        let dead_letters = contract.dead_letters.unwrap();
        let queue = dead_letters.queue.map(|queue| queue.to_string());
        (queue, dead_letters.exchange.to_string(), contract.dead_lettered_message.unwrap().publish)
    };
    let dead = Some("dead".to_owned());
    let internal = "queues: {q: {type: classic, deadLetter: {queue: dead, wiring: policy}}}\n\
                    deadLetterQueues: {dead: {type: classic, exchange: {name: x, internal: true}}}\n";
    assert_eq!(destination(internal), (dead.clone(), "x".to_owned(), to("", &["dead"])));
    let by_policy = "queues: {q: {type: classic}, dead: {type: classic, bindings: [{exchange: x}]}}\n\
                     exchanges: {x: {type: fanout}}\n\
                     policies: {p: {pattern: '^q$', definition: {deadLetterExchange: x}}}\n";
    assert_eq!(destination(by_policy), (dead.clone(), "x".to_owned(), to("x", &["q"])));
    let straight =
        "queues: {q: {type: classic, deadLetter: {exchange: '', routingKey: dead}}, dead: {type: classic}}\n";
    assert_eq!(destination(straight), (dead, String::new(), to("", &["dead"])));
    let elsewhere = "queues: {q: {type: classic, deadLetter: {exchange: corp, routingKey: k}}}\n\
                     exchanges: {corp: {external: true}}\n";
    assert_eq!(destination(elsewhere), (None, "corp".to_owned(), to("corp", &["k"])));
}

#[test]
fn routing_key_selects_one_of_several_dead_letter_queues() {
    let found = newest(
        "queues:
  a: {type: classic, deadLetter: {exchange: DLX, routingKey: a}}
  b: {type: classic, deadLetter: {exchange: DLX, routingKey: b}}
  c: {type: classic, deadLetter: {exchange: DLX, routingKey: unbound}}
deadLetterQueues:
  a.dead: {type: classic, exchange: {name: DLX, type: direct, routingKey: a}}
  b.dead: {type: classic, exchange: {name: DLX, type: direct, routingKey: b}}
",
    );
    let dead_letter_queue = |queue: &str| found[&queue.into()].dead_letters.as_ref().unwrap().queue.clone();
    assert_eq!(["a", "b", "c"].map(dead_letter_queue), [Some("a.dead".into()), Some("b.dead".into()), None]);
}

#[test]
fn queues_without_retries_and_dead_lettering_have_no_contract() {
    let yaml = "queues: {plain: {type: classic}, log: {type: stream}, theirs: {external: true}}\n\
                deadLetterQueues: {dead: {type: classic}}\n";
    assert_eq!(newest(yaml), BTreeMap::new());
}

#[test]
fn intended_drops_have_warnings() {
    let dropped = |keys: &str| {
        let contract = one(&format!("type: classic, deadLetter: none{keys}"));
        assert!(contract.is_drop_intended && contract.dead_letters.is_none());
        contract.warnings.last().cloned().unwrap_or_default()
    };
    assert_eq!(dropped(""), "a message that is given up is dropped: `deadLetter: none` is set");
    assert_eq!(
        dropped(", messageTtl: 5s, maxLength: 9"),
        "a message that is given up, a message that expires and the oldest message of a full queue are dropped: `deadLetter: none` is set"
    );
    assert_eq!(
        dropped(", messageTtl: 5s, maxLength: 9, overflow: reject-publish"),
        "a message that is given up and a message that expires are dropped: `deadLetter: none` is set"
    );
    // A policy overrides `deadLetter: none`.
    let yaml = "queues: {q: {type: classic, deadLetter: none}}\n\
                policies: {p: {pattern: ^q$, definition: {deadLetterExchange: \"\", deadLetterRoutingKey: x}}}\n";
    let overridden = newest(yaml).remove(&QueueName::new("q")).unwrap();
    assert!(!overridden.is_drop_intended && overridden.dead_letters.is_some());
}

#[test]
fn variables_contain_the_contract() {
    let yaml = "queues:\n  orders.work: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: dead}\n  \
                \"1 é,$(x)'\": {type: classic, maxRetries: 1, retry: {strategy: republish}, deadLetter: dead}\n\
                deadLetterQueues: {dead: {type: quorum}}\n";
    let groups = variables(&all(yaml, BrokerVersion::new(3, 10, 0))).unwrap();
    let lines: Vec<String> = groups.concat().iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        lines,
        [
            "_1_____X___QUEUE=1 é,$(x)'",
            "_1_____X___STRATEGY=republish",
            "_1_____X___MAX_RETRIES=1",
            "_1_____X___DELIVERIES=2",
            "_1_____X___COUNT_HEADER=x-retry-count",
            "_1_____X___ON_FAILURE=publish",
            "_1_____X___ON_FAILURE_EXCHANGE=",
            "_1_____X___ON_FAILURE_THEN=basic.ack",
            "_1_____X___ON_FAILURE_ROUTING_KEY=1 é,$(x)'",
            "_1_____X___GIVE_UP=basic.nack",
            "_1_____X___GIVE_UP_REQUEUE=false",
            "_1_____X___DEAD_LETTER_EXCHANGE=dead.dlx",
            "_1_____X___DEAD_LETTER_QUEUE=dead",
            "_1_____X___DURABLE=true",
            "_1_____X___AUTO_DELETE=false",
            r#"_1_____X___DECLARE_ARGUMENTS={"x-dead-letter-exchange":"dead.dlx","x-queue-type":"classic"}"#,
            "ORDERS_WORK_QUEUE=orders.work",
            "ORDERS_WORK_STRATEGY=ladder",
            "ORDERS_WORK_MAX_RETRIES=2",
            "ORDERS_WORK_DELIVERIES=3",
            "ORDERS_WORK_DELAYS_MS=5000,30000",
            "ORDERS_WORK_ON_FAILURE=basic.nack",
            "ORDERS_WORK_ON_FAILURE_REQUEUE=false",
            "ORDERS_WORK_GIVE_UP=publish",
            "ORDERS_WORK_GIVE_UP_EXCHANGE=orders.work.retry",
            "ORDERS_WORK_GIVE_UP_THEN=basic.ack",
            "ORDERS_WORK_GIVE_UP_ROUTING_KEY=orders.work.retry.over",
            "ORDERS_WORK_DEAD_LETTER_EXCHANGE=dead.dlx",
            "ORDERS_WORK_DEAD_LETTER_QUEUE=dead",
            "ORDERS_WORK_DURABLE=true",
            "ORDERS_WORK_AUTO_DELETE=false",
            r#"ORDERS_WORK_DECLARE_ARGUMENTS={"x-dead-letter-exchange":"orders.work.dlx","x-queue-type":"quorum"}"#,
        ]
    );
}

#[test]
fn variables_with_the_same_name_are_an_error() {
    let clash = |names: [&str; 2]| {
        let [a, b] = names.map(|name| format!("{name}: {{type: classic, deadLetter: dead}}"));
        let yaml = format!("queues: {{{a}, {b}}}\ndeadLetterQueues: {{dead: {{type: classic}}}}\n");
        variables(&all(&yaml, BrokerVersion::NEWEST_KNOWN)).err().map(|clash| clash.to_string())
    };
    let expected = "A_B_QUEUE would be set by two queues: `a-b` and `a.b`";
    assert_eq!(clash(["a.b", "a-b"]).as_deref(), Some(expected));
    // Both queues would have the variable `A_DEAD_LETTER_QUEUE`.
    let expected = "A_DEAD_LETTER_QUEUE would be set by two queues: `a` and `a.dead-letter`";
    assert_eq!(clash(["a", "a.dead-letter"]).as_deref(), Some(expected));
    assert_eq!(clash(["a", "b"]), None);
}

#[test]
fn replay_describes_the_copy_and_the_time_of_its_retries() {
    let replay = |keys: &str| one(keys).replay;
    let ladder = replay("type: quorum, retry: {delays: [5s, 90s]}, deadLetter: dead").unwrap();
    assert_eq!(Some(ladder.publish.clone()), to("", &["q"]));
    assert_eq!((ladder.retries_take.milliseconds, ladder.retries_take.text.as_str()), (95_000, "1m35s"));
    assert!(ladder.without_headers.iter().any(|name| name == "x-death"));
    assert!(ladder.warnings[0].contains("if the copy keeps the routing key q.retry.2"));
    let redelivered = replay("type: quorum, maxRetries: 2, retry: {strategy: redeliver}, deadLetter: dead").unwrap();
    assert_eq!(redelivered.retries_take.milliseconds, 0);
    assert_eq!(replay("type: classic, deadLetter: none"), None);
}

#[test]
fn thresholds_of_queues_and_dead_letter_queues_are_listed() {
    let yaml = "queues:
  plain: {type: classic, deadLetter: dead}
  \
                busy: {type: classic, deadLetter: quiet, thresholds: {growth: {critical: {messages: 5, within: 2m}}, noConsumers: 1h}}
\
                deadLetterQueues: {dead: {type: classic, thresholds: {age: {warning: 1h}}}, quiet: {type: classic, thresholds: none}}
";
    let contracts = all(yaml, BrokerVersion::NEWEST_KNOWN).vhosts.remove(&VhostName::new("v")).unwrap();
    let names: Vec<&str> = contracts.thresholds.keys().map(QueueName::as_str).collect();
    assert_eq!(names, ["busy", "dead"]);
    let (busy, dead) = (&contracts.thresholds[&QueueName::new("busy")], &contracts.thresholds[&QueueName::new("dead")]);
    let growth = busy.growth.critical.as_ref().map(|it| (it.messages, it.within.milliseconds));
    assert_eq!((growth, busy.no_consumers.clone().map(|it| it.text)), (Some((5, 120_000)), Some("1h".to_owned())));
    assert_eq!((dead.depth.warning, dead.depth.critical), (Some(50), Some(200)));
    assert_eq!(dead.age.warning.clone().map(|it| it.milliseconds), Some(3_600_000));
}

#[test]
fn declaration_matches_the_topology() {
    let declared = |keys: &str| {
        let declaration = one(keys).declaration;
        let arguments = serde_json::to_string(&declaration.arguments).unwrap();
        (declaration.durable, declaration.auto_delete, declaration.exclusive, arguments)
    };
    assert_eq!(
        declared("type: classic, deadLetter: none, maxPriority: 5, messageTtl: 1m, durable: false, autoDelete: true"),
        (false, true, false, r#"{"x-max-priority":5,"x-message-ttl":60000,"x-queue-type":"classic"}"#.to_owned())
    );
    assert_eq!(
        declared("type: quorum, deadLetter: dead, maxRetries: 3"),
        (
            true,
            false,
            false,
            r#"{"x-dead-letter-exchange":"dead.dlx","x-delivery-limit":3,"x-queue-type":"quorum"}"#.to_owned()
        )
    );
    // Policy settings are not part of a declaration.
    let by_policy = declared("type: quorum, retry: {delays: [5s]}, deadLetter: {queue: dead, wiring: policy}");
    assert_eq!(by_policy.3, r#"{"x-queue-type":"quorum"}"#);
}

#[test]
fn declaration_equals_the_request_of_an_apply() {
    let (queue, name) = (QueueName::new("q \"%"), "x-odd".to_owned());
    let arguments = [(name, crate::model::ArgumentValue::Float(crate::model::Float(5.0)))].into();
    let object = crate::model::Queue { durable: false, auto_delete: true, exclusive: false, arguments };
    let declaration = serde_json::to_value(Declaration::of(&queue, &object)).unwrap();
    let request = crate::model::encoding::queue(&object);
    assert_eq!(declaration["queue"], "q \"%");
    for (declared, requested) in [("durable", "durable"), ("autoDelete", "auto_delete"), ("arguments", "arguments")] {
        assert_eq!(declaration[declared].to_string(), request[requested].to_string());
    }
}
