//! Accepted arguments of new queues and their values (`rabbit_amqqueue:declare_args`).

use serde_json::{Value, json};

use super::{Stage, since, supports_streams};

/// Declares new queues. Expects that the broker refuses the argument with this text, or accepts it if the text is
/// empty.
fn expect_replies(kind: &str, cases: &[(&str, Value, &str)]) {
    let stage = Stage::new("values");
    for (number, (argument, value, words)) in cases.iter().enumerate() {
        let name = format!("q{number}");
        let reply = stage.queue(&name, kind, json!({*argument: value}));
        if words.is_empty() {
            assert_eq!((reply.status, reply.words.as_str()), (201, ""), "{argument}: {value}");
        } else {
            let expected = format!("invalid arg '{argument}' for queue '{name}' in vhost 'v'{words}");
            assert_eq!((reply.status, reply.words), (400, expected), "{argument}: {value}");
        }
    }
}

/// Used by `model::known_arguments` for the ranges of `ValueKind`.
#[test]
fn values_out_of_range_are_refused() {
    expect_replies(
        "classic",
        &[
            ("x-message-ttl", json!(0), ""),
            ("x-message-ttl", json!(-1), ": {value_negative,-1}"),
            ("x-expires", json!(1), ""),
            ("x-expires", json!(0), ": {value_zero,0}"),
            ("x-max-length", json!(0), ""),
            ("x-max-length", json!(-1), ": {value_negative,-1}"),
            ("x-max-length-bytes", json!(-1), ": {value_negative,-1}"),
            ("x-max-priority", json!(255), ""),
            ("x-max-priority", json!(256), ": {max_value_exceeded,256}"),
            ("x-overflow", json!("reject-publish-dlx"), ""),
            ("x-overflow", json!("bogus"), ": invalid_overflow"),
            ("x-single-active-consumer", json!(false), ""),
            ("x-dead-letter-exchange", json!(""), ""),
        ],
    );
}

/// Used by `model::known_arguments` for the maximum duration.
#[test]
fn ten_years_are_the_maximum_time_since_3_10() {
    const TEN_YEARS: i64 = 315_360_000_000;
    let too_long = if since(3, 10) { ": {value_too_large,315360000001}" } else { "" };
    expect_replies(
        "classic",
        &[
            ("x-message-ttl", json!(TEN_YEARS), ""),
            ("x-message-ttl", json!(TEN_YEARS + 1), too_long),
            ("x-expires", json!(TEN_YEARS), ""),
            ("x-expires", json!(TEN_YEARS + 1), too_long),
        ],
    );
}

/// Used by `spec`: a `deadLetter` with a routing key requires an exchange in the arguments; a policy is not sufficient.
#[test]
fn dead_letter_routing_key_requires_an_exchange() {
    let stage = Stage::new("key-only");
    stage.policy("p", 1.0, json!({"dead-letter-exchange": "amq.fanout"})).expect_created();
    let why = "routing_key_but_no_dlx_defined";
    stage
        .queue("q", "classic", json!({"x-dead-letter-routing-key": "k"}))
        .expect_refusal(&format!("invalid arg 'x-dead-letter-routing-key' for queue 'q' in vhost 'v': {why}"));
    stage.queue("q", "classic", json!({"x-dead-letter-exchange": "not.there"})).expect_created();
}

/// Used by `rabbitmq::declare` and `KnownArgument::is_accepted` for quorum queues.
#[test]
fn quorum_queue_refuses_arguments_of_classic_queues() {
    let other = if since(3, 9) { " of queue type rabbit_quorum_queue" } else { "" };
    let stage = Stage::new("quorum");
    for (argument, value) in [("x-max-priority", json!(3)), ("x-queue-mode", json!("lazy"))] {
        let reply = stage.queue("q", "quorum", json!({argument: value}));
        reply.expect_refusal(&format!("invalid arg '{argument}' for queue 'q' in vhost 'v'{other}"));
    }
    let locator = stage.queue("q", "quorum", json!({"x-queue-master-locator": "random"}));
    if since(3, 9) {
        locator.expect_refusal(&format!("invalid arg 'x-queue-master-locator' for queue 'q' in vhost 'v'{other}"));
    } else {
        locator.expect_created();
    }
}

/// Used by `rabbitmq::declare`: quorum queues of 3.8.9 refuse these arguments
/// (`rabbit_quorum_queue:check_invalid_arguments`), and later versions support them. 3.8 to 3.9 refuse the first, and
/// early 3.8 versions the others.
#[test]
fn quorum_queue_of_3_8_refuses_ttl_expiry_and_overflow() {
    let stage = Stage::new("early");
    for (argument, value, taken) in [
        ("x-message-ttl", json!(60_000), since(3, 10)),
        ("x-expires", json!(3_600_000), since(3, 9)),
        ("x-overflow", json!("reject-publish"), since(3, 9)),
    ] {
        let name = format!("q{argument}");
        let reply = stage.queue(&name, "quorum", json!({argument: value}));
        if taken {
            reply.expect_created();
        } else {
            let other = if since(3, 9) { " of queue type rabbit_quorum_queue" } else { "" };
            reply.expect_refusal(&format!("invalid arg '{argument}' for queue '{name}' in vhost 'v'{other}"));
        }
    }
}

/// Used by `rabbitmq::declare` for classic queues. 3.8 accepts unknown arguments, and validates only the values of
/// known arguments.
#[test]
fn classic_queue_refuses_arguments_of_other_types_since_3_9() {
    let other = if since(3, 9) { " of queue type rabbit_classic_queue" } else { "" };
    let newer = |from: bool| if from { other } else { "" };
    expect_replies(
        "classic",
        &[
            ("x-delivery-limit", json!(5), other),
            ("x-quorum-initial-group-size", json!(1), other),
            ("x-dead-letter-strategy", json!("at-most-once"), newer(since(3, 10))),
            ("x-max-age", json!("7D"), other),
            ("x-stream-max-segment-size-bytes", json!(500_000), other),
            ("x-initial-cluster-size", json!(1), other),
            ("x-stream-filter-size-bytes", json!(32), newer(since(4, 2))),
            ("x-queue-leader-locator", json!("balanced"), if since(4, 0) { "" } else { other }),
            ("x-consumer-timeout", json!(60_000), newer(since(4, 3))),
            ("x-delayed-retry-min", json!(60_000), newer(since(4, 3))),
        ],
    );
}

/// Used by `rabbitmq::declare` for streams.
#[test]
fn stream_refuses_arguments_of_other_types() {
    if !supports_streams() {
        return;
    }
    let other = " of queue type rabbit_stream_queue";
    expect_replies(
        "stream",
        &[
            ("x-message-ttl", json!(60_000), other),
            ("x-expires", json!(60_000), other),
            ("x-max-length", json!(5), other),
            ("x-overflow", json!("drop-head"), other),
            ("x-dead-letter-exchange", json!("d"), other),
            ("x-single-active-consumer", json!(true), other),
            ("x-delivery-limit", json!(5), other),
            ("x-max-length-bytes", json!(5_000_000), ""),
            ("x-max-age", json!("7D"), ""),
            ("x-max-age", json!("7d"), ": invalid_max_age"),
            ("x-max-age", json!("7W"), ": invalid_max_age"),
        ],
    );
}

/// Used by `spec`, which validates the value, because the broker does not.
#[test]
fn delivery_limit_is_never_validated() {
    expect_replies(
        "quorum",
        &[
            ("x-delivery-limit", json!("five"), ""),
            ("x-delivery-limit", json!(-5), ""),
            ("x-delivery-limit", json!(5.0), ""),
        ],
    );
}

/// Used by `spec`, which validates the values, because the broker does not.
#[test]
fn arguments_of_delayed_retries_are_never_validated() {
    expect_replies("quorum", &[("x-delayed-retry-type", json!("bogus"), ""), ("x-delayed-retry-min", json!("x"), "")]);
}

/// Used by `model::known_arguments` for the values `at-most-once` and `at-least-once`.
#[test]
fn dead_letter_strategy_is_validated_since_3_10() {
    let bogus = if since(3, 10) { ": invalid_dlx_strategy" } else { "" };
    expect_replies(
        "quorum",
        &[("x-dead-letter-strategy", json!("bogus"), bogus), ("x-dead-letter-strategy", json!("at-least-once"), "")],
    );
}

/// Used by `model::known_arguments`: only version 2 is accepted since 4.3, and a plan with version 1 would fail
/// halfway.
#[test]
fn classic_queue_of_version_1_is_refused_since_4_3() {
    let one = if since(4, 3) { ": \"unsupported queue version '1'\"" } else { "" };
    let three = if since(3, 10) { ": \"unsupported queue version '3'\"" } else { "" };
    expect_replies(
        "classic",
        &[("x-queue-version", json!(1), one), ("x-queue-version", json!(2), ""), ("x-queue-version", json!(3), three)],
    );
}

/// Used by `model::known_arguments`: 4.3 refuses the argument unless the deprecated feature is permitted.
#[test]
fn master_locator_is_refused_since_4_3() {
    let stage = Stage::new("master");
    let reply = stage.queue("q", "classic", json!({"x-queue-master-locator": "client-local"}));
    if since(4, 3) {
        assert_eq!(reply.status, 400);
        assert!(reply.words.starts_with("Feature `queue_master_locator` is deprecated."), "{reply:?}");
    } else {
        reply.expect_created();
    }
}

/// Used by `model::known_arguments` for the values of `queueMode`.
#[test]
fn queue_mode_is_validated_before_4_3() {
    let bogus = match (since(3, 9), since(4, 3)) {
        (_, true) => "",
        (true, _) => ": \"unsupported queue mode 'bogus'\"",
        (false, _) => ": invalid_queue_mode",
    };
    expect_replies("classic", &[("x-queue-mode", json!("lazy"), ""), ("x-queue-mode", json!("bogus"), bogus)]);
}
