//! Bindings: identity, properties keys, and limits of the management API.

use std::collections::BTreeSet;

use lapin::protocol::basic::AMQPProperties;
use lapin::types::FieldTable;
use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Argument, NONE, Outcome};

/// Creates a vhost with a queue `q` and a headers exchange `h`.
fn stage(hint: &str) -> Stage {
    let stage = Stage::new(hint);
    stage.queue("q", "classic", json!({})).expect_created();
    stage.put("exchanges", "h", json!({"type": "headers", "durable": true})).expect_created();
    stage
}

/// Returns the routing keys and the properties keys of the bindings of `h`, sorted by properties key.
fn keys(stage: &Stage) -> Vec<(Value, String)> {
    let listed = stage.vhost.list("bindings");
    let keys = listed.iter().filter(|binding| binding["source"] == "h");
    let mut keys: Vec<(Value, String)> = keys
        .map(|binding| (binding["routing_key"].clone(), binding["properties_key"].as_str().unwrap().to_owned()))
        .collect();
    keys.sort_by(|one, other| one.1.cmp(&other.1));
    keys
}

/// Deletes a binding of `h` to `q` by this path segment.
fn unbind(stage: &Stage, segment: &str) -> u16 {
    stage.http.delete(&format!("{}/{segment}", stage.path("bindings", &["e", "h", "q", "q"]))).status
}

/// Used by `broker::perform`, which can repeat a bind.
#[test]
fn repeated_binding_is_201_without_effect() {
    let stage = stage("again");
    for _ in 0..2 {
        stage.bind("h", "q", json!({"routing_key": "k", "arguments": {"n": 1}})).expect_created();
    }
    assert_eq!(keys(&stage).len(), 1);
    stage.bind("h", "q", json!({"routing_key": "k", "arguments": {"n": 2}})).expect_created();
    stage.bind("h", "q", json!({"routing_key": "other", "arguments": {"n": 1}})).expect_created();
    assert_eq!(keys(&stage).len(), 3, "source, destination, key and arguments are the identity");
}

/// Used by `rabbitmq::declare::binding`.
#[test]
fn topic_key_with_many_hashes_is_refused_by_the_newest() {
    let stage = stage("hashes");
    stage.bind("amq.topic", "q", json!({"routing_key": "#.a.#"})).expect_created();
    let answer = stage.bind("amq.topic", "q", json!({"routing_key": "#.a.#.b.#"}));
    if stage.vhost.node().is_at_least_patch(4, 3, 5) {
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.words.contains("uses 3 '#' wildcards, at most 2 are allowed"), "{answer:?}");
    } else {
        answer.expect_created();
    }
}

/// Used by `plan::request`, which always sends both fields.
#[test]
fn missing_routing_key_is_empty() {
    let stage = stage("keyless");
    stage.bind("h", "q", json!({})).expect_created();
    stage.bind("h", "q", json!({"routing_key": "", "arguments": {}})).expect_created();
    assert_eq!(keys(&stage), [(json!(""), "~".to_owned())]);
}

/// Used by `broker::snapshot`, which keeps the listed key unchanged.
#[test]
fn properties_key_is_the_encoded_routing_key_and_a_hash_of_the_arguments() {
    let stage = stage("properties-key");
    for (key, expected) in [
        ("a.b-c_d", "a.b-c_d"),
        ("with space", "with+space"),
        ("a+b", "a%2Bb"),
        ("a/b", "a%2Fb"),
        ("a~b", "a%7Eb"),
        ("a*b#", "a%2Ab%23"),
        ("é", "%C3%A9"),
    ] {
        stage.bind("h", "q", json!({"routing_key": key})).expect_created();
        assert!(keys(&stage).contains(&(json!(key), expected.to_owned())), "{key}: {:?}", keys(&stage));
    }
    let stage = self::stage("hash");
    stage.bind("h", "q", json!({"routing_key": "k", "arguments": {"n": 1}})).expect_created();
    stage.bind("h", "q", json!({"routing_key": "", "arguments": {"n": 1}})).expect_created();
    let hashed: Vec<String> = keys(&stage).into_iter().map(|(_, key)| key).collect();
    assert!(hashed[0] == format!("k{}", hashed[1]) && hashed[1].starts_with('~') && hashed[1].len() > 1, "{hashed:?}");
}

/// Used by `plan::request`, which percent-encodes the listed key again in the path, like any name.
#[test]
fn binding_is_deleted_by_its_listed_key_encoded_again() {
    let stage = stage("delete");
    for (key, right, wrong) in
        [("a~b", "a%257Eb", Some("a%7Eb")), ("a b", "a%2Bb", None), ("plain", "plain", None), ("a/b", "a%252Fb", None)]
    {
        stage.bind("h", "q", json!({"routing_key": key})).expect_created();
        if let Some(wrong) = wrong {
            assert_eq!(unbind(&stage, wrong), 404, "{key}");
        }
        assert_eq!((unbind(&stage, right), unbind(&stage, right)), (204, 404), "{key}");
    }
    assert_eq!(keys(&stage), []);
}

/// Used by `plan::request`: unlike a name, an encoded key can be a dot segment.
#[test]
fn routing_key_of_dots_is_deleted_by_its_key_encoded_twice() {
    let stage = stage("dots");
    for (key, segment) in [(".", "%252E"), ("..", "%252E%252E")] {
        stage.bind("h", "q", json!({"routing_key": key})).expect_created();
        assert_eq!(keys(&stage), [(json!(key), key.to_owned())]);
        assert_eq!(unbind(&stage, segment), 204, "{key}");
    }
    assert_eq!(keys(&stage), []);
}

/// Used by `broker::snapshot`: several bindings can be equal in JSON, and each is deleted by its own key.
#[test]
fn equal_arguments_in_json_can_be_several_bindings() {
    let stage = stage("twins");
    let amqp = stage.amqp();
    for width in [Argument::LongInt(1), Argument::ShortInt(1)] {
        amqp.bind_queue("h", "q", "k", &[("n", width)]);
    }
    stage.bind("h", "q", json!({"routing_key": "k", "arguments": {"n": 1}})).expect_created();
    let listed = stage.vhost.list("bindings");
    assert!(listed.iter().all(|binding| binding["arguments"] == json!({"n": 1})), "{listed:?}");
    let own: BTreeSet<String> = keys(&stage).into_iter().map(|(_, key)| key).collect();
    assert_eq!(own.len(), 3);
    for key in own {
        assert_eq!(unbind(&stage, &key), 204);
    }
    assert_eq!(keys(&stage), []);
}

/// Used by `broker::perform`. `spec` refuses to declare such keys.
#[test]
fn routing_keys_null_and_undefined_cannot_be_deleted_over_http() {
    let stage = stage("atoms");
    for key in ["null", "undefined"] {
        stage.bind("h", "q", json!({"routing_key": key})).expect_created();
        for segment in [key.to_owned(), format!("{key}~"), format!("%2522{key}%2522")] {
            assert_eq!(unbind(&stage, &segment), 404, "{segment}");
        }
    }
    let left: Vec<Value> = keys(&stage).into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, ["null", "undefined"]);
}

/// Used by `broker::wire::Binding`: a listed routing key may be null, and this binding can be deleted.
#[test]
fn routing_key_null_in_the_request_is_null_in_the_list() {
    let stage = stage("null-key");
    stage.bind("h", "q", json!({"routing_key": null})).expect_created();
    assert_eq!(keys(&stage), [(json!(null), "null".to_owned())]);
    assert_eq!(unbind(&stage, "null"), 204);
    assert_eq!(keys(&stage), []);
}

/// Used by `rabbitmq::binding_key`: topo never creates such a binding.
#[test]
fn tilde_in_a_key_with_arguments_breaks_every_list() {
    let stage = stage("tilde");
    let list = stage.path("bindings", &[]);
    for harmless in [
        json!({"routing_key": "a~b"}),
        json!({"routing_key": "~", "arguments": {"n": 1}}),
        json!({"routing_key": "a~", "arguments": {"n": 1}}),
    ] {
        stage.bind("h", "q", harmless).expect_created();
        stage.http.get(&list).expect_status(200);
    }
    assert_eq!(stage.bind("h", "q", json!({"routing_key": "a~b", "arguments": {"n": 1}})).status, 500);
    for path in [list, stage.path("queues", &["q", "bindings"]), stage.path("bindings", &["e", "h", "q", "q"])] {
        assert_eq!(stage.http.get(&path).status, 500, "{path}");
    }
}

/// Used by `plan::recreate`: HTTP cannot represent this AMQP argument. The list shows it as a string, but it matches
/// the header with any value.
#[test]
fn void_argument_is_listed_as_undefined_and_cannot_be_sent() {
    let stage = stage("void");
    let amqp = stage.amqp();
    let mut inner = FieldTable::default();
    inner.insert("n".into(), Argument::Void);
    amqp.bind_queue("h", "q", "k", &[("n", Argument::Void)]);
    amqp.bind_queue("h", "q", "table", &[("t", Argument::FieldTable(inner))]);
    amqp.bind_queue("h", "q", "list", &[("l", Argument::FieldArray(vec![Argument::Void].into()))]);
    let shown: Vec<Value> =
        stage.vhost.list("bindings").into_iter().map(|binding| binding["arguments"].clone()).collect();
    assert_eq!(shown, [json!({"n": "undefined"}), json!({"l": ["undefined"]}), json!({"t": {"n": "undefined"}})]);
    assert_eq!(stage.bind("h", "q", json!({"routing_key": "k", "arguments": {"n": null}})).status, 500);

    let mut headers = FieldTable::default();
    headers.insert("n".into(), Argument::LongInt(5));
    let properties = || AMQPProperties::default().with_headers(headers.clone());
    assert_eq!(amqp.publish_with("h", "", "there", properties()), Outcome::Routed);
    stage.put("exchanges", "text", json!({"type": "headers", "durable": true})).expect_created();
    stage.bind("text", "q", json!({"routing_key": "k", "arguments": {"n": "undefined"}})).expect_created();
    assert_eq!(amqp.publish_with("text", "", "not the text", properties()), Outcome::Unroutable);
}

/// Used by `broker::snapshot`: every queue is listed as bound to the default exchange, and such a binding cannot be
/// changed.
#[test]
fn bindings_of_the_default_exchange_are_listed_and_cannot_be_created() {
    let stage = stage("default");
    let listed = stage.http.get(&stage.path("bindings", &[])).expect_status(200);
    let own = json!({"source": "", "vhost": stage.vhost.name(), "destination": "q", "destination_type": "queue",
                     "routing_key": "q", "arguments": {}, "properties_key": "q"});
    assert_eq!(listed, json!([own]));
    stage.bind("", "q", json!({"routing_key": "k"})).expect(401, "Access refused.");
}

/// Used by `plan::order`, which declares exchanges and queues before bindings.
#[test]
fn both_ends_of_a_binding_must_exist() {
    let stage = stage("ends");
    let body = || json!({"routing_key": "k"});
    stage.bind("none", "q", body()).expect(404, "no exchange 'none' in vhost 'v'");
    stage.bind("h", "none", body()).expect(404, "no queue 'none' in vhost 'v'");
    stage.bind_exchange("h", "none").expect(404, "no exchange 'none' in vhost 'v'");
    stage.bind_exchange("amq.topic", "amq.fanout").expect_created();
}

/// Used by `broker::error`: newer versions refuse a binding with long arguments with a 400.
#[test]
fn binding_is_limited_to_5000_bytes_since_4_0() {
    let stage = stage("long");
    let body = |bytes: usize| {
        let rest = json!({"routing_key": "k", "arguments": {"a": ""}}).to_string().len();
        json!({"routing_key": "k", "arguments": {"a": "z".repeat(bytes - rest)}})
    };
    stage.bind("h", "q", body(5_000)).expect_created();
    let reply = stage.bind("h", "q", body(5_001));
    if since(4, 0) {
        reply.expect_refusal("Payload size limit exceeded");
    } else {
        reply.expect_created();
    }
    // An AMQP client can create such a binding.
    stage.amqp().bind_queue("h", "q", "k", &[("a", crate::support::text(&"y".repeat(6_000)))]);
    stage.amqp().bind_queue("h", "q", "amqp", NONE);
}
