//! Tests additional settings that arguments and policies share, by the behavior of the queue or the state that it
//! reports.
//!
//! Not tested: `stream-filter-size-bytes`, `target-group-size` and `consumer-disconnected-timeout`, because they
//! require filtering consumers or a cluster. [`topo::rabbitmq::precedence`] lists the sources.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use topo::model::QueueType;
use topo::rabbitmq::{BrokerProfile, precedence};

use super::precedence::{arrange, arrange_all, json_of};
use super::version;
use crate::support::amqp::Held;
use crate::support::{Amqp, Node, until};

/// The argument determines whether dead-lettering is at least once.
#[test]
fn dead_letter_strategy_of_the_argument_takes_precedence() {
    let node = Node::shared();
    let key = "dead-letter-strategy";
    if !node.at_least(3, 10) {
        assert_eq!(precedence(key, QueueType::Quorum, &BrokerProfile::of(version(node))), None);
        return;
    }
    let vhost = node.vhost("strategy");
    let amqp = vhost.amqp();
    amqp.declare_exchange("nowhere", "fanout", &[]).unwrap();
    for (argument, policy) in [("at-least-once", "at-most-once"), ("at-most-once", "at-least-once")] {
        let arguments = json!({"x-dead-letter-exchange": "nowhere", "x-overflow": "reject-publish",
            "x-dead-letter-strategy": argument});
        let (holds, by_policy) = arrange(&vhost, argument, QueueType::Quorum, arguments, json!({key: policy}), key);
        assert_eq!((holds, by_policy), (json!(argument), false));
        amqp.fill(argument, 1);
        until("the message to be counted", || (vhost.queue(argument)["messages"] == 1).then_some(()));
        assert_eq!(amqp.reject(argument, 1), 1);
        until(argument, || {
            let queue = vhost.queue(argument);
            let waits = queue["messages_dlx"] == 1 && queue["messages"] == 1;
            let is_gone = queue["messages"] == 0;
            (if argument == "at-least-once" { waits } else { is_gone }).then_some(())
        });
    }
}

/// Returns true if an unacknowledged message was requeued or its consumer was canceled.
fn is_timed_out(amqp: &Amqp, queue: &str, held: &mut Held) -> bool {
    !held.is_subscribed() || held.bodies.len() > 1 || amqp.ready(queue) == 1
}

/// The smaller timeout is effective. Since 4.3, only quorum queues have a timeout. Earlier versions check it only once
/// a minute, which is too slow for a short run.
#[test]
fn smaller_consumer_timeout_is_effective() {
    let node = Node::shared();
    let (key, profile) = ("consumer-timeout", BrokerProfile::of(version(node)));
    let of = |kind: QueueType| precedence(key, kind, &profile);
    let is_by_queue = node.at_least(4, 3);
    assert_eq!(of(QueueType::Quorum).is_some(), node.at_least(3, 12));
    assert_eq!(of(QueueType::Classic).is_some(), node.at_least(3, 12) && !is_by_queue);
    if !node.at_least(3, 12) || !is_by_queue && std::env::var_os("TOPO_LONG").is_none() {
        return;
    }
    let vhost = node.vhost("timeout");
    let amqp = vhost.amqp();
    let mut kinds = vec![QueueType::Quorum];
    if !is_by_queue {
        kinds.push(QueueType::Classic);
    }
    let mut all = Vec::new();
    for kind in kinds {
        for (argument, policy) in [(1_000, 3_600_000), (3_600_000, 1_000)] {
            let name = format!("{kind}-{argument}");
            let arguments = json!({"x-consumer-timeout": argument});
            let (holds, _) = arrange(&vhost, &name, kind, arguments, json!({key: policy}), key);
            assert_eq!(holds, json!(1_000), "{name}");
            amqp.fill(&name, 1);
            let held = amqp.hold(&name, 1);
            all.push((name, held));
        }
    }
    if is_by_queue {
        // From this version on, a policy has no effect on a classic queue.
        let definition = json!({"pattern": "^classic$", "apply-to": "queues", "definition": {key: 1_000}});
        vhost.http().put(&vhost.path("policies", &["classic"]), &definition).expect_status(201);
        amqp.declare_queue("classic", &[]).unwrap();
        amqp.fill("classic", 1);
    }
    let mut classic = is_by_queue.then(|| amqp.hold("classic", 1));
    let since = Instant::now();
    for (name, held) in &mut all {
        until(&format!("the timeout of {name}"), || is_timed_out(&amqp, name, held).then_some(()));
    }
    if let Some(held) = &mut classic {
        // Waits much longer than the timeout, because this test checks that nothing happens.
        std::thread::sleep(Duration::from_secs(5).saturating_sub(since.elapsed()));
        assert!(!is_timed_out(&amqp, "classic", held));
    }
}

/// From 4.3 on, a quorum queue reports its delayed retries: the type of the policy and the smaller times.
#[test]
fn delayed_retries_use_the_policy_type_and_the_smaller_times() {
    let node = Node::shared();
    if !node.at_least(4, 3) {
        let profile = BrokerProfile::of(version(node));
        assert_eq!(precedence("delayed-retry-type", QueueType::Quorum, &profile), None);
        return;
    }
    let vhost = node.vhost("delayed");
    let configured = |kind: &str, min: u32, max: u32| json!({"delayed-retry-type": kind, "delayed-retry-min": min, "delayed-retry-max": max});
    let cases = [
        ("type", configured("failed", 2_000, 9_000), configured("all", 2_000, 9_000), "all (min: 2000ms, max: 9000ms)"),
        ("off", configured("all", 2_000, 9_000), configured("disabled", 2_000, 9_000), "disabled"),
        (
            "on",
            configured("disabled", 2_000, 9_000),
            configured("returned", 2_000, 9_000),
            "returned (min: 2000ms, max: 9000ms)",
        ),
        ("less", configured("all", 2_000, 9_000), configured("all", 1_000, 8_000), "all (min: 1000ms, max: 8000ms)"),
        ("more", configured("all", 1_000, 8_000), configured("all", 2_000, 9_000), "all (min: 1000ms, max: 8000ms)"),
    ];
    for (name, argument, policy, shown) in cases {
        let table = argument.as_object().unwrap().iter();
        let arguments: serde_json::Map<String, Value> =
            table.map(|(key, value)| (format!("x-{key}"), value.clone())).collect();
        let holds = arrange_all(&vhost, name, QueueType::Quorum, Value::Object(arguments), policy);
        let [kind, min, max] = ["delayed-retry-type", "delayed-retry-min", "delayed-retry-max"]
            .map(|key| json_of(&holds.get(key).unwrap().value));
        let predicted = match kind.as_str().unwrap() {
            "disabled" => "disabled".to_owned(),
            kind => format!("{kind} (min: {min}ms, max: {max}ms)"),
        };
        assert_eq!(predicted, shown, "{name}");
        until(&format!("{name}: {shown}"), || (vhost.queue(name)["delayed_retry"] == shown).then_some(()));
    }
}

/// A classic queue reports the mode of the argument, if its version has modes, and the version of the argument.
#[test]
fn mode_and_version_of_the_arguments_take_precedence() {
    let node = Node::shared();
    let vhost = node.vhost("classic");
    let shown = |name: &str, place: &str, expected: &Value| {
        until(&format!("{place} of {name} to be {expected}"), || {
            (vhost.queue(name).pointer(place) == Some(expected)).then_some(())
        });
    };
    let profile = BrokerProfile::of(version(node));
    if precedence("queue-mode", QueueType::Classic, &profile).is_some() {
        for (argument, policy) in [("lazy", "default"), ("default", "lazy")] {
            let (arguments, definition) = (json!({"x-queue-mode": argument}), json!({"queue-mode": policy}));
            let held = arrange(&vhost, argument, QueueType::Classic, arguments, definition, "queue-mode");
            assert_eq!(held, (json!(argument), false));
            // Since 3.12, a queue accepts the mode without an effect.
            if !node.at_least(3, 12) {
                shown(argument, "/backing_queue_status/mode", &json!(argument));
            }
        }
    }
    if precedence("queue-version", QueueType::Classic, &profile).is_some() {
        for (argument, policy) in [(1, 2), (2, 1)] {
            let name = format!("version-{argument}");
            let (arguments, definition) = (json!({"x-queue-version": argument}), json!({"queue-version": policy}));
            let held = arrange(&vhost, &name, QueueType::Classic, arguments, definition, "queue-version");
            assert_eq!(held, (json!(argument), false));
            // 4.0 supports only version 2, regardless of the setting.
            if node.at_least(4, 0) {
                shown(&name, "/storage_version", &json!(2));
            } else {
                shown(&name, "/backing_queue_status/version", &json!(argument));
            }
        }
    }
}

/// Up to 3.9, the smaller limit of messages in memory is effective. From 3.10 on, neither limit has an effect.
#[test]
fn smaller_in_memory_limit_is_effective() {
    let node = Node::shared();
    let vhost = node.vhost("memory");
    let amqp = vhost.amqp();
    let profile = BrokerProfile::of(version(node));
    let is_looked_at = precedence("max-in-memory-length", QueueType::Quorum, &profile).is_some();
    assert_eq!(is_looked_at, !node.at_least(4, 0));
    if !is_looked_at {
        return;
    }
    for (argument, policy) in [(5, 3), (3, 5)] {
        for (key, unit) in [("max-in-memory-length", 1), ("max-in-memory-bytes", 9)] {
            let name = format!("{key}-{argument}");
            let arguments = json!({format!("x-{key}"): argument * unit});
            let (holds, _) = arrange(&vhost, &name, QueueType::Quorum, arguments, json!({key: policy * unit}), key);
            assert_eq!(holds, json!(3 * unit), "{name}");
            // "message 0" has nine bytes.
            amqp.fill(&name, 8);
            let kept = if node.at_least(3, 10) { 0 } else { 3 };
            until(&format!("{kept} messages of {name} in memory"), || {
                let queue = vhost.queue(&name);
                (queue["messages"] == 8 && queue["messages_ram"] == kept).then_some(())
            });
        }
    }
}
