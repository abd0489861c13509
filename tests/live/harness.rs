//! Tests the harness of the live tests on a node.

use std::time::{Duration, Instant};

use lapin::options::QueueDeclareOptions;
use serde_json::json;

use crate::support::{
    Argument, Fault, Http, NONE, Node, Options, Outcome, Proxy, Tls, any, deletes, gets, puts, text, until,
};

#[test]
fn shared_node_answers_and_vhosts_are_deleted() {
    let node = Node::shared();
    let overview = node.http().get("/api/overview").expect_status(200);
    assert_eq!(overview["rabbitmq_version"], node.version());
    assert!(node.at_least(3, 8) && !node.at_least(99, 0));
    let vhost = node.vhost("a/b c%é");
    let path = vhost.path("queues", &["x/y"]);
    assert_eq!(vhost.http().get(&path).found(), json!(null));
    vhost.http().put(&path, &json!({"durable": true})).expect_status(201);
    assert_eq!(vhost.names("queues"), ["x/y"]);
    assert_eq!((vhost.list("exchanges").len(), vhost.list("bindings").len()), (0, 0));
    drop(vhost);
    node.http().get(&path).expect_status(404);
}

#[test]
fn user_has_the_granted_permissions() {
    let vhost = Node::shared().vhost("users");
    let user = Node::shared().user("management").may(&vhost, "^mine", "", ".*");
    user.http().put(&vhost.path("queues", &["mine"]), &json!({})).expect_status(201);
    assert_eq!(user.http().put(&vhost.path("queues", &["other"]), &json!({})).status, 401);
    assert!(user.amqp(&vhost).declare_queue("other", NONE).unwrap_err().starts_with("ACCESS_REFUSED"));
    assert_eq!(Http::to(&Node::shared().url(), &user.name, "wrong").get("/api/whoami").status, 401);
}

#[test]
fn application_receives_the_broker_error() {
    let vhost = Node::shared().vhost("refusal");
    let amqp = vhost.amqp();
    for (name, number) in [
        ("short", Argument::ShortInt(30_000)),
        ("int", Argument::LongInt(30_000)),
        ("long", Argument::LongLongInt(30_000)),
    ] {
        amqp.declare_queue(name, &[("x-message-ttl", number)]).unwrap();
        assert_eq!(vhost.queue(name)["arguments"]["x-message-ttl"], 30_000);
    }
    let refusal = amqp.declare_queue("int", &[("x-message-ttl", Argument::LongInt(60_000))]).unwrap_err();
    assert_eq!(
        refusal,
        format!(
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'int' in vhost '{}': received '60000' \
             but current is '30000'",
            vhost.name()
        )
    );
    amqp.declare_queue(
        "typed",
        &[
            ("x-queue-type", text("classic")),
            ("x-single-active-consumer", Argument::Boolean(true)),
            ("x-own", Argument::Double(1.5)),
        ],
    )
    .unwrap();
    let passing = QueueDeclareOptions { auto_delete: true, ..Default::default() };
    amqp.declare_queue_as("passing", passing, NONE).unwrap();
    assert_eq!(vhost.queue("passing")["auto_delete"], true);
}

#[test]
fn messages_are_published_held_and_consumed() {
    let vhost = Node::shared().vhost("messages");
    let amqp = vhost.amqp();
    amqp.declare_exchange("events", "topic", NONE).unwrap();
    amqp.declare_exchange("all", "fanout", NONE).unwrap();
    amqp.declare_queue("work", NONE).unwrap();
    amqp.bind_exchange("events", "all", "event.#", NONE);
    amqp.bind_queue("all", "work", "", &[("n", Argument::LongInt(1))]);
    assert_eq!(vhost.list("bindings").len(), 2);
    assert_eq!(amqp.publish("events", "event.a", "one"), Outcome::Routed);
    assert_eq!(amqp.publish("events", "other", "lost"), Outcome::Unroutable);
    amqp.fill("work", 2);
    assert_eq!(amqp.ready("work"), 3);

    let mut held = amqp.hold("work", 2);
    assert_eq!(held.bodies, [b"one".to_vec(), b"message 0".to_vec()]);
    assert_eq!(amqp.ready("work"), 1);
    vhost.until_counted("work", 3);
    assert!(held.is_subscribed());
    drop(held);
    until("the held messages to be back", || (amqp.ready("work") == 3).then_some(()));
    let message = amqp.get("work").unwrap();
    assert_eq!(
        (message.body.as_slice(), message.routing_key.as_str(), message.redelivered),
        (&b"one"[..], "event.a", true)
    );
    assert_eq!(amqp.ready("work"), 2);

    let mut idle = amqp.hold("work", 0);
    vhost.http().delete(&vhost.path("queues", &["work"])).expect_status(204);
    until("the consumer to be cancelled", || (!idle.is_subscribed()).then_some(()));
}

#[test]
fn proxy_forwards_and_records_requests() {
    let vhost = Node::shared().vhost("proxy");
    let proxy = Proxy::to(Node::shared());
    let http = Http::to(&proxy.url(), "guest", "guest");
    let path = vhost.path("queues", &["a"]);
    http.put(&path, &json!({"durable": true})).expect_status(201);
    http.put(&path, &json!({"durable": true})).expect_status(204);
    // Some versions send a long list in chunks.
    let list = vhost.path("queues", &[]);
    assert!(http.get(&list).expect_status(200).is_array());
    http.delete(&path).expect_status(204);
    assert_eq!(http.get(&path).status, 404);
    let seen: Vec<String> = proxy.requests().iter().map(|request| request.method.clone()).collect();
    assert_eq!(seen, ["PUT", "PUT", "GET", "DELETE", "GET"]);
    assert_eq!((proxy.count(&puts()), proxy.count(&gets().path(&list)), proxy.count(&any())), (2, 2, 5));
}

#[test]
fn proxy_injects_the_specified_faults() {
    let vhost = Node::shared().vhost("faults");
    let path = |name: &str| vhost.path("queues", &[name]);
    let late = vhost.amqp();
    let proxy = Proxy::to(Node::shared())
        .on(puts().nth(1), Fault::CutBefore)
        .on(puts().nth(2), Fault::CutAfter)
        .on(puts().nth(3), Fault::CutWithin)
        .on(deletes().nth(1), Fault::Meanwhile(Box::new(move || late.declare_queue("late", NONE).unwrap())))
        .on(gets().path("/api/nodes").first(2), Fault::Status(503))
        .on(gets().path("/api/whoami"), Fault::Page(200, "<html>Please log in</html>"))
        .on(gets().path("/api/vhosts").from(2), Fault::Delay(Duration::from_millis(300)));
    let http = Http::to(&proxy.url(), "guest", "guest");
    for name in ["before", "after", "within"] {
        http.send("PUT", &path(name), Some(&json!({}))).unwrap_err();
    }
    assert_eq!(proxy.count(&puts()), 3, "the client does not retry");
    assert_eq!(vhost.names("queues"), ["after", "within"]);
    http.delete(&path("after")).expect_status(204);
    assert_eq!(vhost.names("queues"), ["late", "within"]);
    assert_eq!([1, 2, 3].map(|_| http.get("/api/nodes").status), [503, 503, 200]);
    assert_eq!(http.get("/api/whoami").expect_status(200), "<html>Please log in</html>");
    let timed = || {
        let started = Instant::now();
        http.get("/api/vhosts").expect_status(200);
        started.elapsed() >= Duration::from_millis(300)
    };
    http.get("/api/vhosts").expect_status(200);
    assert!(timed() && timed());
    proxy.reset();
    assert_eq!(http.get("/api/nodes").status, 200);
    assert_eq!(proxy.requests().len(), 1);
}

#[test]
fn tls_node_requires_a_client_certificate() {
    let tls = Tls::create();
    let node = Node::start(Options::default().tls(&tls).line("management.disable_stats = true"));
    let bare = Http::to_tls(&node.tls_url(), "guest", "guest", &tls, false);
    // TLS 1.3 refuses the client after the handshake, and the connection may close before the client reads the refusal.
    until("a refusal that names the certificate", || {
        let refusal = bare.send("GET", "/api/overview", None).unwrap_err();
        // 3.8 on Erlang 23 uses TLS 1.2, which has no alert for a missing certificate.
        let refusal = refusal.to_lowercase();
        (refusal.contains("certificate") || refusal.contains("handshakefailure")).then_some(())
    });
    let known = Http::to_tls(&node.tls_url(), "guest", "guest", &tls, true);
    assert_eq!(known.get("/api/overview").expect_status(200)["disable_stats"], true);
    let other_user = Http::to_tls(&node.tls_url(), "guest", "guest", &Tls::create(), true);
    other_user.send("GET", "/api/overview", None).unwrap_err();

    let (folder, pids) = (node.folder(), node.pids());
    assert!(folder.is_dir());
    drop(node);
    assert!(!folder.exists());
    for pid in pids {
        let process = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(process.is_empty() || process.contains(") Z "), "still running: {process}");
    }
}
