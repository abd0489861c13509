//! Compares the properties keys that `rabbitmq::binding_key` predicts with those that the management API generates.

use serde_json::json;
use topo::rabbitmq::is_reproducible_over_http;

use crate::support::{Argument, NONE, Node};

#[test]
fn properties_key_shows_whether_http_can_copy_a_binding() {
    let vhost = Node::shared().vhost("made-by-http");
    let amqp = vhost.amqp();
    amqp.declare_exchange("h", "headers", NONE).unwrap();
    amqp.declare_queue("q", NONE).unwrap();
    let made = [
        json!({"n": 1, "x-match": "all"}),
        json!({"n": -1}),
        json!({"n": 134_217_727}),
        json!({"n": 134_217_728}),
        json!({"n": -134_217_729}),
        json!({"n": 1_700_000_000_123_i64}),
        json!({"n": i64::MIN}),
        json!({"f": 0.5, "g": -1e300}),
        json!({"t": "", "u": "twelve bytes", "v": "é and more than twelve bytes"}),
        json!({"b": true, "c": false}),
        json!({"l": [1, "two", [3.5, false], []]}),
        json!({"z": 1, "a": 2, "m": "undefined"}),
    ];
    for arguments in &made {
        let path = vhost.path("bindings", &["e", "h", "q", "q"]);
        vhost.http().post(&path, &json!({"routing_key": "k", "arguments": arguments})).expect_status(201);
    }
    let predictions = || -> Vec<Option<bool>> {
        let listed = vhost.list("bindings").into_iter().filter(|binding| binding["source"] == "h");
        let predicted = listed.map(|binding| {
            let arguments = serde_json::from_value(binding["arguments"].clone()).unwrap();
            let key = binding["properties_key"].as_str().unwrap();
            (is_reproducible_over_http(key, &arguments), binding)
        });
        predicted.inspect(|one| println!("{one:?}")).map(|one| one.0).collect()
    };
    assert_eq!(predictions(), vec![Some(true); made.len()]);
    let other = [
        ("n", Argument::LongInt(1)),
        ("n", Argument::ShortInt(1)),
        ("n", Argument::Timestamp(1)),
        ("v", Argument::Void),
        ("f", Argument::Float(0.5)),
    ];
    for (name, value) in other.clone() {
        amqp.bind_queue("h", "q", "typed", &[(name, value)]);
    }
    assert_eq!(predictions().iter().filter(|predicted| **predicted == Some(false)).count(), other.len());
}
