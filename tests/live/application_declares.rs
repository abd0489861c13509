//! Checks that declarations of applications, with the values that client libraries send, match the spec.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Argument, Node, Topo, text};

/// Queue types, spec keys with their arguments, and numbers.
const NUMBERS: [(&str, &str, &str, i32); 13] = [
    ("classic", "messageTtl", "x-message-ttl", 30_000),
    // A long expiry, so that the queue exists when it is read.
    ("classic", "expires", "x-expires", 3_600_000),
    ("classic", "maxLength", "x-max-length", 1_000),
    ("classic", "maxLengthBytes", "x-max-length-bytes", 32_000),
    ("classic", "maxPriority", "x-max-priority", 10),
    ("quorum", "messageTtl", "x-message-ttl", 30_000),
    ("quorum", "maxLength", "x-max-length", 1_000),
    ("quorum", "maxLengthBytes", "x-max-length-bytes", 32_000),
    ("quorum", "deliveryLimit", "x-delivery-limit", 5),
    ("quorum", "quorumInitialGroupSize", "x-quorum-initial-group-size", 1),
    ("stream", "maxLengthBytes", "x-max-length-bytes", 32_000),
    ("stream", "streamMaxSegmentSizeBytes", "x-stream-max-segment-size-bytes", 30_000),
    ("stream", "initialClusterSize", "x-initial-cluster-size", 1),
];

/// Queue types, spec keys with their arguments, and values that are not numbers, as YAML writes them.
const OTHERS: [(&str, &str, &str, &str); 9] = [
    ("classic", "singleActiveConsumer", "x-single-active-consumer", "true"),
    ("classic", "singleActiveConsumer", "x-single-active-consumer", "false"),
    ("quorum", "singleActiveConsumer", "x-single-active-consumer", "true"),
    ("quorum", "singleActiveConsumer", "x-single-active-consumer", "false"),
    ("classic", "overflow", "x-overflow", "reject-publish"),
    ("classic", "queueMode", "x-queue-mode", "lazy"),
    ("stream", "maxAge", "x-max-age", "7D"),
    ("stream", "maxAge", "x-max-age", "168h"),
    ("stream", "queueLeaderLocator", "x-queue-leader-locator", "client-local"),
];

/// Returns the number as every AMQP integer type that can represent it, signed and unsigned.
fn widths(number: i32) -> Vec<Argument> {
    let mut all = vec![Argument::LongInt(number), Argument::LongLongInt(number.into())];
    all.extend(i8::try_from(number).map(Argument::ShortShortInt));
    all.extend(u8::try_from(number).map(Argument::ShortShortUInt));
    all.extend(i16::try_from(number).map(Argument::ShortInt));
    all.extend(u16::try_from(number).map(Argument::ShortUInt));
    all.extend(u32::try_from(number).map(Argument::LongUInt));
    all
}

#[test]
fn integer_width_is_not_a_difference() {
    let node = Node::shared();
    let exists = |kind: &str, argument: &str| match (kind, argument) {
        ("stream", _) => node.at_least(3, 9),
        ("quorum", "x-message-ttl") => node.at_least(3, 10),
        _ => true,
    };
    let mut declared: Vec<(&str, &str, &str, Argument, String)> = Vec::new();
    for (kind, key, argument, number) in NUMBERS {
        declared.extend(widths(number).into_iter().map(|wire| (kind, key, argument, wire, number.to_string())));
    }
    for (kind, key, argument, word) in OTHERS {
        let wire = word.parse().map_or_else(|_| text(word), Argument::Boolean);
        declared.push((kind, key, argument, wire, word.to_owned()));
    }
    declared.retain(|(kind, _, argument, ..)| exists(kind, argument));

    let vhost = node.vhost("applications");
    let amqp = vhost.amqp();
    let mut spec = "owns: [\"*\"]\nqueues:\n".to_owned();
    let mut met: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (number, (kind, key, argument, wire, value)) in declared.iter().enumerate() {
        met.entry(kind).or_default().insert(format!("{:?}", wire.get_type()));
        let name = format!("application-{number}");
        let mut arguments = vec![(*argument, wire.clone())];
        // A queue that an application declares without a type is classic.
        if *kind != "classic" || number % 2 == 0 {
            arguments.push(("x-queue-type", text(kind)));
        }
        amqp.declare_queue(&name, &arguments).unwrap();
        spec.push_str(&format!("  {name}: {{type: {kind}, {key}: {value}}}\n"));
    }
    println!("RabbitMQ {}: {} queues, {met:?}", node.version(), declared.len());
    assert_eq!(vhost.names("queues").len(), declared.len());
    assert!(declared.len() >= 50);
    let topo = Topo::new(&vhost).spec(&spec);
    let unchanged = format!("No changes. {} objects", declared.len() + 1);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text(&unchanged);
    let plan = topo.run(["plan", "--prune", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["vhosts"][0]["changes"], serde_json::json!([]));
}
