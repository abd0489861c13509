//! Effects of a policy on a queue with arguments: `plan::effects` and resolutions.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Amqp, Outcome, until};

/// Publishes until the queue rejects; a quorum queue accepts a few messages above its limit.
fn refuses(amqp: &Amqp, queue: &str) -> bool {
    (0..20).any(|_| amqp.publish("", queue, "more") == Outcome::Refused)
}

fn until_ready(amqp: &Amqp, queue: &str, count: u32) {
    until(&format!("{count} messages in {queue}"), || (amqp.ready(queue) == count).then_some(()));
}

/// `plan::effects`: the hazard `message-drop`.
#[test]
fn lower_max_length_drops_messages_immediately() {
    let stage = Stage::new("dropped");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).created();
        amqp.fill(kind, 4);
    }
    stage.policy("p", 1.0, json!({"max-length": 2})).created();
    for kind in ["classic", "quorum"] {
        until_ready(&amqp, kind, 2);
        assert_eq!(String::from_utf8_lossy(&amqp.get(kind).unwrap().body), "message 2", "the oldest are dropped");
    }
}

/// `plan::effects::Limits`: the smaller of argument and policy is effective.
#[test]
fn smaller_limit_is_effective() {
    let stage = Stage::new("smaller");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({"x-max-length": 3})).created();
        amqp.fill(kind, 5);
        until_ready(&amqp, kind, 3);
    }
    stage.policy("p", 1.0, json!({"max-length": 100})).created();
    for kind in ["classic", "quorum"] {
        amqp.fill(kind, 2);
        until_ready(&amqp, kind, 3);
    }
    stage.policy("p", 1.0, json!({"max-length": 2})).taken();
    for kind in ["classic", "quorum"] {
        until_ready(&amqp, kind, 2);
    }
}

/// `plan::effects::Limits`: the operator policy's limit is included in the minimum.
#[test]
fn operator_policy_only_tightens_a_policy() {
    let stage = Stage::new("operator");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    stage.policy("p", 1.0, json!({"max-length": 4})).created();
    let operator = |limit: u64| json!({"pattern": ".*", "apply-to": "queues", "definition": {"max-length": limit}});
    stage.put("operator-policies", "o", operator(9)).created();
    amqp.fill("q", 6);
    until_ready(&amqp, "q", 4);
    stage.put("operator-policies", "o", operator(2)).taken();
    until_ready(&amqp, "q", 2);
}

/// `plan::effects::Limits`: the types differ.
#[test]
fn overflow_uses_the_argument_on_classic_queues_and_the_policy_on_quorum_queues() {
    let stage = Stage::new("overflow");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({"x-overflow": "drop-head"})).created();
    stage.policy("p", 1.0, json!({"max-length": 1, "overflow": "reject-publish"})).created();
    assert!(!refuses(&amqp, "classic"));
    // Quorum queues of 3.8.9 support neither.
    if since(3, 9) {
        stage.queue("quorum", "quorum", json!({"x-overflow": "drop-head"})).created();
        assert!(refuses(&amqp, "quorum"));
    }
}

/// `plan::effects`: a classic queue applies the limit before the overflow, so it drops before it rejects.
#[test]
fn classic_queue_drops_before_it_rejects() {
    let stage = Stage::new("order");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).created();
    stage.queue("quorum", "quorum", json!({})).created();
    amqp.fill("classic", 4);
    amqp.fill("quorum", 4);
    stage.policy("p", 1.0, json!({"max-length": 2, "overflow": "reject-publish"})).created();
    until("the policy to be effective", || (amqp.publish("", "classic", "more") == Outcome::Refused).then_some(()));
    assert_eq!(amqp.ready("classic"), 2);
    if since(3, 9) {
        assert!(refuses(&amqp, "quorum"));
        assert!(amqp.ready("quorum") >= 4, "nothing was dropped");
    }
}

/// Resolutions: the current argument takes precedence.
#[test]
fn dead_letter_exchange_of_the_argument_takes_precedence() {
    let stage = Stage::new("dlx");
    let amqp = stage.amqp();
    for name in ["by.argument", "by.policy"] {
        stage.queue(name, "classic", json!({"x-max-length-bytes": 1_000_000})).created();
        stage.put("exchanges", name, json!({"type": "fanout", "durable": true})).created();
        stage.bind(name, name, json!({})).created();
    }
    let policy = json!({"pattern": "^q", "apply-to": "queues", "definition": {"dead-letter-exchange": "by.policy"}});
    stage.put("policies", "p", policy).created();
    for kind in ["classic", "quorum"] {
        for (arguments, winner) in
            [(json!({"x-dead-letter-exchange": "by.argument"}), "by.argument"), (json!({}), "by.policy")]
        {
            stage.queue("q", kind, arguments).created();
            amqp.fill("q", 1);
            stage.reject("q");
            until_ready(&amqp, winner, 1);
            amqp.get(winner).unwrap();
            stage.delete("queues", "q").taken();
        }
    }
}

/// `plan::effects`: the queue itself is deleted.
#[test]
fn expires_policy_deletes_an_idle_queue_with_its_messages() {
    let stage = Stage::new("expires");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).created();
    amqp.fill("classic", 1);
    stage.policy("p", 1.0, json!({"expires": 100})).created();
    until("the queue to go", || stage.vhost.names("queues").is_empty().then_some(()));
}

/// `plan::effects::Limits`: the smaller value, except for quorum queues of 3.x, which use the policy. Quorum queues
/// check their expiry on every tick.
#[test]
fn smaller_expiry_is_effective_since_4_0() {
    let stage = Stage::new("expiries");
    let policy = json!({"pattern": "^governed", "apply-to": "queues", "definition": {"expires": 3_600_000}});
    stage.put("policies", "p", policy).created();
    // Quorum queues of 3.8.9 refuse an expiry.
    let kinds: &[&str] = if since(3, 9) { &["classic", "quorum"] } else { &["classic"] };
    for kind in kinds {
        for name in ["governed", "plain"] {
            stage.queue(&format!("{name}.{kind}"), kind, json!({"x-expires": 500})).created();
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

/// `plan::effects`: a shorter TTL applies to new messages, and on classic queues also to existing ones.
#[test]
fn ttl_policy_expires_messages() {
    let stage = Stage::new("ttl");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    stage.policy("p", 1.0, json!({"message-ttl": 50})).created();
    until("a message that expires", || {
        amqp.publish("", "q", "short-lived");
        // The wait is the subject of this test.
        std::thread::sleep(Duration::from_millis(200));
        (amqp.ready("q") == 0).then_some(())
    });
    stage.delete("policies", "p").taken();
    until("a message that stays", || (amqp.publish("", "q", "long-lived") == Outcome::Routed).then_some(()));
}

/// `plan::governing`: late 4.x lists it without statistics, other versions only with statistics.
#[test]
fn effective_definition_is_listed_since_4_3() {
    let stage = Stage::new("effective");
    stage.queue("q", "classic", json!({})).created();
    let fields = |queue: &serde_json::Map<String, Value>| {
        ["policy", "operator_policy", "effective_policy_definition"].map(|field| queue.get(field).cloned())
    };
    let none = fields(&stage.listed("q"));
    stage.policy("p", 1.0, json!({"max-length": 9, "max-length-bytes": 5_000})).created();
    let operator = json!({"pattern": ".*", "apply-to": "queues", "definition": {"max-length": 2}});
    stage.put("operator-policies", "o", operator).created();
    let both = fields(&stage.listed("q"));
    if since(4, 3) {
        assert_eq!(none, [json!(null), json!(null), json!({})].map(Some));
        assert_eq!(both, [json!("p"), json!("o"), json!({"max-length": 2, "max-length-bytes": 5_000})].map(Some));
    } else {
        assert_eq!(none, [None, None, None]);
        assert_eq!(both, [Some(json!("p")), None, None]);
    }
}
