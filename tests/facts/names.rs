//! Names in paths, and their maximum length.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::{Stage, since};
use crate::support::Node;

/// Sends a path unchanged and returns the status. HTTP libraries remove dot segments from a path.
fn raw(method: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", Node::shared().http_port())).unwrap();
    // The credentials are `guest:guest`.
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{{\"durable\":true}}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// Used by `model::address`, which may percent-encode every byte.
#[test]
fn name_is_one_encoded_segment() {
    let stage = Stage::new("segments");
    let names = ["a/b", "%2F", "a+b", "a b", "?x=1", "#", "a;b", "...", "a/../b", "é"];
    for name in names {
        stage.queue(name, "classic", json!({})).expect_created();
        stage.put("exchanges", name, json!({"type": "topic", "durable": true})).expect_created();
        let binding = stage.path("bindings", &["e", name, "q", name]);
        stage.http.post(&binding, &json!({"routing_key": name})).expect_status(201);
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort();
    for kind in ["queues", "exchanges"] {
        assert_eq!(stage.vhost.names(kind), sorted, "{kind}");
    }
    assert_eq!(stage.vhost.list("bindings").len(), names.len());
}

/// Used by `Request::unaddressable`: cowboy removes dot segments from a path after it decodes the path.
#[test]
fn dot_segment_cannot_be_addressed() {
    let stage = Stage::new("dots");
    let amqp = stage.amqp();
    let own = stage.path("queues", &[]);
    for (name, encoded) in [(".", "%2E"), ("..", "%2E%2E")] {
        amqp.declare_queue(name, &[]).unwrap();
        for segment in [name, encoded] {
            let path = format!("{own}/{segment}");
            assert_eq!((raw("PUT", &path), raw("DELETE", &path)), (405, 405), "{path}");
        }
    }
    assert_eq!(stage.vhost.names("queues"), [".", ".."]);
}

/// Used by `spec`, which refuses line breaks in names.
#[test]
fn line_breaks_are_silently_removed_from_a_name() {
    let stage = Stage::new("lines");
    stage.queue("a\nb\r\nc", "classic", json!({})).expect_created();
    stage.put("exchanges", "e\n", json!({"type": "topic", "durable": true})).expect_created();
    assert_eq!(
        (stage.vhost.names("queues"), stage.vhost.names("exchanges")),
        (vec!["abc".to_owned()], vec!["e".to_owned()])
    );
}

/// Used by `model::names`: a name is an AMQP short string. No version refuses a longer exchange name over HTTP.
#[test]
fn queue_name_is_at_most_255_bytes() {
    let stage = Stage::new("long");
    let name = |bytes: usize| "x".repeat(bytes);
    stage.queue(&name(255), "classic", json!({})).expect_created();
    let reply = stage.queue(&name(256), "classic", json!({}));
    if since(3, 9) {
        reply.expect_refusal("queue should be less than 255 bytes, actually was 256\n");
    } else {
        reply.expect_created();
    }
    stage.put("exchanges", &name(256), json!({"type": "topic", "durable": true})).expect_created();
}
