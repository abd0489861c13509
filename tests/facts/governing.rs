//! The governing policy of a queue. On all versions, the list without statistics contains it immediately.

use serde_json::{Value, json};

use super::{Stage, since};

/// Creates a vhost with a queue of each type: `classic`, `quorum`, `stream`.
fn stage(hint: &str) -> Stage {
    let stage = Stage::new(hint);
    for kind in kinds() {
        stage.queue(kind, kind, json!({})).expect_created();
    }
    stage
}

fn kinds() -> &'static [&'static str] {
    if since(3, 9) { &["classic", "quorum", "stream"] } else { &["classic", "quorum"] }
}

/// Returns the name of the governing policy; empty if no policy governs the queue.
fn governor(stage: &Stage, queue: &str) -> String {
    stage.listed(queue).get("policy").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn policy(stage: &Stage, name: &str, pattern: &str, priority: f64) {
    let body =
        json!({"pattern": pattern, "apply-to": "queues", "priority": priority, "definition": {"max-length-bytes": 1}});
    stage.put("policies", name, body).expect_created();
}

/// Used by `rabbitmq::governing`: the broker skips the whole policy, and the policy with the next lower priority
/// governs.
#[test]
fn policy_with_an_unsupported_key_is_skipped_entirely() {
    let stage = stage("skipped");
    stage.policy("lower", 1.0, json!({"max-length-bytes": 1_000})).expect_created();
    stage.policy("higher", 2.0, json!({"max-length-bytes": 500, "delivery-limit": 5})).expect_created();
    // Classic queues of 3.8 accept any key (`rabbit_amqqueue_process:is_policy_applicable`).
    assert_eq!(governor(&stage, "classic"), if since(3, 9) { "lower" } else { "higher" });
    assert_eq!(governor(&stage, "quorum"), "higher");
    if since(3, 9) {
        assert_eq!(governor(&stage, "stream"), "lower");
    }
}

/// Used by `rabbitmq::governing`: the broker does not merge a policy with a lower priority.
#[test]
fn highest_priority_governs_without_a_merge() {
    let stage = stage("highest");
    stage.policy("low", -1.0, json!({"max-length-bytes": 1_000, "alternate-exchange": "x"})).expect_created();
    assert_eq!(governor(&stage, "classic"), "low");
    stage.policy("none", 0.5, json!({"max-length-bytes": 2_000})).expect_created();
    stage.policy("high", 0.75, json!({"max-length-bytes": 3_000})).expect_created();
    for kind in kinds() {
        assert_eq!(governor(&stage, kind), "high");
    }
    if since(4, 3) {
        assert_eq!(stage.listed("classic")["effective_policy_definition"], json!({"max-length-bytes": 3_000}));
    }
    stage.delete("policies", "high").expect_no_content();
    assert_eq!(governor(&stage, "classic"), "none");
}

/// Used by `rabbitmq::governing`: if priorities are equal, the choice is undocumented, but exactly one policy governs.
#[test]
fn one_of_two_equal_priorities_governs() {
    let stage = stage("equal");
    policy(&stage, "a", ".*", 1.0);
    policy(&stage, "b", ".*", 1.0);
    let governor = governor(&stage, "classic");
    assert!(matches!(governor.as_str(), "a" | "b"), "{governor}");
}

/// Used by `rabbitmq::pattern`: PCRE has more features than most regular expression engines.
#[test]
fn patterns_are_unanchored_and_can_look_around() {
    let stage = Stage::new("patterns");
    stage.queue("classic", "classic", json!({})).expect_created();
    for (pattern, matches) in [
        ("lassi", true),
        ("^lassi", false),
        ("^classic$", true),
        ("^(?!quorum).*$", true),
        ("^(?!classic).*$", false),
        ("(?<=clas)sic", true),
        ("(?<!clas)sic", false),
        ("(s)\\1", true),
        ("CLASSIC", false),
        ("(?i)CLASSIC", true),
        ("^\\w{7}$", true),
        ("^[[:alpha:]]+$", true),
        ("", true),
        ("^cl(?#a comment)assic$", true),
        ("^(?>cl|clas)sic$", false),
    ] {
        policy(&stage, "p", pattern, 1.0);
        assert_eq!(governor(&stage, "classic") == "p", matches, "{pattern}");
        stage.delete("policies", "p").expect_no_content();
    }
}

/// Used by `rabbitmq::pattern`: characters and bytes differ.
#[test]
fn patterns_match_bytes() {
    let stage = Stage::new("bytes");
    stage.queue("é", "classic", json!({})).expect_created();
    policy(&stage, "one", "^.$", 1.0);
    assert_eq!(governor(&stage, "é"), "");
    policy(&stage, "two", "^..$", 1.0);
    assert_eq!(governor(&stage, "é"), "two");
    policy(&stage, "itself", "^é$", 2.0);
    assert_eq!(governor(&stage, "é"), "itself");
}

/// Used by `rabbitmq::governing`.
#[test]
fn policy_for_a_queue_type_governs_that_type_since_3_12() {
    let stage = stage("by-type");
    for (word, kind) in [("classic_queues", "classic"), ("quorum_queues", "quorum"), ("streams", "stream")] {
        let body = json!({"pattern": ".*", "apply-to": word, "definition": {"max-length-bytes": 1}});
        let written = stage.put("policies", word, body);
        if since(3, 12) {
            written.expect_created();
            assert_eq!(governor(&stage, kind), word);
        } else {
            assert_eq!(written.status, 400, "{written:?}");
            assert!(written.words.contains(&format!("apply-to '{word}' unrecognised")), "{written:?}");
        }
    }
    if !since(3, 12) {
        return;
    }
    let body =
        json!({"pattern": ".*", "apply-to": "exchanges", "priority": 9, "definition": {"alternate-exchange": "x"}});
    stage.put("policies", "exchanges", body).expect_created();
    assert_eq!(governor(&stage, "classic"), "classic_queues");
}

/// Used by `rabbitmq::policy_keys`. Each policy sets one key, and the test lists the queues that it governs.
#[test]
fn supported_policy_keys_depend_on_type_and_version() {
    let stage = stage("keys");
    let all = "classic quorum stream";
    let (v3_9, v3_10, v3_11, v4_0) = (since(3, 9), since(3, 10), since(3, 11), since(4, 0));
    let early = |then: &'static str, before: &'static str| if v3_9 { then } else { before };
    let cases: &[(&str, Value, &str)] = &[
        ("max-length", json!(5), "classic quorum"),
        ("max-length-bytes", json!(5), all),
        ("message-ttl", json!(60_000), if v3_10 { "classic quorum" } else { "classic" }),
        ("expires", json!(3_600_000), early("classic quorum", "classic")),
        ("overflow", json!("drop-head"), early("classic quorum", "classic")),
        ("dead-letter-exchange", json!("d"), "classic quorum"),
        ("dead-letter-routing-key", json!("k"), "classic quorum"),
        ("dead-letter-strategy", json!("at-most-once"), "quorum"),
        ("delivery-limit", json!(5), early("quorum", "classic quorum")),
        // Measured only on 3.10.8 and 4.0.5. According to the source, the change was in 3.11.
        ("max-in-memory-length", json!(5), if v3_11 { "quorum" } else { "classic quorum" }),
        ("queue-mode", json!("lazy"), "classic"),
        // Queues of every type accept the key, although it affects only one type.
        ("queue-version", json!(2), all),
        ("queue-master-locator", json!("random"), "classic"),
        ("queue-leader-locator", json!("balanced"), if v4_0 { all } else { "quorum stream" }),
        ("ha-mode", json!("all"), "classic"),
        ("max-age", json!("7D"), "stream"),
        ("stream-max-segment-size-bytes", json!(500_000), "stream"),
        ("stream-filter-size-bytes", json!(32), all),
        ("initial-cluster-size", json!(1), "stream"),
        ("target-group-size", json!(3), "quorum"),
        ("consumer-timeout", json!(60_000), all),
        ("consumer-disconnected-timeout", json!(60_000), all),
        ("delayed-retry-type", json!("disabled"), all),
        // A key of exchanges does not prevent a policy from governing a queue, except on quorum queues of 3.8, which
        // accept seven keys.
        ("alternate-exchange", json!("x"), early(all, "classic")),
    ];
    let mut wrong = Vec::new();
    for (key, value, expected) in cases {
        if stage.policy("p", 1.0, json!({*key: value})).status != 201 {
            // This version does not support the key; see `policies`.
            continue;
        }
        let governed: Vec<&str> = kinds().iter().copied().filter(|kind| governor(&stage, kind) == "p").collect();
        let expected: Vec<&str> = expected.split(' ').filter(|kind| kinds().contains(kind)).collect();
        if governed != expected {
            wrong.push(format!("{key}: {governed:?}, expected {expected:?}"));
        }
        stage.delete("policies", "p").expect_no_content();
    }
    assert_eq!(wrong, [""; 0]);
}

/// Used by `rabbitmq::governing`: a policy governs a queue from its declaration on.
#[test]
fn new_queue_is_governed_immediately() {
    let stage = Stage::new("born");
    stage.policy("p", 1.0, json!({"max-length": 1})).expect_created();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).expect_created();
        assert_eq!(governor(&stage, kind), "p");
    }
}
