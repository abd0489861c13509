//! Publishes to random queues with conflicting arguments, policies and operator policies. No broker reports the merge,
//! so the test observes the effective values and compares them with topo's prediction.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use topo::model::{ApplyTo, ArgumentValue, Arguments, Policy, PolicyName, Priority, Queue};
use topo::rabbitmq::{BrokerProfile, EffectiveSettings, Governed, Policies};

use super::{Counts, version};
use crate::support::{Amqp, NONE, Node, Outcome, Random, Vhost, draws_on, seed};

/// The number of queues, and the number of messages for each queue, which exceeds every limit.
const QUEUES: usize = 90;
const MESSAGES: usize = 12;
/// The minimum number of occurrences of each event in a meaningful run.
const ENOUGH: usize = 2;
/// The time limit for delayed effects: a quorum queue rejects some time after it is full, and a dead-lettered message
/// arrives later.
const SETTLING: Duration = Duration::from_secs(20);
const TARGETS: [&str; 2] = ["by-argument", "by-policy"];

/// A queue and its governing policies.
struct Case {
    queue: Queue,
    policy: Arguments,
    operator: Arguments,
}

fn settings(random: &mut Random, lengths: [i64; 2], target: Option<&str>, overflow: bool) -> Arguments {
    // Operator policies support fewer keys.
    let often = if target.is_some() { 75 } else { 35 };
    let mut settings = Arguments::new();
    if random.chance(often) {
        settings.insert("max-length".to_owned(), (*random.pick(&lengths)).into());
    }
    if overflow && random.chance(often) {
        settings.insert("overflow".to_owned(), (*random.pick(&["drop-head", "reject-publish"])).into());
    }
    if let Some(target) = target.filter(|_| random.chance(50)) {
        settings.insert("dead-letter-exchange".to_owned(), target.into());
    }
    settings
}

fn draw(random: &mut Random, node: &Node) -> Case {
    let kind = *random.pick(&["classic", "quorum"]);
    // A quorum queue of 3.8.9 refuses the argument for overflow.
    let arguments = settings(random, [2, 6], Some(TARGETS[0]), kind == "classic" || node.at_least(3, 9));
    let mut arguments: Arguments = arguments.into_iter().map(|(key, value)| (format!("x-{key}"), value)).collect();
    arguments.insert("x-queue-type".to_owned(), kind.into());
    Case {
        queue: Queue { durable: true, auto_delete: false, exclusive: false, arguments },
        policy: settings(random, [3, 5], Some(TARGETS[1]), true),
        operator: settings(random, [1, 7], None, node.at_least(3, 12)),
    }
}

fn policy(name: &str, definition: &Arguments) -> Policy {
    Policy {
        pattern: format!("^{name}$"),
        apply_to: ApplyTo::Queues,
        priority: Priority(1.0),
        definition: definition.clone(),
    }
}

/// Returns topo's prediction of the effective values.
fn predicted(name: &str, case: &Case, profile: &BrokerProfile) -> EffectiveSettings {
    let id = PolicyName::new(name);
    let [user, operator] = [&case.policy, &case.operator].map(|definition| policy(name, definition));
    let read = |definition: &Arguments, policy| {
        let configured: Vec<(&PolicyName, &Policy)> = if definition.is_empty() { vec![] } else { vec![(&id, policy)] };
        Policies::new(configured, profile.version)
    };
    let (users, operators) = (read(&case.policy, &user), read(&case.operator, &operator));
    let governed = Governed::from(&case.queue);
    let certain = |policies: &Policies<'_>| policies.governing(name, governed).certain().is_some();
    assert!(certain(&users) && certain(&operators));
    let (user, operator) = (users.governing(name, governed).likely(), operators.governing(name, governed).likely());
    EffectiveSettings::of(&case.queue, user, operator, profile)
}

fn make(vhost: &Vhost<'_>, amqp: &Amqp, name: &str, case: &Case) {
    let http = vhost.http();
    for (kind, definition) in [("policies", &case.policy), ("operator-policies", &case.operator)] {
        if !definition.is_empty() {
            let body = serde_json::to_value(policy(name, definition)).unwrap();
            http.put(&vhost.path(kind, &[name]), &body).expect_status(201);
        }
    }
    let body = json!({"durable": true, "auto_delete": false, "arguments": case.queue.arguments});
    http.put(&vhost.path("queues", &[name]), &body).expect_status(201);
    for target in TARGETS {
        let dead_messages = format!("{name}.{target}");
        amqp.declare_queue(&dead_messages, NONE).unwrap();
        // A dead-lettered message keeps its routing key, which is the name of its original queue.
        amqp.bind_queue(target, &dead_messages, name, NONE);
    }
}

/// The observation: the oldest message, the message count, whether the queue rejected messages, and the numbers of
/// dead-lettered messages.
type Seen = (Option<String>, u32, bool, [u32; 2]);

/// Returns the effective capacity, and true if the full queue rejects messages.
fn room(holds: &EffectiveSettings) -> (usize, bool) {
    let limit = holds.get("max-length").and_then(|it| it.value.as_integer());
    let limit = limit.map_or(MESSAGES, |limit| usize::try_from(limit).unwrap());
    let overflow = holds.get("overflow").and_then(|it| it.value.as_text());
    (limit, overflow == Some("reject-publish") && limit < MESSAGES)
}

/// Returns true if the counts match. Does not compare the oldest message.
fn counts_fit(holds: &EffectiveSettings, kind: &str, (_, ready, refused, dead_messages): &Seen) -> bool {
    let (limit, rejects) = room(holds);
    let ready = usize::try_from(*ready).unwrap();
    let length = match (rejects, kind) {
        // The queue accepts a few more messages until the publisher's channel is notified (`rabbit_fifo_client`).
        (true, "quorum") => (limit..MESSAGES).contains(&ready),
        (_, _) => ready == limit,
    };
    let dropped = u32::try_from(if rejects { 0 } else { MESSAGES - limit }).unwrap();
    let target = holds.get("dead-letter-exchange").and_then(|it| it.value.as_text());
    length && *refused == rejects && *dead_messages == TARGETS.map(|it| if target == Some(it) { dropped } else { 0 })
}

fn fits(holds: &EffectiveSettings, kind: &str, seen: &Seen) -> bool {
    let (limit, rejects) = room(holds);
    let first = format!("message {}", if rejects { 0 } else { MESSAGES - limit });
    counts_fit(holds, kind, seen) && seen.0 == Some(first)
}

/// Runs a vhost of queues and returns the differences from topo's prediction.
fn play(node: &Node, random: &mut Random, counts: &mut Counts) -> Vec<String> {
    let vhost = node.vhost("arguments");
    let amqp = vhost.amqp();
    TARGETS.iter().for_each(|target| amqp.declare_exchange(target, "direct", NONE).unwrap());
    let cases: BTreeMap<String, Case> = (0..QUEUES).map(|number| (format!("q{number}"), draw(random, node))).collect();
    cases.iter().for_each(|(name, case)| make(&vhost, &amqp, name, case));
    // Up to 3.8, a queue keeps its initial policy until a policy of the vhost changes; see `rabbitmq::governing`.
    let never = json!({"pattern": "^$", "apply-to": "queues", "priority": -1000, "definition": {"max-length": 1}});
    vhost.http().put(&vhost.path("policies", &["never"]), &never).expect_status(201);
    let profile = BrokerProfile::of(version(node));
    let mut wrong = Vec::new();
    for (name, case) in &cases {
        let holds = predicted(name, case, &profile);
        let kind = case.queue.type_name();
        let publish = |number| amqp.publish("", name, &format!("message {number}"));
        let refused = (0..MESSAGES).map(publish).filter(|outcome| *outcome != Outcome::Routed).count() > 0;
        let deadline = Instant::now() + SETTLING;
        let seen = loop {
            let dead_messages = TARGETS.map(|target| amqp.ready(&format!("{name}.{target}")));
            let mut seen = (None, amqp.ready(name), refused, dead_messages);
            if counts_fit(&holds, kind, &seen) || Instant::now() > deadline {
                // Inspected only once, because a quorum queue counts every inspection as a delivery.
                seen.0 = amqp.get(name).map(|message| String::from_utf8(message.body).unwrap());
                break seen;
            }
        };
        if !fits(&holds, kind, &seen) {
            let Case { queue, policy, operator } = case;
            wrong.push(format!("{:?}, {policy:?}, {operator:?}: topo {holds:?}, seen {seen:?}", queue.arguments));
        }
        for (key, value) in holds.iter() {
            let configured =
                [case.queue.arguments.get(&format!("x-{key}")), case.policy.get(key), case.operator.get(key)];
            let values: Vec<&ArgumentValue> = configured.into_iter().flatten().collect();
            if values.windows(2).any(|pair| pair[0] != pair[1]) {
                let source = value.source.to_string();
                let who = source.trim_end_matches(&format!(" {name}"));
                *counts.entry(format!("{kind} {key}: {who} wins")).or_default() += 1;
            }
        }
    }
    wrong
}

/// Returns the events that occurred too rarely.
fn rare(counts: &Counts, node: &Node) -> Vec<String> {
    let rules = ["argument wins", "policy wins", "operator policy wins"].map(|who| format!("max-length: {who}"));
    let mut expected: Vec<String> = rules.iter().map(|rule| format!("classic {rule}")).collect();
    expected
        .extend(["classic overflow: argument wins", "classic dead-letter-exchange: argument wins"].map(str::to_owned));
    expected.push("quorum dead-letter-exchange: argument wins".to_owned());
    if node.at_least(3, 9) {
        expected.push("quorum overflow: policy wins".to_owned());
    }
    expected.retain(|what| counts.get(what).copied().unwrap_or_default() < ENOUGH);
    expected
}

#[test]
fn effective_values_match_the_behavior_of_the_queue() {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let (mut random, mut counts, mut wrong, mut vhosts) = (Random::new(seed), Counts::new(), Vec::new(), 0);
    while draws_on(vhosts, 1, || rare(&counts, node).is_empty()) {
        wrong.extend(play(node, &mut random, &mut counts));
        vhosts += 1;
    }
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    assert!(wrong.is_empty(), "TOPO_SEED={seed}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    let rare = rare(&counts, node);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: less than {ENOUGH} times: {rare:?}");
}

#[test]
fn different_observation_is_a_disagreement() {
    let case = Case {
        queue: Queue {
            durable: true,
            auto_delete: false,
            exclusive: false,
            arguments: [("x-queue-type".to_owned(), "classic".into()), ("x-max-length".to_owned(), 4.into())].into(),
        },
        policy: [("max-length".to_owned(), 3.into())].into(),
        operator: Arguments::new(),
    };
    let holds = predicted("q", &case, &BrokerProfile::of("4.0.5".parse().unwrap()));
    assert_eq!(serde_json::to_value(&holds.get("max-length").unwrap().value).unwrap(), Value::from(3));
    let oldest = |number: usize| Some(format!("message {number}"));
    assert!(fits(&holds, "classic", &(oldest(9), 3, false, [0, 0])));
    assert!(!fits(&holds, "classic", &(oldest(8), 4, false, [0, 0])));
    assert!(!fits(&holds, "classic", &(oldest(0), 3, true, [0, 0])));
    assert!(!fits(&holds, "classic", &(oldest(9), 3, false, [9, 0])));
}
