//! Tests policies: a current policy or none, and a desired policy.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use topo::model::{Object, Policy, Scope};
use topo::plan::document::Options;
use topo::plan::{Action, request};
use topo::rabbitmq::refusals;

use super::{Judged, Kind, LIVE, Road, Scenario, Wrong, live, model, plan, reason, renamed, run};
use crate::live::differential_report::expect_scenario;
use crate::support::{Node, Random};

struct Policies {
    version: (u32, u32),
}

/// The current and the desired policy as JSON of the management API.
#[derive(Clone, Debug)]
struct Case {
    live: Option<Value>,
    desired: Value,
}

/// A key, the first version that supports it, and the broker's error for an invalid value.
const KEYS: [(&str, (u32, u32), &str); 34] = [
    ("alternate-exchange", (3, 8), "alternate exchange name"),
    ("consumer-disconnected-timeout", (4, 3), "consumer disconnected timeout"),
    ("consumer-timeout", (3, 12), "consumer timeout"),
    ("dead-letter-exchange", (3, 8), "dead letter exchange name"),
    ("dead-letter-routing-key", (3, 8), "dead letter routing key"),
    ("dead-letter-strategy", (3, 10), "dead letter strategy"),
    ("delayed-retry-max", (4, 3), "delayed retry maximum delay|delayed-retry-max ("),
    ("delayed-retry-min", (4, 3), "delayed retry minimum delay|delayed-retry-min is required"),
    ("delayed-retry-type", (4, 3), "delayed retry type"),
    ("delivery-limit", (3, 8), "delivery limit"),
    ("expires", (3, 8), "queue expiry"),
    ("ha-mode", (3, 8), "ha-mode value|ha-mode must be specified"),
    ("ha-params", (3, 8), "ha-mode=\""),
    ("ha-promote-on-failure", (3, 8), "ha-promote-on-failure must"),
    ("ha-promote-on-shutdown", (3, 8), "ha-promote-on-shutdown must"),
    ("ha-sync-batch-size", (3, 8), "ha-sync-batch-size takes"),
    ("ha-sync-mode", (3, 8), "ha-sync-mode must"),
    ("initial-cluster-size", (3, 9), "cluster size"),
    ("max-age", (3, 9), "max age"),
    ("max-in-memory-bytes", (3, 8), "maximum memory in bytes"),
    ("max-in-memory-length", (3, 8), "maximum memory in bytes"),
    ("max-length", (3, 8), "valid maximum length\n"),
    ("max-length-bytes", (3, 8), "maximum length in bytes"),
    ("message-ttl", (3, 8), "message TTL"),
    ("overflow", (3, 8), "overflow value"),
    ("queue-leader-locator", (3, 9), "queue leader locator value"),
    ("queue-master-locator", (3, 8), "queue-master-locator|master locator"),
    ("queue-mode", (3, 8), "queue-mode value"),
    ("queue-version", (3, 10), "queue-version value"),
    ("stream-filter-size-bytes", (3, 13), "filter size"),
    ("stream-max-segment-size-bytes", (3, 9), "segment size"),
    ("target-group-size", (3, 13), "qq target count"),
    ("single-active-consumer", (9, 9), ""),
    ("foo", (9, 9), ""),
];

/// Returns a mostly valid value for the key.
fn likely(random: &mut Random, key: &str) -> Value {
    let words: &[&str] = match key {
        "alternate-exchange" | "dead-letter-exchange" | "dead-letter-routing-key" => &["a", "", "ü", "<x>", "5"],
        "dead-letter-strategy" => &["at-least-once", "at-most-once"],
        "delayed-retry-type" => &["all", "failed", "returned", "disabled"],
        "ha-mode" => &["all", "exactly", "nodes"],
        "ha-promote-on-failure" | "ha-promote-on-shutdown" => &["always", "when-synced"],
        "ha-sync-mode" => &["manual", "automatic"],
        "max-age" => &["7D", "1Y", "12h", "007m", "7D\n", "1s\nx"],
        "overflow" => &["drop-head", "reject-publish", "reject-publish-dlx"],
        "queue-leader-locator" => &["client-local", "balanced", "random", "least-leaders"],
        "queue-master-locator" => &["client-local", "min-masters", "random"],
        "queue-mode" => &["default", "lazy"],
        "stream-filter-size-bytes" => return json!(*random.pick(&[16, 255, 100])),
        "stream-max-segment-size-bytes" => return json!(*random.pick(&[0, 3_000_000_000_i64, 5])),
        "queue-version" => return json!(*random.pick(&[1, 2])),
        "ha-params" => return random.pick(&[json!(2), json!(["a@b"])]).clone(),
        _ => return json!(*random.pick(&[1, 2, 60_000, 1_000_000_000_000_i64, i64::MAX])),
    };
    json!(*random.pick(words))
}

/// Returns a value at or beyond a limit.
fn any(random: &mut Random, key: &str) -> Value {
    let edges: &[Value] = match key {
        "max-age" => &["0D", "7d", "D", "7", "7DD", "7\nD", " 7D", "-7D", "é", "7é"].map(Value::from),
        "stream-filter-size-bytes" => &[15, 256].map(Value::from),
        "stream-max-segment-size-bytes" => &[3_000_000_001_i64, -1].map(Value::from),
        "queue-version" => &[3, 0].map(Value::from),
        "ha-params" => &[json!([]), json!(["a", 1]), json!(0), json!("2")],
        _ => &[0, -1, -2].map(Value::from),
    };
    if random.chance(40) {
        return random.pick(edges).clone();
    }
    random
        .pick(&[
            json!("5"),
            json!("x"),
            json!(""),
            json!(5),
            json!(5.0),
            json!(1.5),
            json!(-1),
            json!(0),
            json!(true),
            json!(null),
            json!([]),
            json!(["a"]),
            json!({"a": 1}),
            json!(1e300),
        ])
        .clone()
}

impl Policies {
    fn value(&self, random: &mut Random, key: &str, percent: usize) -> Value {
        let value = if random.chance(percent) { likely(random, key) } else { any(random, key) };
        // 3.x never responds to a locator that is a table or a fraction, because the handler crashes.
        let kills = key == "queue-master-locator" && (value.is_object() || value.is_f64());
        if kills { json!(5) } else { value }
    }

    fn policy(&self, random: &mut Random, percent: usize) -> Value {
        let mut definition = Map::new();
        let mut keys: Vec<&str> = Vec::new();
        // Uses many valid keys, or a few keys of which some are invalid.
        let count = if percent == 100 { 5 + random.below(5) } else { random.below(4) + usize::from(random.chance(90)) };
        for _ in 0..count {
            keys.push(random.pick(&KEYS).0);
        }
        if random.chance(20) {
            keys.extend(["ha-mode", "ha-params", "ha-sync-mode"].iter().filter(|_| random.chance(60)));
        }
        if random.chance(20) {
            keys.extend(
                ["delayed-retry-type", "delayed-retry-min", "delayed-retry-max"].iter().filter(|_| random.chance(60)),
            );
        }
        let known = |key: &str| {
            let gone = key.starts_with("ha-") && self.version >= (4, 0)
                || key == "queue-master-locator" && self.version >= (4, 3);
            !gone && KEYS.iter().any(|(name, since, _)| *name == key && self.version >= *since)
        };
        for key in keys {
            // The broker always refuses a key that its version does not support.
            if known(key) || percent < 100 && random.chance(20) {
                definition.insert(key.to_owned(), self.value(random, key, percent));
            }
        }
        // In a valid policy, dependent keys are set together.
        if percent == 100 && definition.keys().any(|key| key.starts_with("ha-")) {
            let modes = [("all", None), ("exactly", Some(json!(2))), ("nodes", Some(json!(["a"])))];
            let (mode, params) = random.pick(&modes);
            definition.insert("ha-mode".to_owned(), json!(mode));
            definition.remove("ha-params");
            definition.extend(params.clone().map(|params| ("ha-params".to_owned(), params)));
        }
        if percent == 100 && definition.keys().any(|key| key.starts_with("delayed-")) {
            definition.insert("delayed-retry-min".to_owned(), json!(1));
        }
        let all = ["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"];
        let words = if self.version >= (3, 12) || percent < 100 && random.chance(10) { &all[..] } else { &all[..3] };
        let pattern = match random.below(20) {
            0 => "a".repeat(1024),
            1 if percent < 100 => "a".repeat(1025),
            _ => (*random.pick(&["^n$", "", "a|b", "(?i)x", "ü", "\n", "<x>&", "\\.", "[a-z]+$"])).to_owned(),
        };
        let priorities = [json!(0), json!(1), json!(-3), json!(1.5), json!(-0.0), json!(7.0), json!(1e15), json!(0.1)];
        json!({"pattern": pattern, "apply-to": *random.pick(words), "priority": random.pick(&priorities),
               "definition": definition})
    }
}

/// Returns true if the broker's error refers to this subject: the definition, or another part.
fn is_named(subject: &str, reply: &str) -> bool {
    let first = reply.strip_prefix("Validation failed\n\n").unwrap_or(reply);
    match subject {
        "definition" => first.starts_with("no policy provided"),
        "apply-to" => first.starts_with("apply-to "),
        "pattern" => first.starts_with("pattern "),
        key => {
            let words = KEYS.iter().find(|(name, ..)| *name == key).map_or("", |(.., words)| words);
            let unknown = first.contains("are not recognised") && first.contains(&format!("\"{key}\""));
            unknown || words.split('|').any(|words| !words.is_empty() && first.contains(words))
        }
    }
}

impl Kind for Policies {
    type Case = Case;
    const WHAT: &'static str = "policies";

    fn draw(&self, random: &mut Random) -> Case {
        let percent = if random.chance(60) { 100 } else { 90 };
        let desired = self.policy(random, percent);
        let live = match random.below(10) {
            0..=2 => None,
            3..=5 if percent == 100 => Some(desired.clone()),
            _ => Some(self.policy(random, 100)),
        };
        Case { live, desired }
    }

    fn play(&self, road: &Road<'_>, cases: &[Case]) -> Vec<Judged> {
        let mut topology = road.topology();
        let mut made = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            // A refused policy does not exist.
            made.push(
                case.live.as_ref().is_some_and(|live| road.put("policies", &format!("p{number}"), live).is_success()),
            );
            topology.policies.insert(format!("p{number}").as_str().into(), model(&case.desired));
        }
        let snapshot = road.read();
        let planned = plan(&snapshot, topology.clone(), Scope::default(), &Options::default());
        let mut judged: Vec<Judged> = Vec::new();
        let mut taken = topology.clone();
        for (number, case) in cases.iter().enumerate() {
            let name = format!("p{number}");
            let address = format!("policies/{}/{name}", road.vhost.name());
            let policy: Policy = model(&case.desired);
            let change = planned.changes.iter().find(|change| change.address.as_str() == address);
            let blocked = planned.blocks.iter().any(|block| block.address.as_str() == address);
            let found = refusals(&Object::Policy(name.as_str().into(), policy.clone()), &snapshot.profile);
            let action = Action::PutPolicy { name: name.as_str().into(), policy };
            let answer = road.send(&request(&road.vhost.name().into(), &action).unwrap());
            let reply = reason(&answer);
            let wrong = |what: &'static str| {
                Err(Wrong::new(what, format!("The broker answered {} {reply}; topo {found:?}", answer.status)))
            };
            let word = if made[number] { "live" } else { "fresh" };
            // Each module reports its first error, and the order of modules depends on an Erlang hash table.
            let is_named = || found.iter().any(|refusal| is_named(&refusal.subject, &reply)) || reply == "null";
            judged.push(match (found.first(), answer.is_success()) {
                (None, false) => wrong("an unpredicted refusal"),
                (Some(_), true) => wrong("a predicted refusal did not occur"),
                _ if change.is_some() && blocked == found.is_empty() => wrong("the plan does not report it"),
                (Some(_), false) if !is_named() => wrong("another subject"),
                (Some(_), false) => {
                    taken.policies.remove(&name.as_str().into());
                    let mut labels: Vec<String> =
                        found.iter().map(|refusal| format!("refused {}", refusal.subject)).collect();
                    labels.dedup();
                    labels.push(format!("{word}: refused"));
                    Ok(labels)
                }
                (None, true) => {
                    let keys = case.desired["definition"].as_object().unwrap().keys();
                    let mut labels: Vec<String> = keys.map(|key| format!("taken {key}")).collect();
                    labels.push(format!("{word}: {}", if change.is_some() { "written" } else { "equal" }));
                    Ok(labels)
                }
            });
        }
        let left = plan(&road.read(), taken, Scope::default(), &Options::default());
        for (judged, made) in judged.iter_mut().zip(&made) {
            if let Ok(labels) = judged {
                labels.extend(made.then(|| LIVE.to_owned()));
            }
        }
        for change in &left.changes {
            let number: usize = change.address.as_str().rsplit('p').next().unwrap().parse().unwrap();
            if judged[number].is_err() {
                continue;
            }
            judged[number] = Err(Wrong::new("it differs from the request", format!("{:?}", change.fields)));
        }
        judged
    }

    fn smaller(&self, case: &Case) -> Vec<Case> {
        let mut all = Vec::new();
        if case.live.is_some() {
            all.push(Case { live: None, ..case.clone() });
        }
        for key in case.desired["definition"].as_object().unwrap().keys() {
            let mut one = case.clone();
            one.desired["definition"].as_object_mut().unwrap().remove(key);
            all.push(one);
        }
        for (field, plain) in [("pattern", json!("^n$")), ("apply-to", json!("all")), ("priority", json!(0))] {
            let mut one = case.clone();
            one.desired[field] = plain;
            all.push(one);
        }
        all.retain(|one| one.desired != case.desired || one.live != case.live);
        all
    }

    fn scenario(&self, case: &Case, wrong: Wrong) -> Scenario {
        let keys =
            [("pattern", "pattern"), ("apply-to", "applyTo"), ("priority", "priority"), ("definition", "definition")];
        Scenario {
            wrong,
            remark: String::new(),
            live: json!({"policies": live("p", case.live.as_ref())}),
            spec: json!({"policies": {"p": renamed(&case.desired, &keys)}}),
        }
    }

    fn expected(&self) -> BTreeSet<String> {
        let mut all: BTreeSet<String> =
            ["fresh: written", "fresh: refused", "live: written", "live: equal", "live: refused"]
                .map(str::to_owned)
                .into();
        for (key, since, _) in KEYS {
            let mirrored = key.starts_with("ha-") && self.version >= (4, 0);
            let denied = key == "queue-master-locator" && self.version >= (4, 3);
            if self.version >= since && !mirrored && !denied {
                all.insert(format!("taken {key}"));
            }
        }
        all
    }
}

#[test]
fn policy_answers_match_the_prediction() {
    let node = Node::shared();
    let mut parts = node.version().split('.').map(|part| part.parse().unwrap());
    let version = (parts.next().unwrap(), parts.next().unwrap());
    run(&Policies { version }, 3000);
}

/// An artificial disagreement is reduced to a scenario.
#[test]
fn disagreement_on_a_policy_becomes_a_scenario() {
    let body = |age: &str| {
        json!({"pattern": "a|b", "apply-to": "queues", "priority": 7,
               "definition": {"max-age": age, "max-length": 5, "ha-mode": "all"}})
    };
    let case = Case { live: Some(body("7D")), desired: body("07D") };
    let made_up = |case: &Case| {
        let is_wrong = case.desired["definition"]["max-age"] == "07D";
        if is_wrong { Err(Wrong::new("artificial", "An age with a zero before it.")) } else { Ok(()) }
    };
    let wrong = made_up(&case).unwrap_err();
    let scenario = super::smallest_scenario(&Policies { version: (3, 10) }, case, wrong, made_up);
    expect_scenario(
        &scenario,
        r#"# artificial

An age with a zero before it.

```json live
{"policies":[]}
```

```yaml spec
policies: {"p":{"pattern":"^n$","applyTo":"all","priority":0,"definition":{"max-age":"07D"}}}
```

```text plan exit 2
```
"#,
    );
}
