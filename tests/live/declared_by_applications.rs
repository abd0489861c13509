//! What applications declared, with the integers that their libraries send, is what the spec says.

use crate::support::{Argument, Node, Topo, text};

/// Types of queues, keys of the spec with their arguments, and a value that fits into 16 bits.
const SETTINGS: [(&str, &str, &str, i16); 7] = [
    ("classic", "messageTtl", "x-message-ttl", 30_000),
    ("classic", "maxLength", "x-max-length", 1_000),
    ("classic", "maxLengthBytes", "x-max-length-bytes", 32_000),
    ("classic", "maxPriority", "x-max-priority", 10),
    ("quorum", "maxLength", "x-max-length", 1_000),
    ("quorum", "deliveryLimit", "x-delivery-limit", 5),
    ("quorum", "quorumInitialGroupSize", "x-quorum-initial-group-size", 1),
];

#[test]
fn the_same_values_in_any_width_are_no_change() {
    let vhost = Node::shared().vhost("applications");
    let amqp = vhost.amqp();
    let mut spec = "owns: [\"*\"]\nqueues:\n".to_owned();
    for number in 0..50 {
        let (kind, key, argument, value) = SETTINGS[number % SETTINGS.len()];
        // One more with each round, so that every setting comes with every width.
        let width = match (number / SETTINGS.len()) % 5 {
            0 => Argument::ShortInt(value),
            1 => Argument::LongInt(value.into()),
            2 => Argument::LongLongInt(value.into()),
            3 => Argument::ShortUInt(value.unsigned_abs()),
            _ => Argument::LongUInt(value.unsigned_abs().into()),
        };
        let name = format!("application-{number}");
        let mut arguments = vec![(argument, width)];
        // A classic queue is what an application gets that says no type.
        if kind != "classic" || number % 2 == 0 {
            arguments.push(("x-queue-type", text(kind)));
        }
        amqp.declare_queue(&name, &arguments).unwrap();
        spec.push_str(&format!("  {name}: {{type: {kind}, {key}: {value}}}\n"));
    }
    assert_eq!(vhost.names("queues").len(), 50);
    let topo = Topo::new(&vhost).spec(&spec);
    topo.run(["plan", "--prune", "--detailed-exitcode"]).expect_code(0).expect_text("No changes. 51 objects");
    let plan = topo.run(["plan", "--prune", "--format=json"]).expect_code(0).plan();
    assert_eq!(plan["vhosts"][0]["changes"], serde_json::json!([]));
}
