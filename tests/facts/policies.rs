//! Accepted policies, and supported keys by queue type (`rabbit_policy`, `rabbit_policies`).

use serde_json::{Value, json};

use super::{Stage, since};

/// Expects this response to each definition; an empty text means that the definition is accepted. `<`, `>` and `"` are
/// as in the newest versions.
fn expect_replies(cases: &[(Value, bool, &str)]) {
    let stage = Stage::new("policies");
    for (definition, taken, words) in cases {
        let reply = stage.policy("p", 0.0, definition.clone());
        let plain = reply.words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        if *taken {
            assert!(matches!(reply.status, 201 | 204), "{definition}: {reply:?}");
        } else {
            assert_eq!((reply.status, plain), (400, format!("Validation failed\n\n{words}\n")), "{definition}");
        }
    }
}

/// Returns the error for a key that the version does not support, such as `max-priority,3`.
fn unrecognized(setting: &str) -> String {
    let (key, value) = setting.split_once(',').unwrap();
    format!("[{{<<\"{key}\">>,{value}}}] are not recognised policy settings")
}

/// Used by `broker::perform`.
#[test]
fn policy_is_overwritten_in_place() {
    let stage = Stage::new("written");
    for (limit, status) in [(1, 201), (1, 204), (2, 204)] {
        let reply = stage.policy("p", 0.0, json!({"max-length": limit}));
        assert_eq!((reply.status, reply.body), (status, json!(null)));
    }
    assert_eq!(stage.get("policies", "p")["definition"], json!({"max-length": 2}));
    stage.delete("policies", "p").expect_no_content();
}

/// Used by `spec`, which requires a pattern and at least one key.
#[test]
fn policy_requires_a_pattern_and_a_definition() {
    let stage = Stage::new("incomplete");
    let put = |body: Value| stage.put("policies", "p", body);
    put(json!({"definition": {"max-length": 1}})).expect_refusal("[{key_missing,pattern}]");
    put(json!({"pattern": "x"})).expect_refusal("[{key_missing,definition}]");
    put(json!({"pattern": "x", "definition": {}})).expect_refusal("Validation failed\n\nno policy provided\n");
    let reply = put(json!({"pattern": "(", "definition": {"max-length": 1}}));
    assert_eq!(reply.status, 400);
    let words = "Validation failed\n\npattern should be regular expression but is invalid: {\"missing ";
    assert!(reply.words.replace("&quot;", "\"").starts_with(words), "{reply:?}");
}

/// Used by `plan::conflict`, which knows the values of `apply-to` for a single queue type.
#[test]
fn policy_can_select_a_queue_type_since_3_12() {
    let stage = Stage::new("apply-to");
    let put = |word: &str| {
        stage.put("policies", "p", json!({"pattern": "x", "apply-to": word, "definition": {"max-length": 1}}))
    };
    for word in ["all", "queues", "exchanges"] {
        assert!(matches!(put(word).status, 201 | 204), "{word}");
    }
    let known = if since(3, 12) {
        "one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"
    } else {
        "'queues', 'exchanges' or 'all'"
    };
    for word in ["classic_queues", "quorum_queues", "streams", "bogus"] {
        if since(3, 12) && word != "bogus" {
            put(word).expect_no_content();
        } else {
            put(word)
                .expect_refusal(&format!("Validation failed\n\napply-to '{word}' unrecognised; should be {known}\n"));
        }
    }
}

/// Used by `spec::value`, which validates the numbers and words of a key.
#[test]
fn values_of_a_policy_are_validated() {
    expect_replies(&[
        (json!({"max-length": 0}), true, ""),
        (json!({"max-length": -1}), false, "-1 is not a valid maximum length"),
        (json!({"max-length": 1.5}), false, "1.5 is not a valid maximum length"),
        (json!({"max-length": "5"}), false, "<<\"5\">> is not a valid maximum length"),
        (json!({"expires": 1}), true, ""),
        (json!({"expires": 0}), false, "0 is not a valid queue expiry"),
        (json!({"message-ttl": 0}), true, ""),
        // Unlike the argument, the policy key is not limited to ten years.
        (json!({"message-ttl": 315_360_000_001_i64}), true, ""),
        (json!({"overflow": "bogus"}), false, "<<\"bogus\">> is not a valid overflow value"),
        (json!({"queue-mode": "bogus"}), false, "<<\"bogus\">> is not a valid queue-mode value"),
        (json!({"dead-letter-routing-key": "k"}), true, ""),
        (json!({"alternate-exchange": "not.there"}), true, ""),
    ]);
}

/// Used by `spec::check`, which knows the arguments that a policy cannot set.
#[test]
fn some_arguments_have_no_policy_key() {
    expect_replies(&[
        (json!({"single-active-consumer": true}), false, &unrecognized("single-active-consumer,true")),
        (json!({"max-priority": 3}), false, &unrecognized("max-priority,3")),
        (json!({"queue-type": 1}), false, &unrecognized("queue-type,1")),
        (json!({"nonsense": 1}), false, &unrecognized("nonsense,1")),
    ]);
}

/// Used by `model::known_arguments`, which lists the keys that versions added and removed.
#[test]
fn keys_of_policies_depend_on_the_version() {
    let text = |key: &str, value: &str| unrecognized(&format!("{key},<<\"{value}\">>"));
    expect_replies(&[
        (json!({"queue-version": 2}), since(3, 10), &unrecognized("queue-version,2")),
        (json!({"max-age": "7D"}), since(3, 9), &text("max-age", "7D")),
        (
            json!({"dead-letter-strategy": "at-least-once"}),
            since(3, 10),
            &text("dead-letter-strategy", "at-least-once"),
        ),
        (json!({"queue-leader-locator": "balanced"}), since(3, 9), &text("queue-leader-locator", "balanced")),
        (json!({"consumer-timeout": 60_000}), since(3, 12), &unrecognized("consumer-timeout,60000")),
        (json!({"target-group-size": 3}), since(3, 12), &unrecognized("target-group-size,3")),
        (json!({"stream-filter-size-bytes": 32}), since(3, 13), &unrecognized("stream-filter-size-bytes,32")),
        (json!({"consumer-disconnected-timeout": 1}), since(4, 3), &unrecognized("consumer-disconnected-timeout,1")),
        (json!({"delayed-retry-type": "disabled"}), since(4, 3), &text("delayed-retry-type", "disabled")),
        (json!({"ha-mode": "all"}), !since(4, 0), &text("ha-mode", "all")),
        (
            json!({"queue-master-locator": "random"}),
            !since(4, 3),
            "use of deprecated queue-master-locator argument is not permitted",
        ),
    ]);
}

/// Used by `spec` and `plan`: -1 means "no limit" since 4.0.
#[test]
fn delivery_limit_of_a_policy_can_be_negative_since_4_0() {
    expect_replies(&[
        (json!({"delivery-limit": 0}), true, ""),
        (json!({"delivery-limit": -1}), since(4, 0), "-1 is not a valid delivery limit"),
    ]);
}

/// Used by `plan::effects`, which knows the keys that an operator policy can override.
#[test]
fn operator_policy_supports_few_keys() {
    let stage = Stage::new("operator");
    let put =
        |definition: Value| stage.put("operator-policies", "o", json!({"pattern": "x", "definition": definition}));
    for key in ["max-length", "max-length-bytes", "message-ttl", "expires", "delivery-limit"] {
        assert!(matches!(put(json!({key: 5})).status, 201 | 204), "{key}");
    }
    assert_eq!(put(json!({"overflow": "drop-head"})).status, if since(3, 12) { 204 } else { 400 });
    for key in ["dead-letter-exchange", "dead-letter-routing-key", "max-age"] {
        assert_eq!(put(json!({key: "7D"})).status, 400, "{key}");
    }
}
