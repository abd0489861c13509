//! Tests declarations and deletions over AMQP, as the broker stores them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use topo::broker::transport::AmqpTransport;
use topo::broker::{Broker, BrokerError};
use topo::model::{ArgumentValue, Arguments, Binding, Destination, Float, Queue};

use super::fixture::{amqp_transport, http_options, of_type};
use crate::support::{Argument, NONE, Node, Outcome, Vhost, block_on, text};

fn queue(arguments: Value) -> Queue {
    Queue { durable: true, auto_delete: false, exclusive: false, arguments: serde_json::from_value(arguments).unwrap() }
}

/// Swaps the queue, with a companion queue that exists.
fn swap(vhost: &Vhost<'_>, transport: &AmqpTransport, name: &str, queue: &Queue) -> Result<(), BrokerError> {
    swap_with_companion(vhost, transport, (name, name), queue)
}

fn swap_with_companion(
    vhost: &Vhost<'_>,
    transport: &AmqpTransport,
    (name, companion): (&str, &str),
    queue: &Queue,
) -> Result<(), BrokerError> {
    let http = Broker::connect(http_options(vhost.node(), "guest", "guest")).unwrap();
    block_on(transport.swap(&name.into(), queue, false, (&http, &companion.into())))
}

async fn bind(transport: &AmqpTransport, binding: &Binding) -> Result<(), BrokerError> {
    transport.binder().await?.bind(binding).await
}

fn types() -> [(&'static str, &'static str); 3] {
    [("classic", "classic"), ("classic", "quorum"), ("quorum", "quorum")]
}

#[test]
fn swap_declares_the_new_queue() {
    let vhost = Node::shared().vhost("swap");
    let transport = amqp_transport(&vhost);
    for (before, after) in types() {
        for name in ["plain", "a/b", "a b", "%", "ü"] {
            let name = format!("{before} {after} {name}");
            vhost.amqp().declare_queue(&name, &of_type(before)).unwrap();
            let arguments = json!({
                "x-queue-type": after, "x-max-length": 86_400_000, "x-dead-letter-exchange": "amq.fanout",
                "x-unknown": {"list": [1, 2.5, "three", true]}
            });
            swap(&vhost, &transport, &name, &queue(arguments.clone())).unwrap();
            let seen = vhost.queue(&name);
            assert_eq!(seen["arguments"], arguments);
            assert_eq!((&seen["durable"], &seen["auto_delete"]), (&json!(true), &json!(false)));
            // HTTP declares the same arguments, because the integers have the same width on the broker.
            let body = json!({"durable": true, "auto_delete": false, "arguments": arguments});
            assert!(vhost.http().put(&vhost.path("queues", &[&name]), &body).is_success());
        }
    }
}

/// topo may have restored its connection to a different broker.
#[test]
fn swap_requires_the_companion_queue() {
    let vhost = Node::shared().vhost("beside");
    let transport = amqp_transport(&vhost);
    vhost.amqp().declare_queue("q", NONE).unwrap();
    vhost.amqp().fill("q", 3);
    let refused =
        swap_with_companion(&vhost, &transport, ("q", "q.topo.hold"), &queue(json!({"x-max-length": 6}))).unwrap_err();
    assert!(matches!(&refused, BrokerError::DifferentBroker { .. }), "{refused:?}");
    assert_eq!(vhost.amqp().ready("q"), 3);
}

#[test]
fn refused_swap_is_reported() {
    let vhost = Node::shared().vhost("faster");
    let transport = amqp_transport(&vhost);
    vhost.amqp().declare_queue("q", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    let other = queue(json!({"x-max-length": 6}));
    swap(&vhost, &transport, "q", &other).unwrap();
    assert_eq!(vhost.queue("q")["arguments"]["x-max-length"], 6);
    let invalid = queue(json!({"x-max-length": -1}));
    let refused = swap(&vhost, &transport, "q", &invalid).unwrap_err();
    assert!(
        matches!(&refused, BrokerError::Refused { status: 406, reason, .. } if reason.contains("x-max-length")),
        "{refused:?}"
    );
    assert!(vhost.queue("q").is_null(), "the old queue is deleted by then: the desired one is checked before");
}

#[test]
fn concurrent_declare_does_not_separate_the_swap() {
    let vhost = Node::shared().vhost("race");
    let transport = amqp_transport(&vhost);
    let application = vhost.amqp();
    application.declare_queue("q", NONE).unwrap();
    let desired = queue(json!({"x-max-length": 6}));
    let (mut refused, mut swapped) = (0, 0);
    for _ in 0..50 {
        let declares = std::thread::scope(|scope| {
            let swap = scope.spawn(|| swap(&vhost, &transport, "q", &desired));
            let mut declares = 0;
            while !swap.is_finished() {
                // The application's declaration is refused after the swap.
                let _ = application.declare_queue("q", NONE);
                declares += 1;
            }
            match swap.join().unwrap() {
                Ok(()) => swapped += 1,
                Err(BrokerError::Inequivalent { .. }) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            declares
        });
        let arguments = vhost.queue("q")["arguments"].clone();
        assert!(arguments["x-max-length"] == 6 || arguments["x-max-length"].is_null(), "{arguments} after {declares}");
        vhost.http().delete(&vhost.path("queues", &["q"])).expect_status(204);
        application.declare_queue("q", NONE).unwrap();
    }
    println!("{swapped} swapped, {refused} times the application was faster");
    assert!(swapped > 0);
}

#[test]
fn bindings_with_types_that_http_cannot_represent() {
    let vhost = Node::shared().vhost("bindings");
    let transport = amqp_transport(&vhost);
    let amqp = vhost.amqp();
    amqp.declare_queue("q", NONE).unwrap();
    for name in ["in", "to", "a b"] {
        amqp.declare_exchange(name, "headers", NONE).unwrap();
    }
    let arguments: Arguments = [
        ("x-match".to_owned(), "all".into()),
        ("there".to_owned(), ArgumentValue::Null),
        ("number".to_owned(), 5.into()),
        ("fraction".to_owned(), ArgumentValue::Float(Float(0.5))),
        ("table".to_owned(), ArgumentValue::Table(BTreeMap::new())),
    ]
    .into();
    let to_queue = Binding {
        source: "in".into(),
        destination: Destination::Queue("q".into()),
        routing_key: "k".to_owned(),
        arguments: [("x-match".to_owned(), "all".into()), ("there".to_owned(), ArgumentValue::Null)].into(),
    };
    let to_exchange = Binding { destination: Destination::Exchange("a b".into()), arguments, ..to_queue.clone() };
    for binding in [&to_queue, &to_exchange] {
        block_on(bind(&transport, binding)).unwrap();
    }
    assert_eq!(vhost.list("bindings").len(), 2);
    // A void value matches the header with any value.
    let with = |name: &str| {
        let mut headers = lapin::types::FieldTable::default();
        headers.insert(name.into(), text("anything"));
        lapin::protocol::basic::AMQPProperties::default().with_headers(headers)
    };
    assert_eq!(amqp.publish_with("in", "", "1", with("there")), Outcome::Routed);
    assert_eq!(amqp.publish_with("in", "", "2", with("elsewhere")), Outcome::Unroutable);
    let missing = Binding { source: "nothing".into(), ..to_queue };
    assert!(matches!(block_on(bind(&transport, &missing)).unwrap_err(), BrokerError::NotFound { .. }));
}
