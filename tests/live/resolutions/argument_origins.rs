//! Tests resolutions for values that are set under `arguments` or in the defaults. Each resolution contains the origin
//! and is sufficient.

use serde_json::{Value, json};

use crate::support::apply_resolution::{apply_resolution_to, resolutions_of};
use crate::support::{Node, Topo, Vhost, until};

/// A name, the current arguments (`None` if the queue does not exist), its entry, and the value that the policy must
/// set, if a policy helps.
type Case = (&'static str, Option<Value>, &'static str, Option<Value>);

const DEFAULTS: &str = "defaults:
  queue:
    type: classic
    messageTtl: 30s
    arguments:
      x-max-length: 10
";

fn cases(node: &Node) -> Vec<Case> {
    let live = |mut more: Value| {
        for (argument, value) in [("x-message-ttl", 30_000), ("x-max-length", 10)] {
            if more.get(argument).is_none() {
                more[argument] = value.into();
            }
        }
        more.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        Some(more)
    };
    let mut cases = vec![
        (
            "arguments-changed",
            live(json!({"x-message-ttl": 60_000})),
            "    arguments:\n      x-message-ttl: 45000\n",
            Some(json!({"message-ttl": 45_000})),
        ),
        (
            "arguments-added",
            live(json!({})),
            "    arguments:\n      x-expires: 3600000\n      x-foo: 1\n",
            Some(json!({"expires": 3_600_000})),
        ),
        (
            "arguments-dead",
            live(json!({"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "a"})),
            "    arguments:\n      x-dead-letter-exchange: amq.fanout\n      x-dead-letter-routing-key: b\n",
            None,
        ),
        (
            "arguments-dead-added",
            live(json!({})),
            "    arguments:\n      x-dead-letter-exchange: amq.fanout\n",
            Some(json!({"dead-letter-exchange": "amq.fanout"})),
        ),
        ("default-changed", live(json!({"x-message-ttl": 60_000})), "", Some(json!({"message-ttl": 30_000}))),
        ("default-added", live(json!({"x-message-ttl": null})), "", Some(json!({"message-ttl": 30_000}))),
        ("default-argument-added", live(json!({"x-max-length": null})), "", Some(json!({"max-length": 10}))),
        (
            "own-and-default",
            live(json!({"x-message-ttl": null})),
            "    messageTtl: 45s\n",
            Some(json!({"message-ttl": 45_000})),
        ),
        (
            "arguments-and-default",
            live(json!({"x-message-ttl": null})),
            "    arguments:\n      x-message-ttl: 45000\n",
            Some(json!({"message-ttl": 45_000})),
        ),
        ("equal", live(json!({})), "", None),
        ("new", None, "", None),
    ];
    if node.at_least(3, 10) {
        // Earlier quorum queues have no TTL, so this queue cannot exist.
        cases.push(("arguments-type", live(json!({})), "    arguments:\n      x-queue-type: quorum\n", None));
    }
    cases
}

fn address(vhost: &Vhost<'_>, name: &str) -> String {
    format!("queues/{}/{name}", vhost.name())
}

#[test]
fn suggestion_changes_the_origin_of_the_value() {
    let node = Node::shared();
    let vhost = node.vhost("places");
    let cases = cases(node);
    let mut desired = format!("version: 1\nvhost: {}\n{DEFAULTS}queues:\n", vhost.name());
    for (name, live, spec, _) in &cases {
        if let Some(arguments) = live {
            let body = json!({"durable": true, "auto_delete": false, "arguments": arguments});
            vhost.http().put(&vhost.path("queues", &[name]), &body).expect_status(201);
        }
        desired.push_str(&format!("  {name}:\n    durable: true\n{spec}"));
    }
    desired.push_str("exchanges:\n");
    for (name, alternate) in [("changed", Some("amq.topic")), ("added", None)] {
        let arguments = alternate.map_or(json!({}), |alternate| json!({"alternate-exchange": alternate}));
        let body = json!({"type": "fanout", "durable": true, "arguments": arguments});
        vhost.http().put(&vhost.path("exchanges", &[name]), &body).expect_status(201);
        desired
            .push_str(&format!("  {name}:\n    type: fanout\n    arguments:\n      alternate-exchange: amq.fanout\n"));
    }
    let topo = Topo::new(&vhost).spec(&desired);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let settled = ["equal", "new"];
    let in_conflict: Vec<&Case> = cases.iter().filter(|(name, ..)| !settled.contains(name)).collect();
    assert_eq!(plan["summary"]["conflict"], in_conflict.len() + 2, "{plan:#}");
    let way = |address: &str, kind: &str| resolutions_of(&plan, address, kind)[0].clone();
    let exchange = |name: &str, kind: &str| way(&format!("exchanges/{}/{name}", vhost.name()), kind);

    let mut kept = desired.clone();
    for (name, ..) in &in_conflict {
        let keep = way(&address(&vhost, name), "keep");
        assert_eq!(keep["applicability"], "yes", "{name}: {keep:#}");
        kept = apply_resolution_to(&kept, ("queues", name), &keep);
    }
    for name in ["changed", "added"] {
        kept = apply_resolution_to(&kept, ("exchanges", name), &exchange(name, "keep"));
    }
    topo.rewrite(&kept);
    let again = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let changes = again["vhosts"][0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{kept}\n{changes:#?}");
    assert_eq!(changes[0]["address"], address(&vhost, "new"));
    // The entry now sets the values of the defaults itself.
    assert_eq!(
        changes[0]["after"]["queue"]["arguments"],
        json!({"x-queue-type": "classic", "x-message-ttl": 30_000, "x-max-length": 10})
    );

    let mut governed = desired;
    for (name, _, _, by_policy) in &in_conflict {
        let policy = way(&address(&vhost, name), "policy");
        assert_eq!(policy["applicability"], if by_policy.is_some() { "yes" } else { "no" }, "{name}: {policy:#}");
        let chosen = if by_policy.is_some() { policy } else { way(&address(&vhost, name), "keep") };
        governed = apply_resolution_to(&governed, ("queues", name), &chosen);
    }
    governed = apply_resolution_to(&governed, ("exchanges", "changed"), &exchange("changed", "keep"));
    governed = apply_resolution_to(&governed, ("exchanges", "added"), &exchange("added", "policy"));
    topo.rewrite(&governed);
    topo.run(["apply", "-y", "--allow", "message-drop,publisher-block"]).expect_code(0);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    let amqp = vhost.amqp();
    for (name, .., by_policy) in &in_conflict {
        let Some(Value::Object(expected)) = by_policy else { continue };
        until(&format!("the policy of {name} in {governed}"), || {
            amqp.ready(name);
            let queue = vhost.queue(name);
            let holds = expected.iter().all(|(key, value)| queue["effective_policy_definition"][key] == *value);
            holds.then_some(())
        });
    }
}

/// topo does not copy a default of many queues into each entry. The resolution states that it is incomplete.
#[test]
fn shared_default_is_an_incomplete_resolution() {
    let node = Node::shared();
    let vhost = node.vhost("many");
    let amqp = vhost.amqp();
    amqp.declare_queue("lacks", &[]).unwrap();
    let mut spec = format!(
        "version: 1\nvhost: {}\ndefaults: {{queue: {{type: classic, messageTtl: 30s}}}}\nqueues:\n  lacks: {{}}\n",
        vhost.name()
    );
    (0..21).for_each(|number| spec.push_str(&format!("  new{number}: {{}}\n")));
    let topo = Topo::new(&vhost).spec(&spec);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let address = address(&vhost, "lacks");
    let keep = resolutions_of(&plan, &address, "keep")[0];
    assert_eq!(keep["applicability"], "partly", "{keep:#}");
    assert_eq!(keep["removeKeys"], json!(["defaults.queue.messageTtl"]));
    let text = keep["text"].as_str().unwrap();
    assert!(
        text.contains("remove defaults.queue.messageTtl (topology.yaml:3), and set it in the other objects"),
        "{text}"
    );
    assert_eq!(resolutions_of(&plan, &address, "policy")[0]["applicability"], "partly");
}
