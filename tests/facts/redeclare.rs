//! Redeclarations of existing queues: equal values, refusals, and their errors.
//!
//! Source: `rabbit_amqqueue:assert_equivalence`, `rabbit_misc:assert_args_equivalence`.

use lapin::options::QueueDeclareOptions;
use serde_json::json;

use super::{Stage, since, supports_streams};
use crate::support::{Argument, Http, Node};

/// Used by `plan::verdict`: an equal redeclaration changes nothing.
#[test]
fn new_queue_is_201_and_an_equal_one_204() {
    let stage = Stage::new("equal");
    let arguments = json!({"x-message-ttl": 60_000, "x-dead-letter-exchange": "d"});
    let answer = stage
        .http
        .put(&stage.path("queues", &["q"]), &json!({"durable": true, "auto_delete": false, "arguments": arguments}));
    assert_eq!((answer.status, answer.body), (201, json!(null)));
    stage.queue("q", "", arguments).expect_no_content();
}

/// Used by `plan::verdict`: the error of a conflict contains only the first difference.
#[test]
fn durable_is_compared_first_and_auto_delete_before_arguments() {
    let stage = Stage::new("first");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).expect_created();
    let arguments = json!({"x-queue-type": "quorum", "x-message-ttl": 1});
    stage
        .put("queues", "q", json!({"durable": false, "auto_delete": true, "arguments": arguments}))
        .expect_difference("durable", "received 'false' but current is 'true'");
    stage
        .put("queues", "q", json!({"durable": true, "auto_delete": true, "arguments": arguments}))
        .expect_difference("auto_delete", "received 'true' but current is 'false'");
}

/// Used by `plan::verdict`, which predicts the error.
#[test]
fn difference_is_reported_in_one_of_three_forms() {
    let stage = Stage::new("tails");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).expect_created();
    stage
        .queue("q", "classic", json!({"x-message-ttl": 70_000}))
        .expect_difference("x-message-ttl", "received '70000' but current is '60000'");
    stage
        .queue("q", "classic", json!({}))
        .expect_difference("x-message-ttl", "received none but current is the value '60000' of type 'long'");
    for (argument, value, shown) in [
        ("x-dead-letter-exchange", json!("d"), "'d' of type 'longstr'"),
        ("x-max-length", json!(5), "'5' of type 'long'"),
        ("x-single-active-consumer", json!(true), "'true' of type 'bool'"),
    ] {
        stage
            .queue("q", "classic", json!({"x-message-ttl": 60_000, argument: value}))
            .expect_difference(argument, &format!("received the value {shown} but current is none"));
    }
}

/// Used by `plan::verdict`: a PRECONDITION_FAILED over AMQP has the same text.
#[test]
fn amqp_client_receives_the_same_error() {
    let stage = Stage::new("amqp");
    stage.queue("q", "classic", json!({"x-expires": 3_600_000})).expect_created();
    let reply = stage.queue("q", "classic", json!({"x-expires": 60_000})).words;
    let heard = stage.amqp().declare_queue("q", &[("x-expires", Argument::LongLongInt(60_000))]).unwrap_err();
    assert_eq!(heard.replace(stage.vhost.name(), "v"), format!("PRECONDITION_FAILED - {reply}"));
}

/// Used by `plan::verdict`, which compares integers by value.
#[test]
fn width_of_an_integer_is_not_compared() {
    let stage = Stage::new("widths");
    let amqp = stage.amqp();
    let widths = [
        Argument::ShortShortInt(100),
        Argument::ShortShortUInt(100),
        Argument::ShortInt(100),
        Argument::ShortUInt(100),
        Argument::LongInt(100),
        Argument::LongUInt(100),
        Argument::LongLongInt(100),
    ];
    for (number, width) in widths.into_iter().enumerate() {
        let name = format!("q{number}");
        amqp.declare_queue(&name, &[("x-max-length", width)]).unwrap();
        assert_eq!(stage.listed(&name)["arguments"]["x-max-length"], json!(100), "{name}");
        stage.queue(&name, "classic", json!({"x-max-length": 100})).expect_no_content();
    }
}

/// Used by `plan::verdict`: a prediction can differ from the broker's error only in the name of the type.
#[test]
fn error_names_the_width_that_the_management_api_does_not_show() {
    let stage = Stage::new("named-width");
    stage.amqp().declare_queue("q", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    stage
        .queue("q", "classic", json!({}))
        .expect_difference("x-max-length", "received none but current is the value '5' of type 'signedint'");
}

/// Used by `model::arguments`: integers and floats are different kinds of values.
#[test]
fn integer_and_double_are_never_equal() {
    let stage = Stage::new("double");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).expect_created();
    // Erlang formats this float as 6.0e4, not as 60000.0.
    for (value, shown) in [(60_000.5, "60000.5"), (60_000.0, "6.0e4"), (5.0, "5.0")] {
        stage
            .queue("q", "classic", json!({"x-message-ttl": value}))
            .expect_difference("x-message-ttl", &format!("received '{shown}' but current is '60000'"));
    }
}

/// Used by `model::arguments`: numbers and strings are different kinds of values.
#[test]
fn number_and_string_are_never_equal() {
    let stage = Stage::new("text");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).expect_created();
    stage
        .queue("q", "classic", json!({"x-message-ttl": "60000"}))
        .expect_difference("x-message-ttl", "received '60000' but current is '60000'");
}

/// Used by `plan::verdict`: only a missing queue type is equal to its default.
#[test]
fn missing_queue_type_is_classic() {
    let stage = Stage::new("no-type");
    stage.queue("q", "", json!({})).expect_created();
    stage.queue("q", "classic", json!({})).expect_no_content();
    stage.queue("explicit", "classic", json!({})).expect_created();
    stage.queue("explicit", "", json!({})).expect_no_content();
}

/// Used by `plan::verdict`: any other default must be set on both sides or on neither.
#[test]
fn explicit_default_differs_from_an_omitted_one() {
    let stage = Stage::new("default");
    stage.queue("q", "classic", json!({})).expect_created();
    stage
        .queue("q", "classic", json!({"x-overflow": "drop-head"}))
        .expect_difference("x-overflow", "received the value 'drop-head' of type 'longstr' but current is none");
    stage
        .queue("q", "classic", json!({"x-single-active-consumer": false}))
        .expect_difference("x-single-active-consumer", "received the value 'false' of type 'bool' but current is none");
}

/// Used by `plan::verdict`: a change of the type is a conflict.
#[test]
fn queue_keeps_its_type() {
    let stage = Stage::new("types");
    stage.queue("q", "quorum", json!({})).expect_created();
    stage
        .queue("q", "classic", json!({}))
        .expect_difference("x-queue-type", "received 'classic' but current is 'quorum'");
    let left_out = if since(4, 0) {
        "received 'classic' but current is 'quorum'"
    } else {
        "received none but current is the value 'quorum' of type 'longstr'"
    };
    stage.queue("q", "", json!({})).expect_difference("x-queue-type", left_out);
}

/// Used by `plan::verdict`: 4.3 parses an age before it compares and prints it.
#[test]
fn age_of_a_stream_is_compared_by_duration_since_4_3() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("age");
    stage.queue("q", "stream", json!({"x-max-age": "7D"})).expect_created();
    let same = stage.queue("q", "stream", json!({"x-max-age": "168h"}));
    let other = stage.queue("q", "stream", json!({"x-max-age": "8D"}));
    let none = stage.queue("q", "stream", json!({}));
    if since(4, 3) {
        same.expect_no_content();
        other.expect_difference("x-max-age", "received '691200000' but current is '604800000'");
        none.expect_difference("x-max-age", "received none but current is the value '604800000' of type 'longstr'");
    } else {
        same.expect_difference("x-max-age", "received '168h' but current is '7D'");
        other.expect_difference("x-max-age", "received '8D' but current is '7D'");
        none.expect_difference("x-max-age", "received none but current is the value '7D' of type 'longstr'");
    }
}

/// Used by `plan::verdict`: for an existing queue, an invalid value is a difference like any other.
#[test]
fn values_are_not_validated_for_an_existing_queue() {
    let stage = Stage::new("unchecked");
    stage.queue("q", "classic", json!({})).expect_created();
    stage
        .queue("q", "classic", json!({"x-max-priority": 256}))
        .expect_difference("x-max-priority", "received the value '256' of type 'long' but current is none");
}

/// Used by `broker::lock` and `plan::conflict`: a redeclaration neither reports nor changes such an argument.
#[test]
fn unknown_argument_is_kept_and_not_compared() {
    let stage = Stage::new("unknown");
    stage.queue("q", "classic", json!({"x-topo-note": "one"})).expect_created();
    stage.queue("q", "classic", json!({"x-topo-note": "two", "x-topo-more": 1})).expect_no_content();
    stage.queue("q", "classic", json!({})).expect_no_content();
    let arguments = stage.listed("q")["arguments"].clone();
    assert_eq!((&arguments["x-topo-note"], arguments.get("x-topo-more")), (&json!("one"), None));
}

/// Used by `broker::snapshot`: only the owner of an exclusive queue can use it.
#[test]
fn exclusive_queue_is_locked_for_other_connections() {
    let stage = Stage::new("exclusive");
    let owner = stage.amqp();
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    owner.declare_queue_as("q", exclusive, &[]).unwrap();
    let locked = "cannot obtain exclusive access to locked queue 'q' in vhost 'v'";
    for reply in [
        stage.queue("q", "classic", json!({})),
        stage.delete("queues", "q"),
        stage.bind("amq.topic", "q", json!({"routing_key": "k"})),
    ] {
        assert_eq!(reply.status, 400);
        assert!(reply.words.starts_with(locked), "{reply:?}");
    }
    assert_eq!(stage.listed("q")["exclusive"], true);
    drop(owner);
    let gone = Http::to(&Node::shared().url(), "guest", "guest");
    crate::support::until("the queue to go with its connection", || {
        (gone.get(&stage.path("queues", &["q"])).status == 404).then_some(())
    });
}
