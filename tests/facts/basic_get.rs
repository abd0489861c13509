//! Asking a queue for a message, right before it is deleted: `broker::guard::must_have_nothing_ready`.

use serde_json::{Value, json};

use super::{Said, Stage, since};
use crate::support::{Node, until};

/// Gets one message and gives it back.
fn get(stage: &Stage, queue: &str) -> Said {
    stage.take(queue, "ack_requeue_true")
}

/// It goes through the queue's leader, and so knows more than the totals.
#[test]
fn a_get_sees_what_was_published_just_now() {
    let stage = Stage::new("now");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).created();
        assert_eq!(get(&stage, kind).body, json!([]));
        amqp.fill(kind, 1);
        assert_eq!(get(&stage, kind).body.as_array().unwrap().len(), 1);
    }
}

/// The message goes back to its place, marked; before 4.3 it counts as delivered.
#[test]
fn a_get_that_gives_back_counts_as_a_delivery_before_4_3() {
    let stage = Stage::new("counted");
    stage.queue("q", "quorum", json!({})).created();
    stage.amqp().fill("q", 2);
    let got = || get(&stage, "q").body[0].clone();
    assert_eq!(got()["redelivered"], false);
    let again = until("the same message", || Some(got()).filter(|message| message["redelivered"] == true));
    let headers = &again["properties"]["headers"];
    if since(4, 3) {
        assert_eq!(headers.get("x-delivery-count"), None);
        assert!(headers["x-acquired-count"].as_u64() >= Some(1), "{headers}");
    } else {
        assert!(headers["x-delivery-count"].as_u64() >= Some(1), "{headers}");
    }
    assert_eq!(stage.amqp().ready("q"), 2);
}

/// A look more at a message at its limit is one too many, before 4.3.
#[test]
fn a_get_at_the_delivery_limit_dead_letters_the_message_before_4_3() {
    let stage = Stage::new("limit");
    stage.queue("dead", "classic", json!({})).created();
    let arguments = json!({"x-delivery-limit": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"});
    stage.queue("q", "quorum", arguments).created();
    let amqp = stage.amqp();
    amqp.fill("q", 1);
    // A limit of 1 is two deliveries.
    let mut deliveries = 0;
    until("the third look", || {
        deliveries += get(&stage, "q").body.as_array().unwrap().len();
        (deliveries == 3 || amqp.ready("dead") == 1).then_some(())
    });
    assert_eq!((deliveries, amqp.ready("dead")), if since(4, 3) { (3, 0) } else { (2, 1) });
}

/// What the guard takes for "nobody can be asked".
#[test]
fn a_get_is_refused_by_a_quorum_queue_with_a_single_active_consumer() {
    let stage = Stage::new("single");
    stage.queue("q", "quorum", json!({"x-single-active-consumer": true})).created();
    let kind = if since(4, 3) { "<<\"quorum\">>" } else { "quorum" };
    get(&stage, "q").refused(&format!(
        "405 RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost 'v'. basic.get operations are not \
         supported by {kind} queues with single active consumer"
    ));
}

/// Who may delete a queue need not be one who may read it.
#[test]
fn a_get_takes_the_permission_to_read() {
    let stage = Stage::new("unread");
    stage.queue("q", "quorum", json!({})).created();
    let user = Node::shared().user("management").may(&stage.vhost, ".*", ".*", "");
    let body = json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 0});
    let said = stage.said(user.http().post(&stage.path("queues", &["q", "get"]), &body));
    let read = if since(4, 0) { "read access" } else { "access" };
    let words = format!("ACCESS_REFUSED - {read} to queue 'q' in vhost 'v' refused for user '{}'", user.name);
    said.is(401, &words);
    stage.said(user.http().delete(&stage.path("queues", &["q"]))).taken();
}

/// It went meanwhile.
#[test]
fn a_get_from_a_queue_that_is_not_there_is_404() {
    let stage = Stage::new("gone");
    let said = get(&stage, "q");
    assert_eq!(said.body["error"], "not_found");
    let words = if since(4, 0) { "queue_not_found" } else { "NOT_FOUND - no queue 'q' in vhost 'v'" };
    said.is(404, words);
    if since(3, 9) {
        stage.queue("s", "stream", json!({})).created();
        get(&stage, "s").refused("540 basic.get not supported by stream queues queue 's' in vhost 'v'");
    }
    assert_eq!(Value::Null, stage.vhost.queue("q"));
}
