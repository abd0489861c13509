//! Tests the exchange types of RabbitMQ's own plugins: topo's verdict matches the broker's response.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Node, Options, Topo};

const PLUGINS: [&str; 5] = [
    "rabbitmq_recent_history_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_jms_topic_exchange",
    "rabbitmq_sharding",
    "rabbitmq_federation",
];

/// Returns exchange types, each with current and desired arguments.
fn cases(types: &BTreeSet<String>) -> Vec<(String, Value, Value)> {
    let own: &[(&str, Value, Value)] = &[
        ("x-recent-history", json!({}), json!({"x-recent-history-length": 5})),
        ("x-recent-history", json!({"x-recent-history-length": 5}), json!({"x-recent-history-length": 7})),
        ("x-recent-history", json!({"x-recent-history-length": 5}), json!({})),
        ("x-recent-history", json!({"x-recent-history-length": 5}), json!({"x-recent-history-length": 0})),
        ("x-recent-history", json!({"x-recent-history-length": 5}), json!({"x-recent-history-length": "5"})),
        ("x-federation-upstream", json!({"x-max-hops": 1}), json!({"x-max-hops": 2})),
        ("x-federation-upstream", json!({"x-max-hops": 1}), json!({"x-max-hops": 1})),
        ("x-consistent-hash", json!({"hash-header": "a"}), json!({"hash-header": "b"})),
    ];
    let of_any_type = [
        (json!({}), json!({})),
        (json!({}), json!({"alternate-exchange": "amq.fanout"})),
        (json!({"alternate-exchange": "amq.fanout"}), json!({"alternate-exchange": "amq.topic"})),
        (json!({"alternate-exchange": "amq.fanout"}), json!({"alternate-exchange": "amq.fanout"})),
        (json!({}), json!({"x-unknown": 1})),
        (json!({"x-max-hops": 1}), json!({"x-max-hops": 2})),
        (json!({"x-recent-history-length": 1}), json!({"x-recent-history-length": 2})),
    ];
    let own = own.iter().map(|(kind, live, desired)| ((*kind).to_owned(), live.clone(), desired.clone()));
    let every = types
        .iter()
        .flat_map(|kind| of_any_type.iter().map(move |(live, desired)| (kind.clone(), live.clone(), desired.clone())));
    own.filter(|(kind, ..)| types.contains(kind)).chain(every).collect()
}

#[test]
fn plugin_exchange_verdicts_match_the_broker() {
    let options = PLUGINS.iter().fold(Options::default(), |options, plugin| options.plugin(plugin));
    let node = Node::start(options);
    let overview = node.http().get("/api/overview").expect_status(200);
    let listed = overview["exchange_types"].as_array().unwrap();
    let types: BTreeSet<String> = listed.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    for known in ["x-recent-history", "x-random", "x-jms-topic", "x-modulus-hash"] {
        assert!(types.contains(known), "{known} is not among {types:?}");
    }
    let vhost = node.vhost("plugins");
    let put = |name: &str, kind: &str, arguments: &Value| {
        let body =
            json!({"type": kind, "durable": true, "auto_delete": false, "internal": false, "arguments": arguments});
        vhost.http().put(&vhost.path("exchanges", &[name]), &body)
    };
    let mut played = Vec::new();
    let mut desired_exchanges = serde_json::Map::new();
    for (number, (kind, live, desired)) in cases(&types).into_iter().enumerate() {
        let name = format!("e{number}");
        // Some types require a permission.
        if put(&name, &kind, &live).status != 201 {
            continue;
        }
        let mut arguments = desired.clone();
        let alternate = arguments.as_object_mut().unwrap().remove("alternate-exchange");
        let mut entry = json!({"type": kind, "arguments": arguments});
        if let Some(alternate) = alternate {
            entry["alternateExchange"] = alternate;
        }
        desired_exchanges.insert(name.clone(), entry);
        played.push((name, kind, live, desired));
    }
    assert!(played.len() > 40, "{} cases", played.len());
    let topo = Topo::new(&vhost).spec(&format!("exchanges: {}\n", Value::Object(desired_exchanges)));
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
    let mut wrong = Vec::new();
    for (name, kind, live, desired) in &played {
        let address = format!("exchanges/{}/{name}", vhost.name());
        let fields = changes.iter().filter(|change| change["address"] == address.as_str());
        let fields: Vec<&Value> = fields.flat_map(|change| change["fields"].as_array().unwrap()).collect();
        let says = |verdict: &str| fields.iter().any(|field| field["verdict"] == verdict);
        let (fresh, again) = (put(&format!("{name}.new"), kind, desired), put(name, kind, desired));
        let expected = (says("invalid"), says("invalid") || says("conflict"));
        // The broker may refuse a new declaration, but accept the same redeclaration of an existing exchange. The plan
        // predicts the new declaration.
        let seen = (!fresh.is_success(), !again.is_success() || !fresh.is_success());
        if expected != seen {
            wrong.push(format!("{kind} {live} → {desired}: {fields:?}, but {fresh:?}, {again:?}"));
        }
    }
    assert!(wrong.is_empty(), "RabbitMQ {}:\n{}", node.version(), wrong.join("\n"));
}
