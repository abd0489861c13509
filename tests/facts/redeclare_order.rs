//! The compared arguments of an existing queue in the broker's order. The error contains only the first difference.
//!
//! Since 3.9, `queue_arguments` in `capabilities()` of the queue type lists the compared arguments. Before, every
//! argument in `rabbit_amqqueue:declare_args` is compared for every type.

use serde_json::{Map, Value, json};

use super::{Stage, since, supports_streams};

/// Declares a queue with all arguments. Then redeclares it repeatedly, each time with one more of the arguments, and
/// expects an error about the first missing argument. The type is changed instead of omitted, because a missing type is
/// treated as classic.
fn are_compared_in_this_order(kind: &str, arguments: &[(&str, Value)]) {
    let stage = Stage::new("order");
    let all: Map<String, Value> = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    stage.put("queues", "q", json!({"durable": true, "arguments": all})).expect_created();
    for (kept, (name, _)) in arguments.iter().enumerate() {
        let mut again: Map<String, Value> =
            arguments[..kept].iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let other = if kind == "classic" { "quorum" } else { "classic" };
        again.entry("x-queue-type").or_insert_with(|| other.into());
        let reply = stage.put("queues", "q", json!({"durable": true, "arguments": again}));
        assert!(
            reply.words.starts_with(&format!("inequivalent arg '{name}' for queue 'q'")),
            "{name} comes next: {reply:?}"
        );
    }
    stage.put("queues", "q", json!({"durable": true, "arguments": all})).expect_no_content();
}

/// Returns the arguments that this version supports.
fn of_this_version<'a>(arguments: &[(bool, &'a str, Value)]) -> Vec<(&'a str, Value)> {
    arguments.iter().filter(|(known, ..)| *known).map(|(_, name, value)| (*name, value.clone())).collect()
}

/// Used by `model::known_arguments` and `plan::verdict`.
#[test]
fn arguments_of_a_classic_queue_are_compared_in_the_order_of_its_type() {
    are_compared_in_this_order(
        "classic",
        &of_this_version(&[
            (true, "x-expires", json!(3_600_000)),
            (true, "x-message-ttl", json!(60_000)),
            (true, "x-dead-letter-exchange", json!("d")),
            (true, "x-dead-letter-routing-key", json!("k")),
            (true, "x-max-length", json!(5)),
            (true, "x-max-length-bytes", json!(5_000)),
            (true, "x-max-priority", json!(3)),
            (true, "x-overflow", json!("reject-publish")),
            (true, "x-queue-mode", json!("lazy")),
            (since(3, 10), "x-queue-version", json!(2)),
            (true, "x-single-active-consumer", json!(true)),
            (true, "x-queue-type", json!("classic")),
            // 4.3 compares the argument, too, but refuses it on a new queue.
            (since(3, 9) && !since(4, 3), "x-queue-master-locator", json!("client-local")),
            (since(4, 0), "x-queue-leader-locator", json!("client-local")),
        ]),
    );
}

/// Used by `model::known_arguments` and `plan::verdict`.
#[test]
fn arguments_of_a_quorum_queue_are_compared_in_the_order_of_its_type() {
    let new = since(3, 10);
    are_compared_in_this_order(
        "quorum",
        &of_this_version(&[
            (true, "x-dead-letter-exchange", json!("d")),
            (true, "x-dead-letter-routing-key", json!("k")),
            (new, "x-dead-letter-strategy", json!("at-most-once")),
            (new, "x-expires", json!(3_600_000)),
            (true, "x-max-length", json!(5)),
            (true, "x-max-length-bytes", json!(5_000)),
            (true, "x-max-in-memory-length", json!(5)),
            (true, "x-max-in-memory-bytes", json!(5_000)),
            (new, "x-overflow", json!("reject-publish")),
            (true, "x-single-active-consumer", json!(true)),
            (true, "x-queue-type", json!("quorum")),
            (true, "x-quorum-initial-group-size", json!(1)),
            (since(3, 9), "x-delivery-limit", json!(5)),
            (new, "x-message-ttl", json!(60_000)),
            (new, "x-queue-leader-locator", json!("client-local")),
            (since(4, 3), "x-consumer-disconnected-timeout", json!(60_000)),
            (since(4, 3), "x-consumer-timeout", json!(60_000)),
            (since(4, 3), "x-delayed-retry-type", json!("all")),
            (since(4, 3), "x-delayed-retry-min", json!(1_000)),
            (since(4, 3), "x-delayed-retry-max", json!(2_000)),
        ]),
    );
}

/// Used by `model::known_arguments` and `plan::verdict`.
#[test]
fn arguments_of_a_stream_are_compared_in_the_order_of_its_type() {
    if !supports_streams() {
        return;
    }
    are_compared_in_this_order(
        "stream",
        &of_this_version(&[
            (true, "x-max-length-bytes", json!(5_000_000)),
            (true, "x-queue-type", json!("stream")),
            (true, "x-max-age", json!("7D")),
            (true, "x-stream-max-segment-size-bytes", json!(500_000)),
            (since(4, 2), "x-stream-filter-size-bytes", json!(32)),
            (true, "x-initial-cluster-size", json!(1)),
            (true, "x-queue-leader-locator", json!("client-local")),
        ]),
    );
}

/// Used by `KnownArgument::is_compared`: the difference is drift, which no redeclaration reports.
#[test]
fn argument_of_another_type_is_ignored_since_3_9() {
    let stage = Stage::new("other-type");
    stage.queue("q", "quorum", json!({})).expect_created();
    for (name, value, kind) in [("x-max-priority", json!(3), "long"), ("x-queue-mode", json!("lazy"), "longstr")] {
        let reply = stage.queue("q", "quorum", json!({name: value}));
        if since(3, 9) {
            reply.expect_no_content();
        } else {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            reply
                .expect_difference(name, &format!("received the value '{value}' of type '{kind}' but current is none"));
        }
        assert_eq!(stage.listed("q")["arguments"].get(name), None);
    }
}

/// Used by `KnownArgument::is_compared`: a changed limit on a 3.8 queue is drift that no redeclaration reports.
#[test]
fn delivery_limit_is_not_compared_in_3_8() {
    let stage = Stage::new("limit");
    stage.queue("q", "quorum", json!({"x-delivery-limit": 5})).expect_created();
    let reply = stage.queue("q", "quorum", json!({"x-delivery-limit": 6}));
    if since(3, 9) {
        reply.expect_difference("x-delivery-limit", "received '6' but current is '5'");
    } else {
        reply.expect_no_content();
    }
    assert_eq!(stage.listed("q")["arguments"]["x-delivery-limit"], 5);
}

/// Used by `KnownArgument::is_compared`.
#[test]
fn master_locator_is_not_compared_in_3_8() {
    let stage = Stage::new("locator");
    stage.queue("q", "classic", json!({})).expect_created();
    let reply = stage.queue("q", "classic", json!({"x-queue-master-locator": "random"}));
    if since(3, 9) {
        let tail = "received the value 'random' of type 'longstr' but current is none";
        reply.expect_difference("x-queue-master-locator", tail);
    } else {
        reply.expect_no_content();
    }
}

/// Used by `KnownArgument::is_compared`.
#[test]
fn filter_size_of_a_stream_is_compared_since_4_2() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("filter");
    stage.queue("q", "stream", json!({"x-stream-filter-size-bytes": 32})).expect_created();
    let reply = stage.queue("q", "stream", json!({"x-stream-filter-size-bytes": 64}));
    if since(4, 2) {
        reply.expect_difference("x-stream-filter-size-bytes", "received '64' but current is '32'");
    } else {
        reply.expect_no_content();
    }
}

/// Used by `model::known_arguments`: a locator affects only the first declaration, but is compared.
#[test]
fn leader_locator_is_compared_on_classic_queues_since_4_0() {
    let stage = Stage::new("leader");
    stage.queue("q", "classic", json!({})).expect_created();
    let reply = stage.queue("q", "classic", json!({"x-queue-leader-locator": "balanced"}));
    if since(4, 0) {
        reply.expect_difference(
            "x-queue-leader-locator",
            "received the value 'balanced' of type 'longstr' but current is none",
        );
    } else {
        reply.expect_no_content();
    }
}
