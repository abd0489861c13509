//! Status codes and reasons of refused requests, by which `broker::answer` distinguishes errors.

use serde_json::json;

use super::{Stage, since};
use crate::support::{Http, Node};

/// Used by `broker::deletion`, which accepts a 404.
#[test]
fn missing_objects_are_404() {
    let stage = Stage::new("not-there");
    for kind in ["queues", "exchanges", "policies"] {
        for answer in [stage.http.get(&stage.path(kind, &["none"])), stage.http.delete(&stage.path(kind, &["none"]))] {
            assert_eq!(answer.status, 404, "{kind}");
            assert_eq!(answer.body, json!({"error": "Object Not Found", "reason": "Not Found"}), "{kind}");
        }
    }
    let unknown = stage.http.get("/api/nonsense");
    assert_eq!(unknown.expect_status(404), json!({"error": "Object Not Found", "reason": "Not Found"}));
}

/// Used by `BrokerError::Unauthorized`.
#[test]
fn wrong_password_is_401_with_two_reasons() {
    let answer = Http::to(&Node::shared().url(), "guest", "wrong").get("/api/overview");
    let error = if since(3, 9) { "not_authorized" } else { "not_authorised" };
    // According to the source, 3.13 still uses the first reason.
    let reason = if since(4, 0) { "Not_Authorized" } else { "Login failed" };
    assert_eq!((answer.status, answer.body), (401, json!({"error": error, "reason": reason})));
}

/// Used by `BrokerError::Refused`: the reason may be missing, or may not be a string.
#[test]
fn invalid_body_is_400_or_500() {
    let stage = Stage::new("bodies");
    let path = stage.path("queues", &["q"]);
    let answer = stage.http.put(&path, &json!({"durable": 1}));
    assert_eq!((answer.status, answer.body), (400, json!({"error": "bad_request", "reason": ["not_boolean", 1]})));
    let answer = stage.http.put(&path, &json!({"durable": true, "arguments": "x"}));
    assert_eq!((answer.status, answer.body), (500, json!(null)));
}

/// Used by `broker::answer`, which unescapes reasons.
#[test]
fn reasons_are_escaped_for_html_before_4_1() {
    let stage = Stage::new("escaped");
    let reply = stage.policy("p", 0.0, json!({"max-length": "5"}));
    // 4.0.5 is the last measured version that escapes reasons.
    let shown = if since(4, 1) { "<<\"5\">>" } else { "&lt;&lt;\"5\"&gt;&gt;" };
    reply.expect_refusal(&format!("Validation failed\n\n{shown} is not a valid maximum length\n"));
}

/// Used by `broker::read` and `apply`: a `204` or `201` has no body.
#[test]
fn successful_writes_have_no_body() {
    let stage = Stage::new("bodyless");
    let queue = stage.path("queues", &["q"]);
    let body = json!({"durable": true});
    for (answer, status) in
        [(stage.http.put(&queue, &body), 201), (stage.http.put(&queue, &body), 204), (stage.http.delete(&queue), 204)]
    {
        assert_eq!((answer.status, answer.body), (status, json!(null)));
    }
}

/// Used by `broker::read`: the overview contains the product and its version.
#[test]
fn overview_contains_the_product_and_the_version() {
    let overview = Node::shared().http().get("/api/overview").expect_status(200);
    assert_eq!(overview["rabbitmq_version"], Node::shared().version());
    assert_eq!(overview["product_name"], "RabbitMQ");
    assert!(overview["cluster_name"].is_string());
    let default = overview.get("default_queue_type");
    assert_eq!(default.and_then(|kind| kind.as_str()), since(4, 0).then_some("classic"));
}
