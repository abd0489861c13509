//! Tests that following the hint of a lint rule has the promised effect.

use serde_json::{Value, json};

use crate::support::{Node, Topo, Vhost, until};

const SPEC: &str = include_str!("../cases/policy-hint.yaml");
const QUEUES: [&str; 3] = ["s.work", "s.alerts", "s.dead"];

/// Returns the policy definition that the broker applies to a queue.
fn governed(vhost: &Vhost<'_>, queue: &str) -> Value {
    // The broker reports a change only after a request to the queue.
    vhost.amqp().ready(queue);
    match &vhost.queue(queue)["effective_policy_definition"] {
        // Versions differ in how they report that there is no definition.
        none if none.is_null() || *none == json!([]) => json!({}),
        definition => definition.clone(),
    }
}

#[test]
fn the_pattern_for_a_policy_on_generated_queues_keeps_the_other_queues_governed() {
    let vhost = Node::shared().vhost("hint");
    let spec = SPEC.replace("vhost: hold-hint", &format!("vhost: {}", vhost.name()));
    let topo = Topo::new(&vhost).file("topology.yaml", &spec);
    topo.run(["apply", "--yes"]).expect_code(0);
    let policy = json!({"message-ttl": 86_400_000, "dead-letter-exchange": "dlx"});
    for queue in QUEUES {
        until("the policy to govern", || (governed(&vhost, queue) == policy).then_some(()));
    }
    let output = topo.run(["validate", "--format", "json"]);
    let found = output.json();
    let findings = found["diagnostics"].as_array().unwrap();
    let hint = findings.iter().find(|it| it["code"] == "policy-on-generated-queue").unwrap()["hint"].as_str().unwrap();
    let pattern = hint.split('`').nth(3).unwrap_or_else(|| panic!("a policy and a pattern: {hint}"));
    topo.rewrite(&spec.replace(r"'^s\.'", &format!("'{pattern}'")));
    topo.run(["validate"]).expect_no_text("policy-on-generated-queue");
    // Before the change, the dead-letter queue dead-letters to itself.
    topo.run(["apply", "--yes", "--allow", "message-drop"]).expect_code(0);
    for (queue, expected) in [("s.dead", json!({})), ("s.work", policy.clone()), ("s.alerts", policy)] {
        until(&format!("`{pattern}` to govern {queue} so"), || (governed(&vhost, queue) == expected).then_some(()));
    }
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}
