//! Tests the effective values of queues with conflicting arguments and policies: one case per rule and queue type,
//! compared with topo's prediction.

use serde_json::{Value, json};
use topo::model::{ApplyTo, ArgumentValue, Arguments, Policy, PolicyName, Priority, Queue, QueueType};
use topo::rabbitmq::{BrokerProfile, EffectiveSettings, Governed, OverflowBehavior, Policies, Source};

use super::version;
use crate::support::{Node, Outcome, Vhost, until};

/// Declares queue `name` with these arguments and its own policy. Returns topo's effective value of `key` and its
/// origin.
pub(super) fn arrange(
    vhost: &Vhost<'_>,
    name: &str,
    kind: QueueType,
    arguments: Value,
    definition: Value,
    key: &str,
) -> (Value, bool) {
    let holds = arrange_all(vhost, name, kind, arguments, definition);
    let found = holds.get(key).unwrap_or_else(|| panic!("topo has no value for {key}"));
    (json_of(&found.value), matches!(found.source, Source::Policy(_)))
}

/// Declares a queue as [`arrange`], and returns all effective values.
pub(super) fn arrange_all(
    vhost: &Vhost<'_>,
    name: &str,
    kind: QueueType,
    arguments: Value,
    definition: Value,
) -> EffectiveSettings {
    let mut arguments: Arguments = serde_json::from_value(arguments).unwrap();
    arguments.insert("x-queue-type".to_owned(), kind.as_str().into());
    let policy = Policy {
        pattern: format!("^{name}$"),
        apply_to: ApplyTo::Queues,
        priority: Priority(1.0),
        definition: serde_json::from_value(definition).unwrap(),
    };
    let path = vhost.path("policies", &[name]);
    vhost.http().put(&path, &serde_json::to_value(&policy).unwrap()).expect_status(201);
    let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
    let body = json!({"durable": true, "auto_delete": false, "arguments": queue.arguments});
    vhost.http().put(&vhost.path("queues", &[name]), &body).expect_status(201);

    let version = version(vhost.node());
    let policy_name = PolicyName::new(name);
    let policies = Policies::new([(&policy_name, &policy)], version);
    let governing = policies.governing(name, Governed::from(&queue)).certain().unwrap();
    EffectiveSettings::of(&queue, governing, None, &BrokerProfile::of(version))
}

pub(super) fn json_of(value: &ArgumentValue) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn smaller_limit_is_effective() {
    let node = Node::shared();
    let vhost = node.vhost("limits");
    let amqp = vhost.amqp();
    for kind in [QueueType::Classic, QueueType::Quorum] {
        for (argument, policy) in [(5, 3), (3, 5)] {
            let name = format!("{kind}-{argument}-{policy}");
            let arguments = json!({"x-max-length": argument});
            let (holds, by_policy) =
                arrange(&vhost, &name, kind, arguments, json!({"max-length": policy}), "max-length");
            assert_eq!((holds, by_policy), (json!(3), policy == 3), "{name}");
            amqp.fill(&name, 8);
            until(&format!("3 messages in {name}"), || (amqp.ready(&name) == 3).then_some(()));
        }
    }
}

#[test]
fn smaller_ttl_is_effective_for_later_messages() {
    let node = Node::shared();
    let vhost = node.vhost("ttl");
    let amqp = vhost.amqp();
    let kinds = if node.at_least(3, 10) { &[QueueType::Classic, QueueType::Quorum][..] } else { &[QueueType::Classic] };
    for kind in kinds {
        for (argument, policy) in [(600_000, 1), (1, 600_000)] {
            let name = format!("{kind}-{argument}");
            let arguments = json!({"x-message-ttl": argument});
            let (holds, _) = arrange(&vhost, &name, *kind, arguments, json!({"message-ttl": policy}), "message-ttl");
            assert_eq!(holds, json!(1), "{name}");
            amqp.fill(&name, 1);
            until(&format!("nothing in {name}"), || (amqp.ready(&name) == 0).then_some(()));
        }
        // Messages keep the TTL at their arrival, as the hazard of the plan states.
        let (old, empty) = (format!("{kind}.old"), format!("{kind}.empty"));
        for name in [&old, &empty] {
            let arguments = json!({"x-queue-type": kind.as_str()});
            let body = json!({"durable": true, "auto_delete": false, "arguments": arguments});
            vhost.http().put(&vhost.path("queues", &[name]), &body).expect_status(201);
        }
        amqp.fill(&old, 2);
        let body = json!({"pattern": format!("^{kind}\\."), "apply-to": "queues", "definition": {"message-ttl": 1}});
        vhost.http().put(&vhost.path("policies", &[&format!("{kind}.ttl")]), &body).expect_status(201);
        until("a message that expires", || {
            amqp.fill(&empty, 1);
            (0..20).any(|_| amqp.ready(&empty) == 0).then_some(())
        });
        assert_eq!(amqp.ready(&old), 2, "{old}");
    }
}

#[test]
fn dead_letter_exchange_of_the_argument_takes_precedence() {
    let node = Node::shared();
    let vhost = node.vhost("dlx");
    let amqp = vhost.amqp();
    for target in ["by-argument", "by-policy"] {
        amqp.declare_exchange(target, "fanout", &[]).unwrap();
        amqp.declare_queue(target, &[]).unwrap();
        amqp.bind_queue(target, target, "", &[]);
    }
    for (number, kind) in [QueueType::Classic, QueueType::Quorum].into_iter().enumerate() {
        let arguments = json!({"x-dead-letter-exchange": "by-argument", "x-max-length": 1});
        let definition = json!({"dead-letter-exchange": "by-policy"});
        let key = "dead-letter-exchange";
        let (holds, by_policy) = arrange(&vhost, kind.as_str(), kind, arguments, definition, key);
        assert_eq!((holds, by_policy), (json!("by-argument"), false));
        amqp.fill(kind.as_str(), 2);
        let expected = u32::try_from(number).unwrap() + 1;
        until("a dead-lettered message", || (amqp.ready("by-argument") == expected).then_some(()));
        assert_eq!(amqp.ready("by-policy"), 0);
    }
}

/// For overflow, the argument takes precedence on classic queues, and the policy on quorum queues.
#[test]
fn effective_overflow_depends_on_the_type() {
    let node = Node::shared();
    let vhost = node.vhost("overflow");
    let amqp = vhost.amqp();
    let mut kinds = vec![(QueueType::Classic, false)];
    if node.at_least(3, 9) {
        kinds.push((QueueType::Quorum, true));
    }
    for (kind, policy_wins) in kinds {
        for (argument, policy) in [("reject-publish", "drop-head"), ("drop-head", "reject-publish")] {
            let name = format!("{kind}-{argument}");
            let arguments = json!({"x-overflow": argument, "x-max-length": 2});
            let (holds, by_policy) = arrange(&vhost, &name, kind, arguments, json!({"overflow": policy}), "overflow");
            assert_eq!(by_policy, policy_wins);
            if holds == "drop-head" {
                (0..5).for_each(|_| assert_eq!(amqp.publish("", &name, "x"), Outcome::Routed, "{name}"));
                until(&format!("2 messages in {name}"), || (amqp.ready(&name) == 2).then_some(()));
            } else {
                // A quorum queue rejects messages some time after it is full.
                until(&format!("a rejection by {name}"), || {
                    (amqp.publish("", &name, "x") == Outcome::Refused).then_some(())
                });
                assert!(amqp.ready(&name) >= 2);
            }
        }
    }
}

/// Sets each value of `overflow` on a full queue of each type, as an argument and as a policy. The broker behaves as
/// `overflow_behavior` predicts. For streams, the broker ignores a whole policy that contains `overflow`.
#[test]
fn full_queue_behaves_as_predicted() {
    let node = Node::shared();
    let vhost = node.vhost("when-full");
    let amqp = vhost.amqp();
    let mut compared = 0;
    for kind in [QueueType::Classic, QueueType::Quorum, QueueType::Stream] {
        for overflow in ["drop-head", "reject-publish", "reject-publish-dlx"] {
            for by_policy in [false, true] {
                // RabbitMQ 3.8 refuses `x-overflow` on a quorum queue, and `reject-publish-dlx` in a policy. Later
                // versions refuse `x-overflow` on a stream.
                let is_refused = match kind {
                    QueueType::Classic => !node.at_least(3, 9) && by_policy,
                    QueueType::Quorum => !node.at_least(3, 9),
                    QueueType::Stream => !node.at_least(3, 9) || !by_policy,
                };
                if is_refused {
                    continue;
                }
                let name = format!("{kind}-{overflow}-{by_policy}");
                let dead = format!("{name}.dead");
                amqp.declare_exchange(&dead, "fanout", &[]).unwrap();
                amqp.declare_queue(&dead, &[]).unwrap();
                amqp.bind_queue(&dead, &dead, "", &[]);
                let is_stream = kind == QueueType::Stream;
                let mut arguments = if is_stream { json!({}) } else { json!({"x-dead-letter-exchange": dead}) };
                let mut definition = if is_stream { json!({}) } else { json!({"max-length": 2}) };
                if by_policy {
                    definition["overflow"] = json!(overflow);
                } else {
                    arguments["x-overflow"] = json!(overflow);
                }
                let settings = arrange_all(&vhost, &name, kind, arguments, definition);
                // A quorum queue rejects messages some time after it is full.
                let outcomes: Vec<Outcome> = (0..50).map(|_| amqp.publish("", &name, "x")).collect();
                let is_refused = outcomes.contains(&Outcome::Refused);
                let predicted = settings.overflow_behavior();
                assert_eq!(predicted.rejects(), is_refused, "{name}: {outcomes:?}");
                assert_eq!(settings.has("overflow"), !is_stream, "{name}");
                if predicted == OverflowBehavior::Rejects || is_stream {
                    assert_eq!(amqp.ready(&dead), 0, "{name}");
                } else {
                    until(&format!("dead-lettered messages from {name}"), || (amqp.ready(&dead) > 0).then_some(()));
                }
                compared += 1;
            }
        }
    }
    assert_eq!(compared, if node.at_least(3, 9) { 15 } else { 3 });
}

/// The smaller value is effective; quorum queues before 4.0 use the policy.
#[test]
fn effective_expiry_depends_on_type_and_version() {
    let node = Node::shared();
    let vhost = node.vhost("expires");
    let mut kinds = vec![QueueType::Classic];
    if node.at_least(3, 9) {
        kinds.push(QueueType::Quorum);
    }
    for kind in kinds {
        let name = kind.as_str();
        let (short, long) = (1_500, 3_600_000);
        let arguments = json!({"x-expires": short});
        let (holds, by_policy) = arrange(&vhost, name, kind, arguments, json!({"expires": long}), "expires");
        assert_eq!(by_policy, kind == QueueType::Quorum && !node.at_least(4, 0));
        // A queue of the same age with the same argument but without a policy, for comparison.
        let comparison = format!("{name}.witness");
        let body = json!({"durable": true, "arguments": {"x-queue-type": name, "x-expires": short}});
        vhost.http().put(&vhost.path("queues", &[&comparison]), &body).expect_status(201);
        until("the end of the queue for comparison", || vhost.queue(&comparison).is_null().then_some(()));
        if holds == json!(short) {
            until("the end of the queue", || vhost.queue(name).is_null().then_some(()));
        } else {
            assert!(!vhost.queue(name).is_null(), "{name}");
        }
    }
}

/// The smaller value is effective. Since 4.0, a negative value means no limit, and the queue reports it.
#[test]
fn negative_delivery_limit_is_ignored() {
    let node = Node::shared();
    let vhost = node.vhost("delivery");
    if !node.at_least(4, 0) {
        // A policy cannot set the value, and the queue does not report it.
        let body = json!({"pattern": "", "definition": {"delivery-limit": -1}});
        vhost.http().put(&vhost.path("policies", &["p"]), &body).expect_status(400);
        return;
    }
    let cases = [(Some(5), Some(3), 3), (Some(3), Some(5), 3), (Some(-1), Some(3), 3), (Some(5), Some(-1), 5)];
    for (argument, policy, expected) in cases.into_iter().chain([(None, None, 20), (Some(-1), None, -1)]) {
        let name = format!("q{argument:?}{policy:?}").replace(['(', ')'], "");
        let arguments = argument.map_or(json!({}), |limit| json!({"x-delivery-limit": limit}));
        let definition = policy.map_or(json!({"max-length": 9}), |limit| json!({"delivery-limit": limit}));
        let (holds, _) = arrange(&vhost, &name, QueueType::Quorum, arguments, definition, "delivery-limit");
        assert_eq!(holds, json!(expected), "{name}");
        let shown = until(&format!("the limit of {name}"), || {
            let shown = vhost.queue(&name)["delivery_limit"].clone();
            (!shown.is_null()).then_some(shown)
        });
        // 4.0 reports `unlimited` for a negative value.
        let shown = if shown == "unlimited" { json!(-1) } else { shown };
        assert_eq!(shown, holds, "{name}");
    }
}
