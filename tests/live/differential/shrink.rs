//! Reduces a disagreement and writes its scenario.

use serde_json::{Value, json};
use topo::model::VhostName;
use topo::model::known_arguments::KnownArgument;

use super::answer::{fresh_agrees, judge, make, predict, put};
use super::queues::{Definition, Live, Width};
use super::{Reply, broker};
use crate::live::differential_report::{Scenario, Wrong, expect_scenario, smallest};
use crate::support::{Node, block_on};

/// A pair of definitions, and the default queue type of its vhost.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) live: Live,
    pub(super) desired: Definition,
    pub(super) default: Option<&'static str>,
}

/// Compares the pair in a new vhost.
fn play(node: &Node, pair: &Pair) -> Result<(), Wrong> {
    let vhost = super::vhost(node, pair.default);
    let http = node.http();
    if let refused @ Reply::Refused { .. } = make(&http, &vhost.amqp(), &vhost, "live", &pair.live) {
        let snapshot = block_on(broker(node).read(&[VhostName::from(vhost.name())])).unwrap().remove(0);
        let predicted = predict(&snapshot, "live", &pair.live.definition);
        return fresh_agrees(predicted.refused.as_deref(), &refused);
    }
    let snapshot = block_on(broker(node).read(&[VhostName::from(vhost.name())])).unwrap().remove(0);
    let predicted = predict(&snapshot, "live", &pair.desired);
    let again = put(&http, &vhost, "live", &pair.desired);
    let fresh = put(&http, &vhost, "fresh", &pair.desired);
    judge(&pair.live, &pair.desired, &predicted, (&again, &fresh)).map(drop)
}

/// Returns the pair without each field in turn.
fn smaller(pair: &Pair) -> Vec<Pair> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Pair)| {
        let mut one = pair.clone();
        change(&mut one);
        if one.live != pair.live || one.desired != pair.desired || one.default != pair.default {
            all.push(one);
        }
    };
    let names = pair.live.definition.arguments.keys().chain(pair.desired.arguments.keys());
    for name in names {
        add(&|pair| {
            pair.live.definition.arguments.remove(name);
            pair.desired.arguments.remove(name);
        });
        add(&|pair| drop(pair.live.definition.arguments.remove(name)));
        add(&|pair| drop(pair.desired.arguments.remove(name)));
    }
    add(&|pair| (pair.live.definition.durable, pair.desired.durable) = (true, true));
    add(&|pair| (pair.live.definition.auto_delete, pair.desired.auto_delete) = (false, false));
    add(&|pair| pair.live.widths = None);
    add(&|pair| pair.default = None);
    all
}

/// Returns the smallest pair with the same disagreement.
pub(super) fn shrink(node: &Node, pair: Pair, wrong: Wrong) -> (Pair, Wrong) {
    smallest(pair, wrong, smaller, |pair| play(node, pair))
}

/// Returns the scenario of a disagreement.
pub(super) fn scenario(pair: &Pair, wrong: Wrong) -> Scenario {
    let mut live = json!({"queues": [pair.live.definition.body()]});
    live["queues"][0]["name"] = "work".into();
    if let Some(default) = pair.default {
        live["vhost"] = json!({"default_queue_type": default});
    }
    let mut queue = json!({"type": "classic"});
    if !pair.desired.durable {
        queue["durable"] = false.into();
    }
    if pair.desired.auto_delete {
        queue["autoDelete"] = true.into();
    }
    for (name, value) in &pair.desired.arguments {
        match KnownArgument::named(name) {
            Some(known) if known.key == "type" => queue["type"] = value.clone(),
            Some(_) | None => queue["arguments"][name] = value.clone(),
        }
    }
    let remark = format!("Widths: {:?}; desired over HTTP: {}", pair.live.widths, pair.desired.body());
    Scenario { wrong, remark, live, spec: json!({"queues": {"work": queue}}) }
}

/// An artificial disagreement: a priority queue for which the spec declares an expiry.
fn artificial(pair: &Pair) -> Result<(), Wrong> {
    let has = |definition: &Definition, name: &str| definition.arguments.contains_key(name);
    let is_wrong = has(&pair.live.definition, "x-max-priority") && has(&pair.desired, "x-expires");
    if is_wrong { Err(Wrong::new("artificial", "an expiry")) } else { Ok(()) }
}

#[test]
fn irrelevant_fields_are_removed() {
    let definition = |arguments: Value| Definition {
        durable: false,
        auto_delete: true,
        arguments: arguments.as_object().unwrap().clone(),
    };
    let live = definition(json!({"x-max-priority": 5, "x-foo": 1, "x-message-ttl": 7}));
    let desired = definition(json!({"x-max-length": 5, "x-expires": 1000, "x-foo": 2}));
    let widths = Some([("x-message-ttl".to_owned(), Width::Short)].into());
    let pair = Pair { live: Live { definition: live, widths }, desired, default: Some("quorum") };
    let wrong = artificial(&pair).unwrap_err();
    let (pair, wrong) = smallest(pair, wrong, smaller, artificial);
    expect_scenario(
        &scenario(&pair, wrong),
        r#"# artificial

an expiry

Widths: None; desired over HTTP: {"durable":true,"auto_delete":false,"arguments":{"x-expires":1000}}

```json live
{"queues":[{"durable":true,"auto_delete":false,"arguments":{"x-max-priority":5},"name":"work"}]}
```

```yaml spec
queues: {"work":{"type":"classic","arguments":{"x-expires":1000}}}
```

```text plan exit 2
```
"#,
    );
}
