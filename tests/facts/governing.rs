//! Which policy governs a queue. The list without statistics says it at once, on all versions.

use serde_json::{Value, json};

use super::{Stage, since};

/// A vhost with a queue of each type: `classic`, `quorum`, `stream`.
fn stage(hint: &str) -> Stage {
    let stage = Stage::new(hint);
    for kind in kinds() {
        stage.queue(kind, kind, json!({})).created();
    }
    stage
}

fn kinds() -> &'static [&'static str] {
    if since(3, 9) { &["classic", "quorum", "stream"] } else { &["classic", "quorum"] }
}

/// The policy that governs a queue; empty for none.
fn governor(stage: &Stage, queue: &str) -> String {
    stage.listed(queue).get("policy").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn policy(stage: &Stage, name: &str, pattern: &str, priority: f64) {
    let body =
        json!({"pattern": pattern, "apply-to": "queues", "priority": priority, "definition": {"max-length-bytes": 1}});
    stage.put("policies", name, body).created();
}

/// `rabbitmq::governing`: the whole policy, and the next lower one instead.
#[test]
fn a_policy_with_one_unsupported_key_is_skipped_as_a_whole() {
    let stage = stage("skipped");
    stage.policy("lower", 1.0, json!({"max-length-bytes": 1_000})).created();
    stage.policy("higher", 2.0, json!({"max-length-bytes": 500, "delivery-limit": 5})).created();
    // Classic queues of 3.8 take any key (`rabbit_amqqueue_process:is_policy_applicable`).
    assert_eq!(governor(&stage, "classic"), if since(3, 9) { "lower" } else { "higher" });
    assert_eq!(governor(&stage, "quorum"), "higher");
    if since(3, 9) {
        assert_eq!(governor(&stage, "stream"), "lower");
    }
}

/// `rabbitmq::governing`: nothing of a lower one is added to it.
#[test]
fn the_highest_priority_governs_and_nothing_is_merged() {
    let stage = stage("highest");
    stage.policy("low", -1.0, json!({"max-length-bytes": 1_000, "alternate-exchange": "x"})).created();
    assert_eq!(governor(&stage, "classic"), "low");
    stage.policy("none", 0.5, json!({"max-length-bytes": 2_000})).created();
    stage.policy("high", 0.75, json!({"max-length-bytes": 3_000})).created();
    for kind in kinds() {
        assert_eq!(governor(&stage, kind), "high");
    }
    if since(4, 3) {
        assert_eq!(stage.listed("classic")["effective_policy_definition"], json!({"max-length-bytes": 3_000}));
    }
    stage.delete("policies", "high").taken();
    assert_eq!(governor(&stage, "classic"), "none");
}

/// `rabbitmq::governing`: a tie is broken by nothing that anybody promises, but by one of the two.
#[test]
fn of_equal_priorities_one_governs() {
    let stage = stage("equal");
    policy(&stage, "a", ".*", 1.0);
    policy(&stage, "b", ".*", 1.0);
    let governor = governor(&stage, "classic");
    assert!(matches!(governor.as_str(), "a" | "b"), "{governor}");
}

/// `rabbitmq::pattern`: PCRE, which is more than most regular expressions.
#[test]
fn patterns_are_unanchored_and_can_look_around() {
    let stage = Stage::new("patterns");
    stage.queue("classic", "classic", json!({})).created();
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
        stage.delete("policies", "p").taken();
    }
}

/// `rabbitmq::pattern`: characters and bytes are not the same.
#[test]
fn a_pattern_sees_bytes_and_not_characters() {
    let stage = Stage::new("bytes");
    stage.queue("é", "classic", json!({})).created();
    policy(&stage, "one", "^.$", 1.0);
    assert_eq!(governor(&stage, "é"), "");
    policy(&stage, "two", "^..$", 1.0);
    assert_eq!(governor(&stage, "é"), "two");
    policy(&stage, "itself", "^é$", 2.0);
    assert_eq!(governor(&stage, "é"), "itself");
}

/// `rabbitmq::governing`.
#[test]
fn a_policy_for_a_type_of_queue_governs_that_type_since_3_12() {
    let stage = stage("by-type");
    for (word, kind) in [("classic_queues", "classic"), ("quorum_queues", "quorum"), ("streams", "stream")] {
        let body = json!({"pattern": ".*", "apply-to": word, "definition": {"max-length-bytes": 1}});
        let written = stage.put("policies", word, body);
        if since(3, 12) {
            written.created();
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
    stage.put("policies", "exchanges", body).created();
    assert_eq!(governor(&stage, "classic"), "classic_queues");
}

/// `rabbitmq::policy_keys`: one policy with one key at a time, and which queues it governs.
#[test]
fn which_types_take_a_key_depends_on_the_version() {
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
        // Only measured on 3.10.8 and 4.0.5; by source the change is in 3.11.
        ("max-in-memory-length", json!(5), if v3_11 { "quorum" } else { "classic quorum" }),
        ("queue-mode", json!("lazy"), "classic"),
        // Every type takes it, although it is about one.
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
        // A key of exchanges is no obstacle, but for quorum queues of 3.8, which take seven keys.
        ("alternate-exchange", json!("x"), early(all, "classic")),
    ];
    let mut wrong = Vec::new();
    for (key, value, expected) in cases {
        if stage.policy("p", 1.0, json!({*key: value})).status != 201 {
            // This version does not know the key: see `policies`.
            continue;
        }
        let governed: Vec<&str> = kinds().iter().copied().filter(|kind| governor(&stage, kind) == "p").collect();
        let expected: Vec<&str> = expected.split(' ').filter(|kind| kinds().contains(kind)).collect();
        if governed != expected {
            wrong.push(format!("{key}: {governed:?}, expected {expected:?}"));
        }
        stage.delete("policies", "p").taken();
    }
    assert_eq!(wrong, [""; 0]);
}

/// `rabbitmq::governing`: a queue is governed from the moment it is made.
#[test]
fn a_queue_is_born_governed() {
    let stage = Stage::new("born");
    stage.policy("p", 1.0, json!({"max-length": 1})).created();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).created();
        assert_eq!(governor(&stage, kind), "p");
    }
}
