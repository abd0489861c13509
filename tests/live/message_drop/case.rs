//! Generates a queue with messages, and a change of its governing policy.

use serde_json::{Map, Value, json};

use crate::support::{Node, Random};

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) arguments: Map<String, Value>,
    /// The number of published messages, and the number of rejected ones.
    pub(super) messages: usize,
    pub(super) rejected: usize,
    /// The definitions of the queue's own policy before and after the plan.
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
    /// A policy of lower priority that does not change.
    below: Option<Value>,
}

impl Case {
    pub(super) fn live_policies(&self, name: &str) -> Vec<(String, Value)> {
        let policy = |priority: i32, definition: &Value| json!({"pattern": format!("^{name}$"), "apply-to": "queues", "priority": priority, "definition": definition});
        let own = self.before.iter().map(|definition| (name.to_owned(), policy(2, definition)));
        own.chain(self.below.iter().map(|definition| (format!("{name}.below"), policy(1, definition)))).collect()
    }

    pub(super) fn desired_policy(&self, name: &str) -> Option<Value> {
        let definition = self.after.as_ref()?;
        let pattern = format!("^{name}$");
        Some(json!({"pattern": pattern, "applyTo": "queues", "priority": 2, "definition": definition}))
    }
}

/// Returns a setting of policies or arguments. Before the plan, the setting loses no messages.
fn setting(random: &mut Random, node: &Node, is_after: bool) -> (&'static str, Value) {
    let dead_letters: &[&str] = if node.at_least(3, 10) { &["dead-letter-strategy"] } else { &[] };
    let mut keys = vec!["max-length", "max-length", "max-length", "max-length-bytes", "max-length-bytes", "overflow"];
    keys.extend(["overflow", "dead-letter-exchange", "message-ttl", "expires", "delivery-limit"]);
    keys.extend(dead_letters);
    let key = *random.pick(&keys);
    let value = match key {
        "max-length" => json!(*random.pick(&[1, 2, 4, 6, 1000])),
        "max-length-bytes" => json!(*random.pick(&[1, 15, 35, 1_000_000])),
        "overflow" => json!(*random.pick(&["drop-head", "reject-publish", "reject-publish", "reject-publish-dlx"])),
        "dead-letter-exchange" => json!("amq.fanout"),
        "dead-letter-strategy" => json!(*random.pick(&["at-least-once", "at-most-once"])),
        "message-ttl" if is_after => json!(*random.pick(&[1, 3_600_000])),
        "message-ttl" => json!(3_600_000),
        "expires" if is_after => json!(*random.pick(&[1000, 3_600_000])),
        "expires" => json!(7_200_000),
        _ => json!(*random.pick(&[1, 5])),
    };
    (key, value)
}

fn definition(random: &mut Random, node: &Node, is_after: bool) -> Value {
    let count = 1 + random.below(3);
    Value::Object((0..count).map(|_| setting(random, node, is_after)).map(|(key, it)| (key.to_owned(), it)).collect())
}

/// Returns settings with which dead-lettered messages stay pending: at-least-once, and an exchange without bindings.
fn waiting() -> Value {
    json!({"dead-letter-exchange": "nowhere", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"})
}

pub(super) fn draw(random: &mut Random, node: &Node) -> Case {
    let kind = *random.pick(&["classic", "quorum"]);
    let mut arguments = Map::new();
    arguments.insert("x-queue-type".to_owned(), json!(kind));
    if kind == "quorum" && node.at_least(3, 10) && random.chance(25) {
        return backlog(random, node, arguments);
    }
    if random.chance(30) {
        let (key, value) = match random.below(3) {
            0 => ("x-max-length", json!(*random.pick(&[3, 1000]))),
            1 => ("x-dead-letter-exchange", json!("amq.fanout")),
            // A quorum queue of 3.8.9 refuses `x-overflow`.
            _ if kind == "quorum" => ("x-max-length-bytes", json!(1_000_000)),
            _ => ("x-overflow", json!(*random.pick(&["drop-head", "reject-publish"]))),
        };
        arguments.insert(key.to_owned(), value);
    }
    let before = random.chance(60).then(|| definition(random, node, false));
    let mut after = random.chance(85).then(|| definition(random, node, true));
    // A quorum queue of 3.8 ignores most of the settings, so few changes drop its messages.
    if kind == "quorum" && random.chance(40) {
        let limit = json!(*random.pick(&[1, 2, 3]));
        after.get_or_insert_with(|| json!({})).as_object_mut().unwrap().insert("max-length".to_owned(), limit);
    }
    Case {
        arguments,
        messages: random.below(8),
        rejected: 0,
        before,
        after,
        below: random.chance(30).then(|| definition(random, node, false)),
    }
}

/// Returns a queue with pending dead-lettered messages, and a change of its policy.
fn backlog(random: &mut Random, node: &Node, arguments: Map<String, Value>) -> Case {
    let mut after = waiting();
    let changed = after.as_object_mut().unwrap();
    match random.below(6) {
        0 => drop(changed.remove("dead-letter-strategy")),
        1 => drop(changed.remove("overflow")),
        2 => drop(changed.remove("dead-letter-exchange")),
        3 => drop(changed.insert("dead-letter-strategy".to_owned(), json!("at-most-once"))),
        4 => drop(changed.insert("max-length".to_owned(), json!(1))),
        _ => drop(changed.insert("message-ttl".to_owned(), json!(3_600_000))),
    }
    let messages = 1 + random.below(6);
    Case {
        arguments,
        messages,
        rejected: 1 + random.below(messages),
        before: Some(waiting()),
        after: random.chance(85).then_some(after),
        below: random.chance(30).then(|| definition(random, node, false)),
    }
}
