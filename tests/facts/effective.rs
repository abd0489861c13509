//! Effects of a policy on a queue with arguments. `plan::effects` and resolutions rely on these facts.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Amqp, Outcome, until};

/// Publishes until the queue rejects. A quorum queue accepts a few messages above its limit.
fn refuses(amqp: &Amqp, queue: &str) -> bool {
    (0..20).any(|_| amqp.publish("", queue, "more") == Outcome::Refused)
}

fn until_ready(amqp: &Amqp, queue: &str, count: u32) {
    until(&format!("{count} messages in {queue}"), || (amqp.ready(queue) == count).then_some(()));
}

/// Used by `plan::effects` for the hazard `message-drop`.
#[test]
fn lower_max_length_drops_messages_immediately() {
    let stage = Stage::new("dropped");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).expect_created();
        amqp.fill(kind, 4);
    }
    stage.policy("p", 1.0, json!({"max-length": 2})).expect_created();
    for kind in ["classic", "quorum"] {
        until_ready(&amqp, kind, 2);
        assert_eq!(String::from_utf8_lossy(&amqp.get(kind).unwrap().body), "message 2", "the oldest are dropped");
    }
}

/// Used by `plan::effects`: the smaller limit of argument and policy is effective.
#[test]
fn smaller_limit_is_effective() {
    let stage = Stage::new("smaller");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({"x-max-length": 3})).expect_created();
        amqp.fill(kind, 5);
        until_ready(&amqp, kind, 3);
    }
    stage.policy("p", 1.0, json!({"max-length": 100})).expect_created();
    for kind in ["classic", "quorum"] {
        amqp.fill(kind, 2);
        until_ready(&amqp, kind, 3);
    }
    stage.policy("p", 1.0, json!({"max-length": 2})).expect_no_content();
    for kind in ["classic", "quorum"] {
        until_ready(&amqp, kind, 2);
    }
}

/// Used by `plan::effects`: the minimum includes the limit of the operator policy.
#[test]
fn operator_policy_only_tightens_a_policy() {
    let stage = Stage::new("operator");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    stage.policy("p", 1.0, json!({"max-length": 4})).expect_created();
    let operator = |limit: u64| json!({"pattern": ".*", "apply-to": "queues", "definition": {"max-length": limit}});
    stage.put("operator-policies", "o", operator(9)).expect_created();
    amqp.fill("q", 6);
    until_ready(&amqp, "q", 4);
    stage.put("operator-policies", "o", operator(2)).expect_no_content();
    until_ready(&amqp, "q", 2);
}

/// Used by `plan::effects`: the precedence depends on the queue type.
#[test]
fn overflow_uses_the_argument_on_classic_queues_and_the_policy_on_quorum_queues() {
    let stage = Stage::new("overflow");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({"x-overflow": "drop-head"})).expect_created();
    stage.policy("p", 1.0, json!({"max-length": 1, "overflow": "reject-publish"})).expect_created();
    assert!(!refuses(&amqp, "classic"));
    // Quorum queues of 3.8.9 support neither the argument nor the policy key.
    if since(3, 9) {
        stage.queue("quorum", "quorum", json!({"x-overflow": "drop-head"})).expect_created();
        assert!(refuses(&amqp, "quorum"));
    }
}

/// Used by `plan::effects`: a classic queue applies a new limit before a new overflow behavior, so it drops messages
/// before it rejects.
#[test]
fn classic_queue_drops_before_it_rejects() {
    let stage = Stage::new("order");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).expect_created();
    stage.queue("quorum", "quorum", json!({})).expect_created();
    amqp.fill("classic", 4);
    amqp.fill("quorum", 4);
    stage.policy("p", 1.0, json!({"max-length": 2, "overflow": "reject-publish"})).expect_created();
    until("the policy to be effective", || (amqp.publish("", "classic", "more") == Outcome::Refused).then_some(()));
    assert_eq!(amqp.ready("classic"), 2);
    if since(3, 9) {
        assert!(refuses(&amqp, "quorum"));
        assert!(amqp.ready("quorum") >= 4, "nothing was dropped");
    }
}

/// Used by resolutions: the current argument takes precedence.
#[test]
fn dead_letter_exchange_of_the_argument_takes_precedence() {
    let stage = Stage::new("dlx");
    let amqp = stage.amqp();
    for name in ["by.argument", "by.policy"] {
        stage.queue(name, "classic", json!({"x-max-length-bytes": 1_000_000})).expect_created();
        stage.put("exchanges", name, json!({"type": "fanout", "durable": true})).expect_created();
        stage.bind(name, name, json!({})).expect_created();
    }
    let policy = json!({"pattern": "^q", "apply-to": "queues", "definition": {"dead-letter-exchange": "by.policy"}});
    stage.put("policies", "p", policy).expect_created();
    for kind in ["classic", "quorum"] {
        for (arguments, winner) in
            [(json!({"x-dead-letter-exchange": "by.argument"}), "by.argument"), (json!({}), "by.policy")]
        {
            stage.queue("q", kind, arguments).expect_created();
            amqp.fill("q", 1);
            stage.reject("q");
            until_ready(&amqp, winner, 1);
            amqp.get(winner).unwrap();
            stage.delete("queues", "q").expect_no_content();
        }
    }
}

/// Used by `plan::effects`: the policy deletes the queue itself.
#[test]
fn expires_policy_deletes_an_idle_queue_with_its_messages() {
    let stage = Stage::new("expires");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).expect_created();
    amqp.fill("classic", 1);
    stage.policy("p", 1.0, json!({"expires": 100})).expect_created();
    until("the queue to go", || stage.vhost.names("queues").is_empty().then_some(()));
}

/// Used by `plan::effects`: the smaller value is effective, except for quorum queues of 3.x, which use the policy.
/// Quorum queues check their expiry on every tick.
#[test]
fn smaller_expiry_is_effective_since_4_0() {
    let stage = Stage::new("expiries");
    let policy = json!({"pattern": "^governed", "apply-to": "queues", "definition": {"expires": 3_600_000}});
    stage.put("policies", "p", policy).expect_created();
    // Quorum queues of 3.8.9 refuse an expiry.
    let kinds: &[&str] = if since(3, 9) { &["classic", "quorum"] } else { &["classic"] };
    for kind in kinds {
        for name in ["governed", "plain"] {
            stage.queue(&format!("{name}.{kind}"), kind, json!({"x-expires": 500})).expect_created();
        }
    }
    until("the queues that no policy governs to go", || {
        let names = stage.vhost.names("queues");
        (!names.iter().any(|name| name.starts_with("plain"))).then_some(())
    });
    if since(3, 9) && !since(4, 0) {
        assert_eq!(stage.vhost.names("queues"), ["governed.quorum"]);
    } else {
        until("the others to go, too", || stage.vhost.names("queues").is_empty().then_some(()));
    }
}

/// Used by `plan::effects`: a shorter TTL applies to new messages, and on classic queues also to existing messages.
#[test]
fn ttl_policy_expires_messages() {
    let stage = Stage::new("ttl");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).expect_created();
    stage.policy("p", 1.0, json!({"message-ttl": 50})).expect_created();
    until("a message that expires", || {
        amqp.publish("", "q", "short-lived");
        // This test measures the effect of waiting.
        std::thread::sleep(Duration::from_millis(200));
        (amqp.ready("q") == 0).then_some(())
    });
    stage.delete("policies", "p").expect_no_content();
    until("a message that stays", || (amqp.publish("", "q", "long-lived") == Outcome::Routed).then_some(()));
}

/// Used by `plan::governing`: late 4.x versions list the definition without statistics, other versions only with
/// statistics.
#[test]
fn effective_definition_is_listed_since_4_3() {
    let stage = Stage::new("effective");
    stage.queue("q", "classic", json!({})).expect_created();
    let fields = |queue: &serde_json::Map<String, Value>| {
        ["policy", "operator_policy", "effective_policy_definition"].map(|field| queue.get(field).cloned())
    };
    let none = fields(&stage.listed("q"));
    stage.policy("p", 1.0, json!({"max-length": 9, "max-length-bytes": 5_000})).expect_created();
    let operator = json!({"pattern": ".*", "apply-to": "queues", "definition": {"max-length": 2}});
    stage.put("operator-policies", "o", operator).expect_created();
    let both = fields(&stage.listed("q"));
    if since(4, 3) {
        assert_eq!(none, [json!(null), json!(null), json!({})].map(Some));
        assert_eq!(both, [json!("p"), json!("o"), json!({"max-length": 2, "max-length-bytes": 5_000})].map(Some));
    } else {
        assert_eq!(none, [None, None, None]);
        assert_eq!(both, [Some(json!("p")), None, None]);
    }
}
