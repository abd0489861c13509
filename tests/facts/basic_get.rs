//! `basic.get` on a queue immediately before its deletion. `broker::guard` relies on these facts.

use serde_json::{Value, json};

use super::{Reply, Stage, since};
use crate::support::{Node, until};

/// Gets a message and requeues it.
fn get(stage: &Stage, queue: &str) -> Reply {
    stage.take(queue, "ack_requeue_true")
}

/// The request reaches the queue's leader, so its result is more recent than the totals in the list.
#[test]
fn get_sees_a_message_published_just_now() {
    let stage = Stage::new("now");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).expect_created();
        assert_eq!(get(&stage, kind).body, json!([]));
        amqp.fill(kind, 1);
        assert_eq!(get(&stage, kind).body.as_array().unwrap().len(), 1);
    }
}

/// The message returns to its position and is marked as redelivered. Before 4.3, the get counts as a delivery.
#[test]
fn get_with_requeue_counts_as_a_delivery_before_4_3() {
    let stage = Stage::new("counted");
    stage.queue("q", "quorum", json!({})).expect_created();
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
    // The message returns after the response.
    let amqp = stage.amqp();
    until("both messages are ready", || (amqp.ready("q") == 2).then_some(()));
}

/// Before 4.3, another get of a message at its limit exceeds the limit.
#[test]
fn get_at_the_delivery_limit_dead_letters_the_message_before_4_3() {
    let stage = Stage::new("limit");
    stage.queue("dead", "classic", json!({})).expect_created();
    let arguments = json!({"x-delivery-limit": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"});
    stage.queue("q", "quorum", arguments).expect_created();
    let amqp = stage.amqp();
    amqp.fill("q", 1);
    // A limit of 1 permits two deliveries.
    let mut deliveries = 0;
    until("the third get", || {
        deliveries += get(&stage, "q").body.as_array().unwrap().len();
        (deliveries == 3 || amqp.ready("dead") == 1).then_some(())
    });
    assert_eq!((deliveries, amqp.ready("dead")), if since(4, 3) { (3, 0) } else { (2, 1) });
}

/// In this case, topo treats the queue as one that it cannot check.
#[test]
fn get_is_refused_by_a_quorum_queue_with_a_single_active_consumer() {
    let stage = Stage::new("single");
    stage.queue("q", "quorum", json!({"x-single-active-consumer": true})).expect_created();
    let kind = if since(4, 3) { "<<\"quorum\">>" } else { "quorum" };
    get(&stage, "q").expect_refusal(&format!(
        "405 RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost 'v'. basic.get operations are not \
         supported by {kind} queues with single active consumer"
    ));
}

/// A user who may delete a queue may not have the permission to read it.
#[test]
fn get_requires_read_permission() {
    let stage = Stage::new("unread");
    stage.queue("q", "quorum", json!({})).expect_created();
    let user = Node::shared().user("management").may(&stage.vhost, ".*", ".*", "");
    let body = json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 0});
    let refusal = stage.reply(user.http().post(&stage.path("queues", &["q", "get"]), &body));
    let read = if since(4, 0) { "read access" } else { "access" };
    let words = format!("ACCESS_REFUSED - {read} to queue 'q' in vhost 'v' refused for user '{}'", user.name);
    refusal.expect(401, &words);
    stage.reply(user.http().delete(&stage.path("queues", &["q"]))).expect_no_content();
}

/// topo receives this response if the queue was deleted in the meantime.
#[test]
fn get_from_a_missing_queue_is_404() {
    let stage = Stage::new("gone");
    let reply = get(&stage, "q");
    assert_eq!(reply.body["error"], "not_found");
    let words = if since(4, 0) { "queue_not_found" } else { "NOT_FOUND - no queue 'q' in vhost 'v'" };
    reply.expect(404, words);
    if since(3, 9) {
        stage.queue("s", "stream", json!({})).expect_created();
        get(&stage, "s").expect_refusal("540 basic.get not supported by stream queues queue 's' in vhost 'v'");
    }
    assert_eq!(Value::Null, stage.vhost.queue("q"));
}
