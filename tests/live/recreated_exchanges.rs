//! Tests that topo restores the bindings of a recreated exchange: in one definitions request for an administrator,
//! otherwise one by one.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Argument, Fault, NONE, Node, Proxy, Topo, Vhost, posts, puts, text};

const MANY: usize = 40;

/// Creates an exchange with bindings of all kinds, of which one is declared. Returns a spec that changes the type of
/// the exchange.
fn prepare(vhost: &Vhost<'_>) -> String {
    let amqp = vhost.amqp();
    amqp.declare_exchange("hub/1", "topic", NONE).unwrap();
    amqp.declare_queue("q", NONE).unwrap();
    for n in 0..MANY {
        amqp.bind_queue("hub/1", "q", &format!("key.{n}"), NONE);
    }
    amqp.bind_queue("hub/1", "q", "mine", NONE);
    amqp.bind_queue("hub/1", "q", "", NONE);
    let arguments = [("n", Argument::LongLongInt(1)), ("x", Argument::Double(2.0)), ("s", text("ü %"))];
    amqp.bind_queue("hub/1", "q", "with arguments", &arguments);
    amqp.bind_exchange("amq.topic", "hub/1", "in.#", NONE);
    amqp.bind_exchange("hub/1", "amq.fanout", "out", NONE);
    "exchanges:\n  hub/1: {type: direct, onConflict: discard}\nqueues:\n  q: {type: classic, bindings: [{exchange: hub/1, \
     routingKey: mine}]}\n"
        .to_owned()
}

/// Returns the broker's list of bindings with their properties keys, sorted.
fn bindings(vhost: &Vhost<'_>) -> Vec<Value> {
    let mut bindings = vhost.list("bindings");
    bindings.retain(|binding| binding["source"] == "hub/1" || binding["destination"] == "hub/1");
    bindings.sort_by_key(Value::to_string);
    bindings
}

#[test]
fn administrator_restores_all_bindings_with_one_request() {
    let node = Node::shared();
    let vhost = node.vhost("hub");
    let spec = prepare(&vhost);
    let before = bindings(&vhost);
    assert_eq!(before.len(), MANY + 5);

    let seen: Arc<Mutex<Option<Value>>> = Arc::default();
    let (http, list, sees) = (node.http(), vhost.path("bindings", &[]), seen.clone());
    let look = move || *sees.lock().unwrap() = Some(http.get(&list).expect_status(200));
    // Reads the bindings before the first request after the definitions request.
    let proxy = Proxy::to(node).on(puts().path("/hub%2F1").nth(1), Fault::Meanwhile(Box::new(look)));
    let topo = Topo::new(&vhost).through(&proxy).spec(&spec);
    let plan = topo.run(["plan", "--verbose"]).expect_code(0);
    assert!(plan.says(&format!("POST /api/definitions/{}", vhost.name())), "{plan}");
    let applied = topo.run(["apply", "-y", "--allow", "routing-gap"]).expect_code(0);
    assert!(applied.says("Verified: the broker matches the spec"), "{applied}");

    assert_eq!(vhost.exchange("hub/1")["type"], "direct");
    assert_eq!(bindings(&vhost), before, "{applied}");
    assert_eq!(proxy.count(&posts().path("/api/definitions/")), 1);
    let then = seen.lock().unwrap().take().expect("the exchange is declared alone, too");
    let of_hub = |one: &&Value| one["source"] == "hub/1" || one["destination"] == "hub/1";
    let then = then.as_array().expect("a list").iter().filter(of_hub).count();
    assert_eq!(then, before.len(), "all by one request: {:?}", proxy.requests());
}

#[test]
fn other_users_restore_bindings_one_by_one() {
    let node = Node::shared();
    let vhost = node.vhost("hub-of-others");
    let spec = prepare(&vhost);
    let before = bindings(&vhost);
    let maker = node.user("policymaker").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&maker).spec(&spec);
    // From 4.3 on, the broker deletes topic permissions, which this user cannot read.
    let applied = topo.run(["apply", "-y", "--allow", "routing-gap,access-gain"]).expect_code(0);
    assert_eq!(vhost.exchange("hub/1")["type"], "direct");
    assert_eq!(bindings(&vhost), before, "{applied}");
}

/// A definitions request silently skips existing objects. The declaration after it detects them.
#[test]
fn redeclared_old_exchange_is_detected() {
    let node = Node::shared();
    let vhost = node.vhost("hub-is-back");
    let spec = prepare(&vhost);
    let amqp = vhost.amqp();
    let again = move || amqp.declare_exchange("hub/1", "topic", NONE).unwrap();
    let proxy = Proxy::to(node).on(posts().path("/api/definitions/"), Fault::Meanwhile(Box::new(again)));
    let topo = Topo::new(&vhost).through(&proxy).spec(&spec);
    let applied = topo.run(["apply", "-y", "--allow", "routing-gap"]).expect_code(4);
    assert!(applied.says("inequivalent arg 'type' for exchange 'hub/1'"), "{applied}");
    assert_eq!(vhost.exchange("hub/1")["type"], json!("topic"));
    assert_eq!(bindings(&vhost).len(), MANY + 5, "they are restored all the same: {applied}");
    Topo::new(&vhost).spec(&spec).run(["apply", "-y", "--allow", "routing-gap"]).expect_code(0);
    assert_eq!(vhost.exchange("hub/1")["type"], "direct");
    assert_eq!(bindings(&vhost).len(), MANY + 5);
}
