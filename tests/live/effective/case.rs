//! Generates policies, operator policies, queues and exchanges.

use std::collections::{BTreeMap, BTreeSet};

use topo::model::{ApplyTo, ArgumentValue, Arguments, BrokerVersion, Policy, PolicyName, Priority, QueueType};
use topo::rabbitmq::policy_keys::is_accepted;

use super::patterns::PATTERNS;
use crate::support::Random;

const POLICIES: usize = 10;
const OPERATOR_POLICIES: usize = 5;
/// A priority above all others.
const OWN: f64 = 100.5;
/// The number of keys in the own policy of a queue.
const KEYS_OF_OWN: usize = 7;
/// The number of policies of a queue with an unsupported key.
const SKIPPED: usize = 7;
const CLASSIC: usize = 16;
const QUORUM: usize = 14;
const STREAMS: usize = 10;
const EXCHANGES: usize = 12;

/// The contents of a vhost.
pub(super) struct Case {
    pub(super) policies: BTreeMap<PolicyName, Policy>,
    pub(super) operator_policies: BTreeMap<PolicyName, Policy>,
    pub(super) queues: BTreeMap<String, QueueType>,
    pub(super) exchanges: BTreeSet<String>,
}

/// Parts of names; most of [`PATTERNS`] match them.
const PIECES: [&str; 22] = [
    "orders", "Orders", "ORDERS", "work", ".", "_", "-", " ", "é", "É", "日本", "(", ")", "[", "a.b", "aab", "$", "^",
    "1", "42", "\\", "/%2F",
];

/// Returns a name made of parts, which common patterns often match.
pub(super) fn draw_name(random: &mut Random) -> String {
    let mut name = if random.chance(40) { "orders.".to_owned() } else { String::new() };
    for _ in 0..=random.below(4) {
        name.push_str(random.pick::<&str>(&PIECES));
    }
    // Names that cannot be a segment of a path.
    if name == "." || name == ".." { "orders".to_owned() } else { name }
}

/// Returns the keys of policies.
pub(super) fn keys(version: BrokerVersion) -> Vec<&'static str> {
    let mut keys = vec![
        "message-ttl",
        "expires",
        "max-length",
        "max-length-bytes",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "overflow",
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "delivery-limit",
        "queue-mode",
        "alternate-exchange",
    ];
    if version.is_at_least(3, 9) {
        keys.extend(["max-age", "stream-max-segment-size-bytes", "queue-leader-locator", "initial-cluster-size"]);
    }
    if version.is_at_least(3, 10) {
        keys.extend(["dead-letter-strategy", "queue-version"]);
    }
    if version.is_at_least(3, 12) {
        keys.push("consumer-timeout");
    }
    if version.is_at_least(3, 13) {
        keys.extend(["stream-filter-size-bytes", "target-group-size"]);
    }
    if version.is_at_least(4, 3) {
        keys.extend(["consumer-disconnected-timeout", "delayed-retry-type", "delayed-retry-min", "delayed-retry-max"]);
    }
    if !version.is_at_least(4, 0) {
        keys.extend(["ha-sync-mode", "queue-master-locator"]);
    }
    keys
}

/// Returns the keys of operator policies.
pub(super) fn operator_keys(version: BrokerVersion) -> Vec<&'static str> {
    let mut keys = vec![
        "message-ttl",
        "expires",
        "max-length",
        "max-length-bytes",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "delivery-limit",
    ];
    if version.is_at_least(3, 11) {
        keys.push("queue-version");
    }
    if version.is_at_least(3, 12) {
        keys.push("overflow");
    }
    if version.is_at_least(3, 13) {
        keys.push("target-group-size");
    }
    if version.is_at_least(4, 3) {
        keys.extend(["delayed-retry-type", "delayed-retry-min", "delayed-retry-max"]);
    }
    keys
}

fn value(random: &mut Random, key: &str, version: BrokerVersion) -> ArgumentValue {
    // The value below is valid, too.
    let number = 1 + i64::try_from(random.below(5)).unwrap();
    let words: &[&str] = match key {
        "overflow" if version.is_at_least(3, 10) => &["drop-head", "reject-publish", "reject-publish-dlx"],
        "overflow" => &["drop-head", "reject-publish"],
        "dead-letter-exchange" | "alternate-exchange" => &["amq.fanout", "none"],
        "dead-letter-routing-key" => &["key", "é"],
        "dead-letter-strategy" => &["at-most-once", "at-least-once"],
        "queue-mode" => &["lazy", "default"],
        "max-age" => &["7D", "1Y", "90m"],
        "queue-leader-locator" => &["client-local"],
        "queue-master-locator" => &["client-local", "min-masters"],
        "ha-sync-mode" => &["manual", "automatic"],
        "delayed-retry-type" => &["all", "failed", "disabled"],
        _ => &[],
    };
    if !words.is_empty() {
        return (*random.pick(words)).into();
    }
    match key {
        // No object expires during the test.
        "expires" => 3_600_000 + number,
        "delivery-limit" if version.is_at_least(4, 0) => number - 3,
        "queue-version" if version.is_at_least(4, 3) => 1 + number % 2,
        "queue-version" => 1 + number % 2,
        "stream-max-segment-size-bytes" => 1_000_000 + number,
        "stream-filter-size-bytes" => 16 + number,
        "initial-cluster-size" | "target-group-size" => 1 + number,
        "delayed-retry-min" | "delayed-retry-max" => 1000 + number,
        _ => number,
    }
    .into()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn pattern(random: &mut Random, names: &[String]) -> String {
    let name = random.pick(names);
    match random.below(10) {
        0 => format!("^{}$", escaped(name)),
        1 => format!("^{}", escaped(&name.chars().take(2).collect::<String>())),
        2..=4 => (*random.pick(&["", ".*", "^orders", "^(?!amq\\.)", "r", "^.{2,}$", "\\w", "^\\w"])).to_owned(),
        _ => (*random.pick(PATTERNS)).to_owned(),
    }
}

/// Adds a policy and an operator policy for each queue, which together use all supported keys in turn. Shared keys
/// occur twice as often. No key depends on chance.
fn own(random: &mut Random, index: usize, case: &mut Case, version: BrokerVersion) {
    let bounded = operator_keys(version);
    // The value of the operator policy is alternately higher and lower than the value of the policy.
    let mut turns: BTreeMap<String, usize> = BTreeMap::new();
    for kind in QueueType::ALL {
        let taken = |key: &&str| is_accepted(key, kind, version);
        let deck: Vec<&str> = keys(version).into_iter().chain(bounded.iter().copied()).filter(taken).collect();
        let queues: Vec<&String> = case.queues.iter().filter(|(_, it)| **it == kind).map(|(name, _)| name).collect();
        let refused: Vec<&str> = keys(version).into_iter().filter(|key| !taken(key)).collect();
        for (number, name) in queues.iter().enumerate() {
            let mut draw = |keys: &[&str]| {
                let pattern = format!("^{}$", escaped(name));
                let mut definition: Arguments =
                    keys.iter().map(|key| ((*key).to_owned(), value(random, key, version))).collect();
                make_valid(&mut definition);
                Policy { pattern, apply_to: ApplyTo::Queues, priority: Priority(OWN), definition }
            };
            // Every fourth queue has policies that the broker skips, one for each unsupported key.
            if number % 4 == 0 && !refused.is_empty() {
                let first = (index * queues.len() + number) / 4 * SKIPPED;
                for card in first..first + SKIPPED {
                    let policy = draw(&[refused[card % refused.len()], "max-length-bytes"]);
                    case.policies.insert(PolicyName::new(format!("skipped {kind} {number} {card}")), policy);
                }
                continue;
            }
            let first = (index * queues.len() + number) * KEYS_OF_OWN;
            let keys: Vec<&str> = (first..first + KEYS_OF_OWN).map(|card| deck[card % deck.len()]).collect();
            let policy = draw(&keys);
            let mut bounds = policy.clone();
            bounds.definition.retain(|key, _| bounded.contains(&key.as_str()));
            for (key, value) in &mut bounds.definition {
                let turn = turns.entry(key.clone()).or_insert(index);
                *turn += 1;
                let higher = turn.is_multiple_of(2);
                *value = match (value.as_integer(), key.as_str()) {
                    (Some(user_value), "queue-version") => (3 - user_value).into(),
                    (Some(user_value), _) => (user_value + if higher { 1 } else { -1 }).into(),
                    (None, "overflow") if value.as_text() == Some("drop-head") => "reject-publish".into(),
                    (None, "overflow") => "drop-head".into(),
                    (None, _) if value.as_text() == Some("all") => "failed".into(),
                    (None, _) => "all".into(),
                };
            }
            make_valid(&mut bounds.definition);
            if !bounds.definition.is_empty() {
                case.operator_policies.insert(PolicyName::new(format!("own {kind} {number}")), bounds);
            }
            case.policies.insert(PolicyName::new(format!("own {kind} {number}")), policy);
        }
    }
}

/// Adds the keys that other keys require: `ha-mode`, and a minimum delay below the maximum.
fn make_valid(definition: &mut Arguments) {
    if definition.contains_key("ha-sync-mode") {
        definition.insert("ha-mode".to_owned(), "all".into());
    }
    if definition.contains_key("delayed-retry-type") {
        definition.entry("delayed-retry-min".to_owned()).or_insert(1000.into());
    }
    if definition.get("delayed-retry-max") < definition.get("delayed-retry-min")
        && let Some(longest) = definition.get("delayed-retry-max").cloned()
    {
        definition.insert("delayed-retry-min".to_owned(), longest);
    }
}

fn policy(random: &mut Random, keys: &[&str], names: &[String], version: BrokerVersion) -> Policy {
    let mut apply_to = vec![ApplyTo::All, ApplyTo::All, ApplyTo::Queues, ApplyTo::Queues, ApplyTo::Exchanges];
    if version.is_at_least(3, 12) {
        apply_to.extend([ApplyTo::ClassicQueues, ApplyTo::QuorumQueues, ApplyTo::Streams]);
    }
    let mut definition = Arguments::new();
    for _ in 0..=random.below(3) {
        let key = *random.pick(keys);
        definition.insert(key.to_owned(), value(random, key, version));
    }
    make_valid(&mut definition);
    let priorities = [1.0, 1.0, 2.5, 100.0, 100.0, -1.0];
    Policy {
        pattern: pattern(random, names),
        apply_to: *random.pick(&apply_to),
        priority: Priority(*random.pick(&priorities)),
        definition,
    }
}

/// Generates the case with this index. A number and an index always generate the same case.
pub(super) fn draw(number: u64, index: usize, version: BrokerVersion) -> Case {
    let mut random = Random::new(number);
    let mut queues = BTreeMap::new();
    let streams = if version.is_at_least(3, 9) { STREAMS } else { 0 };
    for (kind, count) in [(QueueType::Classic, CLASSIC), (QueueType::Quorum, QUORUM), (QueueType::Stream, streams)] {
        let desired = queues.len() + count;
        while queues.len() < desired {
            queues.entry(draw_name(&mut random)).or_insert(kind);
        }
    }
    let mut exchanges: BTreeSet<String> = queues.keys().take(EXCHANGES / 2).cloned().collect();
    while exchanges.len() < EXCHANGES {
        exchanges.insert(draw_name(&mut random));
    }
    let names: Vec<String> = queues.keys().chain(&exchanges).cloned().collect();
    let mut draw = |count: usize, keys: &[&str]| -> BTreeMap<PolicyName, Policy> {
        let name = |number: usize| PolicyName::new(format!("p{number}"));
        (0..count).map(|number| (name(number), policy(&mut random, keys, &names, version))).collect()
    };
    let policies = draw(POLICIES, &keys(version));
    let operator_policies = draw(OPERATOR_POLICIES, &operator_keys(version));
    let mut case = Case { policies, operator_policies, queues, exchanges };
    own(&mut random, index, &mut case, version);
    case
}
