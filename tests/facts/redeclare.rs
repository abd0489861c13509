//! Redeclares of existing queues: equal values, refusals, and their errors.
//!
//! `rabbit_amqqueue:assert_equivalence`, `rabbit_misc:assert_args_equivalence`.

use lapin::options::QueueDeclareOptions;
use serde_json::json;

use super::{Stage, since, supports_streams};
use crate::support::{Argument, Http, Node};

/// `plan::verdict`: equal means unchanged.
#[test]
fn new_queue_is_201_and_an_equal_one_204() {
    let stage = Stage::new("equal");
    let arguments = json!({"x-message-ttl": 60_000, "x-dead-letter-exchange": "d"});
    let answer = stage
        .http
        .put(&stage.path("queues", &["q"]), &json!({"durable": true, "auto_delete": false, "arguments": arguments}));
    assert_eq!((answer.status, answer.body), (201, json!(null)));
    stage.queue("q", "", arguments).taken();
}

/// `plan::verdict::rank`: the error of a conflict names the first difference.
#[test]
fn durable_is_compared_first_and_auto_delete_before_arguments() {
    let stage = Stage::new("first");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).created();
    let arguments = json!({"x-queue-type": "quorum", "x-message-ttl": 1});
    stage
        .put("queues", "q", json!({"durable": false, "auto_delete": true, "arguments": arguments}))
        .unequal("durable", "received 'false' but current is 'true'");
    stage
        .put("queues", "q", json!({"durable": true, "auto_delete": true, "arguments": arguments}))
        .unequal("auto_delete", "received 'true' but current is 'false'");
}

/// `plan::verdict::sentence`.
#[test]
fn difference_is_reported_in_one_of_three_forms() {
    let stage = Stage::new("tails");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).created();
    stage
        .queue("q", "classic", json!({"x-message-ttl": 70_000}))
        .unequal("x-message-ttl", "received '70000' but current is '60000'");
    stage
        .queue("q", "classic", json!({}))
        .unequal("x-message-ttl", "received none but current is the value '60000' of type 'long'");
    for (argument, value, shown) in [
        ("x-dead-letter-exchange", json!("d"), "'d' of type 'longstr'"),
        ("x-max-length", json!(5), "'5' of type 'long'"),
        ("x-single-active-consumer", json!(true), "'true' of type 'bool'"),
    ] {
        stage
            .queue("q", "classic", json!({"x-message-ttl": 60_000, argument: value}))
            .unequal(argument, &format!("received the value {shown} but current is none"));
    }
}

/// `plan::verdict::sentence`: a PRECONDITION_FAILED over AMQP has the same text.
#[test]
fn amqp_client_receives_the_same_error() {
    let stage = Stage::new("amqp");
    stage.queue("q", "classic", json!({"x-expires": 3_600_000})).created();
    let answer_of = stage.queue("q", "classic", json!({"x-expires": 60_000})).words;
    let heard = stage.amqp().declare_queue("q", &[("x-expires", Argument::LongLongInt(60_000))]).unwrap_err();
    assert_eq!(heard.replace(stage.vhost.name(), "v"), format!("PRECONDITION_FAILED - {answer_of}"));
}

/// `plan::verdict`: integers are compared by value.
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
        stage.queue(&name, "classic", json!({"x-max-length": 100})).taken();
    }
}

/// `plan::verdict::sentence`: a prediction can differ from the broker's error only in the type's name.
#[test]
fn error_names_the_width_that_the_management_api_does_not_show() {
    let stage = Stage::new("named-width");
    stage.amqp().declare_queue("q", &[("x-max-length", Argument::LongInt(5))]).unwrap();
    stage
        .queue("q", "classic", json!({}))
        .unequal("x-max-length", "received none but current is the value '5' of type 'signedint'");
}

/// `model::arguments`: integers and floats are different kinds of values.
#[test]
fn integer_and_double_are_never_equal() {
    let stage = Stage::new("double");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).created();
    // Erlang's format of a float: not 60000.0.
    for (value, shown) in [(60_000.5, "60000.5"), (60_000.0, "6.0e4"), (5.0, "5.0")] {
        stage
            .queue("q", "classic", json!({"x-message-ttl": value}))
            .unequal("x-message-ttl", &format!("received '{shown}' but current is '60000'"));
    }
}

/// `model::arguments`.
#[test]
fn number_and_string_are_never_equal() {
    let stage = Stage::new("text");
    stage.queue("q", "classic", json!({"x-message-ttl": 60_000})).created();
    stage
        .queue("q", "classic", json!({"x-message-ttl": "60000"}))
        .unequal("x-message-ttl", "received '60000' but current is '60000'");
}

/// `plan::verdict::is_equal`: the only default that counts as equal.
#[test]
fn missing_queue_type_is_classic() {
    let stage = Stage::new("no-type");
    stage.queue("q", "", json!({})).created();
    stage.queue("q", "classic", json!({})).taken();
    stage.queue("explicit", "classic", json!({})).created();
    stage.queue("explicit", "", json!({})).taken();
}

/// `plan::verdict`: any other default must be set on both sides or on neither.
#[test]
fn explicit_default_differs_from_an_omitted_one() {
    let stage = Stage::new("default");
    stage.queue("q", "classic", json!({})).created();
    stage
        .queue("q", "classic", json!({"x-overflow": "drop-head"}))
        .unequal("x-overflow", "received the value 'drop-head' of type 'longstr' but current is none");
    stage
        .queue("q", "classic", json!({"x-single-active-consumer": false}))
        .unequal("x-single-active-consumer", "received the value 'false' of type 'bool' but current is none");
}

/// `plan::verdict`: a change of type is a conflict.
#[test]
fn queue_keeps_its_type() {
    let stage = Stage::new("types");
    stage.queue("q", "quorum", json!({})).created();
    stage.queue("q", "classic", json!({})).unequal("x-queue-type", "received 'classic' but current is 'quorum'");
    let left_out = if since(4, 0) {
        "received 'classic' but current is 'quorum'"
    } else {
        "received none but current is the value 'quorum' of type 'longstr'"
    };
    stage.queue("q", "", json!({})).unequal("x-queue-type", left_out);
}

/// `plan::verdict::is_equal`, `plan::verdict::sentence`: 4.3 parses an age before it compares and prints it.
#[test]
fn age_of_a_stream_is_compared_by_duration_since_4_3() {
    if !supports_streams() {
        return;
    }
    let stage = Stage::new("age");
    stage.queue("q", "stream", json!({"x-max-age": "7D"})).created();
    let same = stage.queue("q", "stream", json!({"x-max-age": "168h"}));
    let other = stage.queue("q", "stream", json!({"x-max-age": "8D"}));
    let none = stage.queue("q", "stream", json!({}));
    if since(4, 3) {
        same.taken();
        other.unequal("x-max-age", "received '691200000' but current is '604800000'");
        none.unequal("x-max-age", "received none but current is the value '604800000' of type 'longstr'");
    } else {
        same.unequal("x-max-age", "received '168h' but current is '7D'");
        other.unequal("x-max-age", "received '8D' but current is '7D'");
        none.unequal("x-max-age", "received none but current is the value '7D' of type 'longstr'");
    }
}

/// `plan::verdict`: for an existing queue, an invalid value is a difference like any other.
#[test]
fn values_are_not_validated_for_an_existing_queue() {
    let stage = Stage::new("unchecked");
    stage.queue("q", "classic", json!({})).created();
    stage
        .queue("q", "classic", json!({"x-max-priority": 256}))
        .unequal("x-max-priority", "received the value '256' of type 'long' but current is none");
}

/// `broker::lock`, `plan::conflict`: a redeclaration neither reports nor changes it.
#[test]
fn unknown_argument_is_kept_and_not_compared() {
    let stage = Stage::new("unknown");
    stage.queue("q", "classic", json!({"x-topo-note": "one"})).created();
    stage.queue("q", "classic", json!({"x-topo-note": "two", "x-topo-more": 1})).taken();
    stage.queue("q", "classic", json!({})).taken();
    let arguments = stage.listed("q")["arguments"].clone();
    assert_eq!((&arguments["x-topo-note"], arguments.get("x-topo-more")), (&json!("one"), None));
}

/// `broker::snapshot`: only the owner of an exclusive queue can use it.
#[test]
fn exclusive_queue_is_locked_for_other_connections() {
    let stage = Stage::new("exclusive");
    let owner = stage.amqp();
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    owner.declare_queue_as("q", exclusive, &[]).unwrap();
    let locked = "cannot obtain exclusive access to locked queue 'q' in vhost 'v'";
    for answer_of in [
        stage.queue("q", "classic", json!({})),
        stage.delete("queues", "q"),
        stage.bind("amq.topic", "q", json!({"routing_key": "k"})),
    ] {
        assert_eq!(answer_of.status, 400);
        assert!(answer_of.words.starts_with(locked), "{answer_of:?}");
    }
    assert_eq!(stage.listed("q")["exclusive"], true);
    drop(owner);
    let gone = Http::to(&Node::shared().url(), "guest", "guest");
    crate::support::until("the queue to go with its connection", || {
        (gone.get(&stage.path("queues", &["q"])).status == 404).then_some(())
    });
}
