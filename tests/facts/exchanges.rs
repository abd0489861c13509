//! Exchanges: differences, deletions, and auto-delete (`rabbit_exchange`).

use serde_json::{Value, json};

use super::{Reply, Stage, since};
use crate::support::topic_permissions::{khepri, permissions, restrict};
use crate::support::{Node, Outcome, until};

fn topic(stage: &Stage, name: &str) {
    stage.put("exchanges", name, json!({"type": "topic", "durable": true})).expect_created();
}

fn auto_delete(stage: &Stage, name: &str) {
    stage.put("exchanges", name, json!({"type": "fanout", "durable": true, "auto_delete": true})).expect_created();
}

fn expect_difference(reply: Reply, field: &str, tail: &str) {
    reply.expect_refusal(&format!("inequivalent arg '{field}' for exchange 'e' in vhost 'v': {tail}"));
}

/// Waits until the vhost has exactly these exchanges, in addition to the predeclared exchanges.
fn until_exchanges_are(stage: &Stage, names: &[&str]) {
    until(&format!("the exchanges {names:?}"), || (stage.vhost.names("exchanges") == names).then_some(()));
}

/// Used by `rabbitmq::profile`, which lists the exchanges of a new vhost with their types. The exchange for tracing
/// is internal.
#[test]
fn new_vhost_has_seven_exchanges() {
    let stage = Stage::new("predeclared");
    let all = stage.http.get(&stage.path("exchanges", &[])).expect_status(200);
    let mut found: Vec<(String, String, bool)> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap().to_owned();
            assert!(it["durable"] == true && it["auto_delete"] == false && it["arguments"] == json!({}), "{it}");
            (text("name"), text("type"), it["internal"] == true)
        })
        .collect();
    found.sort();
    let expected = [
        ("", "direct", false),
        ("amq.direct", "direct", false),
        ("amq.fanout", "fanout", false),
        ("amq.headers", "headers", false),
        ("amq.match", "headers", false),
        ("amq.rabbitmq.trace", "topic", true),
        ("amq.topic", "topic", false),
    ];
    assert_eq!(found, expected.map(|(name, kind, internal)| (name.to_owned(), kind.to_owned(), internal)));
}

/// Used by `rabbitmq::profile`: a policy governs predeclared exchanges, too.
#[test]
fn policies_govern_predeclared_exchanges() {
    let stage = Stage::new("governed");
    let policy = json!({"pattern": ".*", "apply-to": "exchanges", "definition": {"alternate-exchange": "amq.fanout"}});
    stage.http.put(&stage.path("policies", &["all"]), &policy).expect_status(201);
    for name in ["amq.topic", "amq.rabbitmq.trace"] {
        let exchange = || stage.http.get(&stage.path("exchanges", &[name])).expect_status(200);
        until(&format!("the policy of {name}"), || (exchange()["policy"] == "all").then_some(()));
    }
}

/// Used by `plan::topic_permissions`: Khepri deletes topic permissions together with their exchange, Mnesia keeps them.
#[test]
fn khepri_deletes_topic_permissions_with_their_exchange() {
    let keeps = |node: &'static Node| {
        let vhost = node.vhost("restricted");
        let topic = json!({"type": "topic", "durable": true});
        let exchange = vhost.path("exchanges", &["e"]);
        vhost.http().put(&exchange, &topic).expect_status(201);
        restrict(&vhost, "guest", "e", "^a");
        assert_eq!(vhost.http().delete(&exchange).status, 204);
        vhost.http().put(&exchange, &topic).expect_status(201);
        permissions(&vhost) == ["guest: ^a on e"]
    };
    assert_eq!(keeps(Node::shared()), !since(4, 3));
    assert!(!khepri().is_some_and(keeps));
}

/// Used by `broker::topic_permissions`, which detects the metadata store of a broker.
#[test]
fn feature_flag_of_khepri_is_read_with_the_tag_management() {
    let Some(node) = khepri() else { return };
    let state_on = |node: &'static Node| {
        let user = node.user("management");
        let flags = user.http().get("/api/feature-flags").expect_status(200);
        let flag = flags.as_array().unwrap().iter().find(|flag| flag["name"] == "khepri_db").map(|flag| &flag["state"]);
        flag.and_then(Value::as_str).map(str::to_owned)
    };
    assert_eq!(state_on(node).as_deref(), Some("enabled"));
    if !since(4, 3) {
        assert_eq!(state_on(Node::shared()).as_deref(), Some("disabled"));
    }
}

/// Used by `render::definitions`: before 4.3, an imported topic permission prevents the import of its exchange.
#[test]
fn import_of_topic_permissions_with_their_exchange_works_from_4_3_on() {
    let Some(node) = khepri() else { return };
    let vhost = node.vhost("import");
    let restriction = json!({"vhost": vhost.name(), "user": "guest", "exchange": "e", "write": "^a", "read": ".*"});
    let exchange = json!({
        "vhost": vhost.name(), "name": "e", "type": "topic", "durable": true, "auto_delete": false, "internal": false,
        "arguments": {},
    });
    let file = json!({"exchanges": [exchange], "topic_permissions": [restriction]});
    assert!(vhost.http().post("/api/definitions", &file).is_success());
    assert_eq!(!vhost.exchange("e").is_null(), since(4, 3));
    assert_eq!(permissions(&vhost), ["guest: ^a on e"]);
}

/// Used by `plan::verdict`: the broker compares these fields in this order, and reports only the first difference.
#[test]
fn type_durable_auto_delete_and_internal_are_compared_in_this_order() {
    let stage = Stage::new("fields");
    topic(&stage, "e");
    let again = |body: Value| stage.put("exchanges", "e", body);
    let all = json!({"type": "fanout", "durable": false, "auto_delete": true, "internal": true});
    expect_difference(again(all), "type", "received 'fanout' but current is 'topic'");
    let three = json!({"type": "topic", "durable": false, "auto_delete": true, "internal": true});
    expect_difference(again(three), "durable", "received 'false' but current is 'true'");
    let two = json!({"type": "topic", "durable": true, "auto_delete": true, "internal": true});
    expect_difference(again(two), "auto_delete", "received 'true' but current is 'false'");
    let one = json!({"type": "topic", "durable": true, "internal": true, "arguments": {"alternate-exchange": "b"}});
    expect_difference(again(one), "internal", "received 'true' but current is 'false'");
    let last = json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": "b"}});
    expect_difference(
        again(last),
        "alternate-exchange",
        "received the value 'b' of type 'longstr' but current is none",
    );
    again(json!({"type": "topic", "durable": true})).expect_no_content();
}

/// Used by `plan::verdict`: a difference in another argument is drift, which no redeclaration reports.
#[test]
fn alternate_exchange_is_the_only_compared_argument_of_an_exchange() {
    let stage = Stage::new("arguments");
    let hashed =
        |header: &str| json!({"type": "x-consistent-hash", "durable": true, "arguments": {"hash-header": header}});
    stage.put("exchanges", "e", hashed("a")).expect_created();
    stage.put("exchanges", "e", hashed("b")).expect_no_content();
    assert_eq!(stage.get("exchanges", "e")["arguments"], json!({"hash-header": "a"}));
    topic(&stage, "plain");
    stage
        .put("exchanges", "plain", json!({"type": "topic", "durable": true, "arguments": {"x-foo": 1}}))
        .expect_no_content();
    assert_eq!(stage.get("exchanges", "plain")["arguments"], json!({}));
}

/// Used by `plan::conflict`, which reports an unlisted type before any change, and by `plan::verdict`.
#[test]
fn unlisted_exchange_type_is_refused() {
    let stage = Stage::new("types");
    let overview = stage.http.get("/api/overview").expect_status(200);
    let types: Vec<&str> =
        overview["exchange_types"].as_array().unwrap().iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    for kind in &types {
        // Only the federation plugin declares exchanges of this type, with arguments.
        if *kind == "x-federation-upstream" {
            continue;
        }
        // 4.x has a type that accepts no other durable exchange. All other types can be declared.
        let reply = stage.put("exchanges", kind, json!({"type": kind, "durable": true}));
        assert_eq!(reply.status, 201, "{kind}: {reply:?}");
    }
    assert!(["direct", "fanout", "headers", "topic", "x-consistent-hash"].iter().all(|kind| types.contains(kind)));
    // Over AMQP, the error depends on the version (`rabbit_exchange:check_type`).
    let name = if since(4, 0) { "PRECONDITION_FAILED" } else { "COMMAND_INVALID" };
    for kind in ["x-delayed-message", "nonsense"] {
        assert!(!types.contains(&kind));
        let error = stage.amqp().declare_exchange("e", kind, &[]).unwrap_err();
        assert!(error.contains(&format!("{name} - unknown exchange type '{kind}'")), "{error}");
        stage
            .put("exchanges", "e", json!({"type": kind, "durable": true}))
            .expect_refusal(&format!("unknown exchange type '{kind}'"));
    }
}

/// Used by `plan::order`, which creates alternate exchanges first. A cycle of alternate exchanges is possible.
#[test]
fn alternate_exchange_need_not_exist() {
    let stage = Stage::new("alternate");
    let with =
        |alternate: Value| json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": alternate}});
    stage.put("exchanges", "e", with(json!("not.there"))).expect_created();
    stage
        .put("exchanges", "odd", with(json!(5)))
        .expect_refusal("invalid type 'long' for arg 'alternate-exchange' in exchange 'odd' in vhost 'v'");
}

/// Used by `plan::order` and `plan::deletions`: the broker deletes all bindings, even if other objects use the exchange
/// as their alternate or dead-letter exchange.
#[test]
fn deletion_deletes_all_bindings_from_and_to_the_exchange() {
    let stage = Stage::new("deletion");
    for name in ["before", "e", "after"] {
        topic(&stage, name);
    }
    stage.queue("q", "classic", json!({"x-dead-letter-exchange": "e"})).expect_created();
    let alternate = json!({"type": "topic", "durable": true, "arguments": {"alternate-exchange": "e"}});
    stage.put("exchanges", "other", alternate).expect_created();
    stage.bind_exchange("before", "e").expect_created();
    stage.bind_exchange("e", "after").expect_created();
    stage.bind("e", "q", json!({"routing_key": "k"})).expect_created();
    stage.bind("after", "q", json!({"routing_key": "k"})).expect_created();
    stage.delete("exchanges", "e").expect_no_content();
    let left: Vec<Value> = stage.vhost.list("bindings").iter().map(|binding| binding["source"].clone()).collect();
    assert_eq!(left, ["after"]);
    stage.delete("exchanges", "e").expect(404, "Not Found");
}

/// Used by `plan::auto_delete`: bindings *to* the exchange have no effect.
#[test]
fn auto_delete_exchange_is_deleted_with_its_last_binding() {
    let stage = Stage::new("auto-delete");
    auto_delete(&stage, "e");
    topic(&stage, "to");
    stage.queue("q", "classic", json!({})).expect_created();
    stage.queue("r", "classic", json!({})).expect_created();
    // Without any binding, the exchange remains until its last binding is deleted.
    until_exchanges_are(&stage, &["e", "to"]);
    stage.bind_exchange("to", "e").expect_created();
    stage.bind("e", "q", json!({})).expect_created();
    stage.bind("e", "r", json!({})).expect_created();
    let binding = |queue: &str| stage.path("bindings", &["e", "e", "q", queue, "~"]);
    stage.http.delete(&binding("q")).expect_status(204);
    until_exchanges_are(&stage, &["e", "to"]);
    stage.http.delete(&binding("r")).expect_status(204);
    until_exchanges_are(&stage, &["to"]);
    assert_eq!(stage.vhost.list("bindings"), [json!(null); 0], "the binding to it was deleted, too");
}

/// Used by `plan::auto_delete`: the deletion of a queue deletes its bindings.
#[test]
fn auto_delete_exchange_is_deleted_with_its_last_queue() {
    let stage = Stage::new("with-its-queue");
    auto_delete(&stage, "e");
    stage.queue("q", "classic", json!({})).expect_created();
    stage.bind("e", "q", json!({})).expect_created();
    stage.delete("queues", "q").expect_no_content();
    until_exchanges_are(&stage, &[]);
}

/// Used by `plan::auto_delete`: the deletion cascades.
#[test]
fn auto_delete_cascades() {
    let stage = Stage::new("chain");
    for name in ["a", "b", "c"] {
        auto_delete(&stage, name);
    }
    stage.queue("q", "classic", json!({})).expect_created();
    stage.bind_exchange("a", "b").expect_created();
    stage.bind_exchange("b", "c").expect_created();
    stage.bind("c", "q", json!({})).expect_created();
    stage.delete("queues", "q").expect_no_content();
    until_exchanges_are(&stage, &[]);
}

/// Used by `plan::order`: a temporary binding during a recreation keeps the exchange.
#[test]
fn binding_to_an_exchange_keeps_an_auto_delete_exchange() {
    let stage = Stage::new("held");
    auto_delete(&stage, "e");
    stage.put("exchanges", "keep", json!({"type": "fanout", "durable": true, "internal": true})).expect_created();
    stage.queue("q", "classic", json!({})).expect_created();
    stage.bind("e", "q", json!({})).expect_created();
    stage.bind_exchange("e", "keep").expect_created();
    stage.delete("queues", "q").expect_no_content();
    until_exchanges_are(&stage, &["e", "keep"]);
    stage.delete("exchanges", "keep").expect_no_content();
    until_exchanges_are(&stage, &[]);
}

/// Used by `expand`: the exchange of a dead-letter queue can be internal, so that no client can publish to it.
#[test]
fn internal_exchange_accepts_messages_of_other_exchanges() {
    let stage = Stage::new("internal");
    stage.put("exchanges", "e", json!({"type": "fanout", "durable": true, "internal": true})).expect_created();
    topic(&stage, "open");
    stage.queue("q", "classic", json!({})).expect_created();
    stage.bind("e", "q", json!({})).expect_created();
    stage.bind_exchange("open", "e").expect_created();
    assert_eq!(stage.amqp().publish("open", "", "hello"), Outcome::Routed);
    assert_eq!(stage.amqp().ready("q"), 1);
}

/// Used by `plan::target`: an alternate exchange without bindings drops messages.
#[test]
fn alternate_exchange_receives_unroutable_messages() {
    let stage = Stage::new("fallback");
    let body = json!({"type": "direct", "durable": true, "arguments": {"alternate-exchange": "amq.fanout"}});
    stage.put("exchanges", "e", body).expect_created();
    stage.queue("q", "classic", json!({})).expect_created();
    let amqp = stage.amqp();
    assert_eq!(amqp.publish("e", "nowhere", "lost"), Outcome::Unroutable);
    stage.bind("amq.fanout", "q", json!({})).expect_created();
    assert_eq!(amqp.publish("e", "nowhere", "kept"), Outcome::Routed);
    assert_eq!(amqp.ready("q"), 1);
}

/// Used by `broker::definitions`: exports of the newest versions omit internal exchanges.
#[test]
fn export_omits_internal_exchanges_since_4_3_3() {
    let stage = Stage::new("export");
    stage.put("exchanges", "e", json!({"type": "fanout", "durable": true, "internal": true})).expect_created();
    topic(&stage, "open");
    let export = stage.http.get(&stage.path("definitions", &[])).expect_status(200);
    let mut names: Vec<&str> =
        export["exchanges"].as_array().unwrap().iter().filter_map(|exchange| exchange["name"].as_str()).collect();
    names.sort_unstable();
    // 4.2.9 omits them, too.
    if since(4, 3) {
        assert_eq!(names, ["open"]);
    } else {
        assert_eq!(names, ["e", "open"]);
    }
}
