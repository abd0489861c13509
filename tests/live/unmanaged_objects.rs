//! Tests that unmanaged objects survive an apply, even if the broker would refuse to restore them.

use serde_json::json;

use crate::support::{Node, Topo, Vhost, text};

fn exchange(vhost: &Vhost<'_>, name: &str, kind: &str, auto_delete: bool) {
    let body = json!({"type": kind, "durable": true, "auto_delete": auto_delete});
    vhost.http().put(&vhost.path("exchanges", &[name]), &body).expect_status(201);
}

fn queue(vhost: &Vhost<'_>, name: &str, arguments: &serde_json::Value) {
    let body = json!({"durable": true, "arguments": arguments});
    vhost.http().put(&vhost.path("queues", &[name]), &body).expect_status(201);
}

fn bind(vhost: &Vhost<'_>, source: &str, destination: &str, key: &str) {
    let path = format!("/api/bindings/{}/e/{source}/{destination}", vhost.name());
    vhost.http().post(&path, &json!({"routing_key": key})).expect_status(201);
}

/// The user has full permissions for their own names, and none for the exchange that another user bound to their queue.
#[test]
fn unrestorable_binding_prevents_the_recreate() {
    let vhost = Node::shared().vhost("unrestorable");
    exchange(&vhost, "audit", "topic", false);
    queue(&vhost, "orders.q", &json!({"x-message-ttl": 1000}));
    bind(&vhost, "audit", "q/orders.q", "#");
    let user = Node::shared().user("management").may(&vhost, "^orders", "^orders", "^orders");
    let topo =
        Topo::new(&vhost).user(&user).spec("queues: {orders.q: {type: classic, messageTtl: 2s, onConflict: ifEmpty}}");
    let apply = topo.run(["apply", "-y", "--allow", "routing-gap", "--lock-name", "orders.lock"]).expect_code(3);
    assert!(apply.stderr.contains("would not be able to restore"), "{apply}");
    assert_eq!(vhost.queue("orders.q")["arguments"]["x-message-ttl"], 1000);
    assert!(vhost.names("exchanges").iter().all(|name| !name.contains(".topo.")), "{apply}");
    assert!(vhost.list("bindings").iter().any(|binding| binding["source"] == "audit"), "{apply}");
}

#[test]
fn reviewed_plan_is_stale_when_its_object_changes() {
    let vhost = Node::shared().vhost("before");
    let policy = |definition: serde_json::Value, pattern: &str| {
        let body = json!({"pattern": pattern, "definition": definition, "apply-to": "queues"});
        assert!(vhost.http().put(&vhost.path("policies", &["p"]), &body).is_success());
    };
    policy(json!({"max-length": 100}), "^a$");
    let topo = Topo::new(&vhost).spec("policies: {p: {pattern: ^a$, applyTo: queues, definition: {maxLength: 50}}}");
    topo.run(["plan", "--out", "plan.json"]).expect_code(0);
    policy(json!({"max-length": 100, "dead-letter-exchange": "theirs"}), "^a");
    let apply = topo.run(["apply", "--plan", "plan.json"]).expect_code(5);
    assert!(apply.stderr.contains("it changed after the plan"), "{apply}");
    assert_eq!(vhost.http().get(&vhost.path("policies", &["p"])).found()["pattern"], "^a");
}

#[test]
fn unknown_address_suggests_a_name() {
    let vhost = Node::shared().vhost("typo");
    let topo = Topo::new(&vhost).spec("queues: {orders: {type: classic}}");
    for flag in ["--target=queues/{vhost}/order", "--recreate=queues/{vhost}/order=discard"] {
        let plan = topo.run(["plan", flag]).expect_code(64);
        assert!(plan.stderr.contains("did you mean queues/") && plan.stderr.contains("/orders?"), "{plan}");
    }
}

#[test]
fn expires_policy_is_a_hazard_for_empty_queues() {
    let vhost = Node::shared().vhost("expiry");
    queue(&vhost, "theirs", &json!({}));
    let topo = Topo::new(&vhost).spec("policies: {p: {pattern: '.*', applyTo: queues, definition: {expires: 1h}}}");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    plan.expect_text("the queue itself will be deleted after it has been unused for that long");
}

/// The broker skips a policy with a key that the queue type does not support, and the next policy governs.
#[test]
fn unsupported_policy_does_not_hide_the_next_one() {
    let vhost = Node::shared().vhost("skipped");
    queue(&vhost, "q", &json!({"x-queue-type": "classic"}));
    let high = json!({"pattern": "^q$", "apply-to": "queues", "priority": 10, "definition": {"delivery-limit": 5}});
    vhost.http().put(&vhost.path("policies", &["high"]), &high).expect_status(201);
    vhost.amqp().fill("q", 8);
    vhost.until_counted("q", 8);
    let low = "policies: {low: {pattern: ^q$, applyTo: queues, priority: 1, definition: {maxLength: 3}}}";
    let plan = Topo::new(&vhost).spec(low).run(["plan", "--detailed-exitcode"]);
    if !Node::shared().at_least(3, 9) {
        // On this version, a classic queue accepts every key, so the other policy governs.
        plan.expect_code(2).expect_no_text("message-drop");
        return;
    }
    let plan = plan.expect_code(3);
    assert!(plan.stdout.contains("message-drop") && plan.stdout.contains("the queue holds 8 messages"), "{plan}");
}

#[test]
fn unmanaged_auto_delete_exchange_blocks_the_deletion() {
    let vhost = Node::shared().vhost("last-binding");
    exchange(&vhost, "theirs", "fanout", true);
    queue(&vhost, "old", &json!({}));
    bind(&vhost, "theirs", "q/old", "");
    let topo = Topo::new(&vhost).spec("removed: {queues: [old]}\nqueues: {new: {type: classic}}");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    assert!(plan.stdout.contains("would delete its last binding"), "{plan}");
    topo.run(["apply", "-y", "--allow", "routing-gap", "--allow", "mass-delete"]).expect_code(3);
    assert_eq!(vhost.names("exchanges"), ["theirs"]);
    assert_eq!(vhost.names("queues"), ["old"]);
}

/// Any user who may declare an exchange can forge the exchange `NAME.topo.keep`.
#[test]
fn forged_recreate_journal_is_ignored() {
    let vhost = Node::shared().vhost("false-keep");
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic}}");
    topo.run(["apply", "-y"]).expect_code(0);
    queue(&vhost, "spy", &json!({}));
    exchange(&vhost, "pay", "topic", false);
    let binding = json!([{"source": "pay", "destination": {"queue": "spy"}, "routing_key": "#", "arguments": {}}]);
    for name in ["evil", "q.topo.keep"] {
        let arguments = [("x-topo-kept-for", text("queue q")), ("x-topo-kept-bindings", text(&binding.to_string()))];
        vhost.amqp().declare_exchange(name, "fanout", &arguments).unwrap();
    }
    topo.run(["apply", "-y"]).expect_code(0);
    assert!(vhost.list("bindings").iter().all(|binding| binding["destination"] != "spy"));
    assert!(vhost.names("exchanges").contains(&"evil".to_owned()));
}

#[test]
fn exclusive_queue_differs_from_a_declared_one() {
    let vhost = Node::shared().vhost("exclusive");
    let amqp = vhost.amqp();
    let exclusive = lapin::options::QueueDeclareOptions { exclusive: true, ..Default::default() };
    amqp.declare_queue_as("q", exclusive, &[]).unwrap();
    let topo = Topo::new(&vhost).spec("queues: {q: {type: classic, durable: false}}");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    assert!(plan.stdout.contains("exclusive"), "{plan}");
}

/// After a deletion, the exchange could not be declared again.
#[test]
fn exchange_of_an_unknown_type_is_not_recreated() {
    let vhost = Node::shared().vhost("unknown-type");
    exchange(&vhost, "later", "direct", false);
    let topo = Topo::new(&vhost).spec("exchanges: {later: {type: x-no-such-type, onConflict: discard}}");
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3);
    assert!(plan.stdout.contains("the broker does not support exchange type `x-no-such-type`"), "{plan}");
    topo.run(["apply", "-y", "--allow", "routing-gap"]).expect_code(3);
    assert_eq!(vhost.exchange("later")["type"], "direct");
}
