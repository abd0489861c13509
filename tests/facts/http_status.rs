//! What is said when a request is refused: `broker::answer` tells errors apart by these.

use serde_json::json;

use super::{Stage, since};
use crate::support::{Http, Node};

/// `broker::perform::gone_is_done`.
#[test]
fn what_is_not_there_is_404() {
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

/// `BrokerError::Unauthorized`.
#[test]
fn a_wrong_password_is_401_in_two_spellings() {
    let answer = Http::to(&Node::shared().url(), "guest", "wrong").get("/api/overview");
    let error = if since(3, 9) { "not_authorized" } else { "not_authorised" };
    // By source, 3.13 still says the first.
    let reason = if since(4, 0) { "Not_Authorized" } else { "Login failed" };
    assert_eq!((answer.status, answer.body), (401, json!({"error": error, "reason": reason})));
}

/// `BrokerError::Refused`: the reason need not be a text, and there need be none.
#[test]
fn a_bad_body_is_400_or_500() {
    let stage = Stage::new("bodies");
    let path = stage.path("queues", &["q"]);
    let answer = stage.http.put(&path, &json!({"durable": 1}));
    assert_eq!((answer.status, answer.body), (400, json!({"error": "bad_request", "reason": ["not_boolean", 1]})));
    let answer = stage.http.put(&path, &json!({"durable": true, "arguments": "x"}));
    assert_eq!((answer.status, answer.body), (500, json!(null)));
}

/// `broker::answer::unescaped`.
#[test]
fn reasons_are_escaped_for_html_before_4_1() {
    let stage = Stage::new("escaped");
    let said = stage.policy("p", 0.0, json!({"max-length": "5"}));
    // Of the measured ones, 4.0.5 is the last that does.
    let shown = if since(4, 1) { "<<\"5\">>" } else { "&lt;&lt;\"5\"&gt;&gt;" };
    said.refused(&format!("Validation failed\n\n{shown} is not a valid maximum length\n"));
}

/// `broker::read::is_not_offered` and `apply`: a `204` or `201` has no body.
#[test]
fn what_was_done_has_no_body() {
    let stage = Stage::new("bodyless");
    let queue = stage.path("queues", &["q"]);
    let body = json!({"durable": true});
    for (answer, status) in
        [(stage.http.put(&queue, &body), 201), (stage.http.put(&queue, &body), 204), (stage.http.delete(&queue), 204)]
    {
        assert_eq!((answer.status, answer.body), (status, json!(null)));
    }
}

/// `broker::read::cluster`: who answers, and which version.
#[test]
fn the_overview_says_what_and_which_version_it_is() {
    let overview = Node::shared().http().get("/api/overview").expect_status(200);
    assert_eq!(overview["rabbitmq_version"], Node::shared().version());
    assert_eq!(overview["product_name"], "RabbitMQ");
    assert!(overview["cluster_name"].is_string());
    let default = overview.get("default_queue_type");
    assert_eq!(default.and_then(|kind| kind.as_str()), since(4, 0).then_some("classic"));
}
