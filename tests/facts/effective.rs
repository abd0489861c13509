//! What a policy does to a live queue, beside the queue's own arguments: `plan::effects`, `plan::advice`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Stage, since};
use crate::support::{Amqp, Outcome, until};

/// Publishes until the queue refuses; a quorum queue takes a few more than its limit.
fn refuses(amqp: &Amqp, queue: &str) -> bool {
    (0..20).any(|_| amqp.publish("", queue, "more") == Outcome::Refused)
}

fn until_ready(amqp: &Amqp, queue: &str, count: u32) {
    until(&format!("{count} messages in {queue}"), || (amqp.ready(queue) == count).then_some(()));
}

/// `plan::effects`: the hazard `message-drop`.
#[test]
fn a_lower_max_length_drops_messages_at_once() {
    let stage = Stage::new("dropped");
    let amqp = stage.amqp();
    for kind in ["classic", "quorum"] {
        stage.queue(kind, kind, json!({})).created();
        amqp.fill(kind, 4);
    }
    stage.policy("p", 1.0, json!({"max-length": 2})).created();
    for kind in ["classic", "quorum"] {
        until_ready(&amqp, kind, 2);
        assert_eq!(String::from_utf8_lossy(&amqp.get(kind).unwrap().body), "message 2", "the oldest go");
    }
}

/// `plan::effects::Limits`: number limits are the smaller of argument and policy.
#[test]
fn of_two_limits_the_smaller_one_holds() {
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

/// `plan::effects::Limits`: an operator's limit is one more of which the smallest holds.
#[test]
fn an_operator_policy_tightens_a_policy_and_never_loosens_it() {
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

/// `plan::effects::Limits`: the two types differ.
#[test]
fn overflow_by_argument_wins_on_a_classic_queue_and_by_policy_on_a_quorum_queue() {
    let stage = Stage::new("overflow");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({"x-overflow": "drop-head"})).created();
    stage.policy("p", 1.0, json!({"max-length": 1, "overflow": "reject-publish"})).created();
    assert!(!refuses(&amqp, "classic"));
    // Quorum queues of 3.8.9 take neither.
    if since(3, 9) {
        stage.queue("quorum", "quorum", json!({"x-overflow": "drop-head"})).created();
        assert!(refuses(&amqp, "quorum"));
    }
}

/// `plan::effects`: a classic queue takes in the limit before the overflow, and drops before it rejects.
#[test]
fn a_classic_queue_drops_first_when_limit_and_rejection_come_together() {
    let stage = Stage::new("order");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).created();
    stage.queue("quorum", "quorum", json!({})).created();
    amqp.fill("classic", 4);
    amqp.fill("quorum", 4);
    stage.policy("p", 1.0, json!({"max-length": 2, "overflow": "reject-publish"})).created();
    until("the policy to be in force", || (amqp.publish("", "classic", "more") == Outcome::Refused).then_some(()));
    assert_eq!(amqp.ready("classic"), 2);
    if since(3, 9) {
        assert!(refuses(&amqp, "quorum"));
        assert!(amqp.ready("quorum") >= 4, "nothing was dropped");
    }
}

/// `plan::advice::by_policy`: "the live argument wins".
#[test]
fn a_dead_letter_exchange_by_argument_wins_over_one_by_policy() {
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

/// `plan::effects`: the queue itself goes.
#[test]
fn a_short_expiry_by_policy_deletes_an_idle_queue_with_its_messages() {
    let stage = Stage::new("expires");
    let amqp = stage.amqp();
    stage.queue("classic", "classic", json!({})).created();
    amqp.fill("classic", 1);
    stage.policy("p", 1.0, json!({"expires": 100})).created();
    until("the queue to go", || stage.vhost.names("queues").is_empty().then_some(()));
}

/// `plan::effects::Limits`: the smaller one, but on a quorum queue of 3.x, where the policy's holds. Such a queue looks at
/// its expiry with every tick.
#[test]
fn of_two_expiries_the_smaller_one_holds_since_4_0() {
    let stage = Stage::new("expiries");
    let policy = json!({"pattern": "^governed", "apply-to": "queues", "definition": {"expires": 3_600_000}});
    stage.put("policies", "p", policy).created();
    // Quorum queues of 3.8.9 take no expiry.
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

/// `plan::effects`: a shorter time to live is for messages that come, on classic queues for those that are there, too.
#[test]
fn a_time_to_live_by_policy_lets_messages_expire() {
    let stage = Stage::new("ttl");
    let amqp = stage.amqp();
    stage.queue("q", "classic", json!({})).created();
    stage.policy("p", 1.0, json!({"message-ttl": 50})).created();
    until("a message that expires", || {
        amqp.publish("", "q", "short-lived");
        // It takes that long, however fast one asks.
        std::thread::sleep(Duration::from_millis(200));
        (amqp.ready("q") == 0).then_some(())
    });
    stage.delete("policies", "p").taken();
    until("a message that stays", || (amqp.publish("", "q", "long-lived") == Outcome::Routed).then_some(()));
}

/// `plan::governing`: what late 4.x shows without statistics, and other versions only with them.
#[test]
fn the_effective_definition_is_in_the_list_since_4_3() {
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
