//! Tests exchanges: a current exchange or none, and a desired exchange.

mod application;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use topo::model::{Object, Scope};
use topo::plan::document::{ChangeKind, Options};
use topo::plan::{Action, request};
use topo::rabbitmq::{Refusal, refusals};

use super::{Exchange, Judged, Kind, LIVE, Road, Scenario, Snapshot, Wrong, live, model, plan, reason, renamed, run};
use crate::live::differential_report::expect_scenario;
use crate::support::http::Answer;
use crate::support::{Node, Random};

struct Exchanges {
    types: Vec<&'static str>,
}

/// The current and the desired exchange as JSON of the management API.
#[derive(Clone, Debug)]
struct Case {
    /// The prefix of the unique number in the exchange name.
    prefix: &'static str,
    live: Option<Value>,
    desired: Value,
}

const ARGUMENTS: [&str; 7] = [
    "alternate-exchange",
    "hash-header",
    "hash-property",
    "x-recent-history-length",
    "x-delayed-type",
    "x-foo",
    "x-match",
];

impl Exchanges {
    fn of(node: &Node) -> Self {
        let mut types = vec!["direct", "fanout", "topic", "headers", "x-consistent-hash"];
        if node.at_least(4, 0) {
            types.push("x-local-random");
        }
        if node.at_least(4, 3) {
            types.push("x-modulus-hash");
        }
        Self { types }
    }

    fn kind(&self, random: &mut Random) -> &'static str {
        if random.chance(65) { "x-consistent-hash" } else { random.pick::<&str>(&self.types) }
    }

    /// Returns a valid exchange.
    fn good(&self, random: &mut Random) -> Value {
        let kind = self.kind(random);
        let mut arguments = Map::new();
        for name in ARGUMENTS {
            let value = match name {
                "hash-property" if kind == "x-consistent-hash" => {
                    json!(*random.pick(&["correlation_id", "message_id", "timestamp"]))
                }
                "alternate-exchange" | "hash-header" => text(random),
                _ => any(random),
            };
            let both = name == "hash-property" && arguments.contains_key("hash-header");
            if random.chance(25) && !(both && kind == "x-consistent-hash") {
                arguments.insert(name.to_owned(), value);
            }
        }
        let [durable, auto_delete, internal] = [85, 15, 15].map(|percent| random.chance(percent));
        json!({"type": kind, "durable": durable, "auto_delete": auto_delete, "internal": internal,
               "arguments": arguments})
    }

    /// Changes one property, possibly to an invalid value.
    fn changed(&self, random: &mut Random, exchange: &Value) -> Value {
        let mut changed = exchange.clone();
        match random.below(12) {
            0 => changed["type"] = self.kind(random).into(),
            1 => changed["type"] = (*random.pick(&["x-nope", "Topic", "x-recent-history"])).into(),
            2 => {
                let field = *random.pick(&["durable", "auto_delete", "internal"]);
                changed[field] = (!changed[field].as_bool().unwrap()).into();
            }
            _ => {
                let hashes = changed["type"] == "x-consistent-hash" && random.chance(75);
                let likely = if hashes { 1..3 } else { 0..if random.chance(45) { 1 } else { ARGUMENTS.len() } };
                let name = *random.pick(&ARGUMENTS[likely]);
                let arguments = changed["arguments"].as_object_mut().unwrap();
                if random.chance(25) {
                    arguments.remove(name);
                } else {
                    let value = match name {
                        "hash-property" if random.chance(70) => {
                            json!(*random.pick(&["correlation_id", "message_id", "timestamp", "app_id"]))
                        }
                        "alternate-exchange" | "hash-header" if random.chance(75) => text(random),
                        _ => any(random),
                    };
                    arguments.insert(name.to_owned(), value);
                }
            }
        }
        changed
    }
}

fn text(random: &mut Random) -> Value {
    json!(*random.pick(&["a", "b", "", "1", "ü", "<x>"]))
}

fn any(random: &mut Random) -> Value {
    random
        .pick(&[
            json!("a"),
            json!("1"),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-1),
            json!(true),
            json!([]),
            json!({}),
            json!(null),
            json!([1, "a"]),
            json!({"a": [true]}),
            json!({"a": null}),
            json!(i64::MAX),
            json!("1.0"),
        ])
        .clone()
}

/// Returns true if the broker's error contains the subject of this refusal.
fn is_named(refusal: &Refusal, text_of_the_broker: &str, status: u16) -> bool {
    match refusal.subject.as_str() {
        _ if refusal.text.contains("contains null") => text_of_the_broker == "null_not_allowed",
        "name" => status == 401,
        "type" => text_of_the_broker.contains("exchange type"),
        "hash-property" => {
            text_of_the_broker.contains("Unsupported property")
                || text_of_the_broker.contains("mutually exclusive")
                || text_of_the_broker.contains("case_clause")
        }
        "hash-header" => text_of_the_broker.contains("case_clause"),
        "alternate-exchange" => text_of_the_broker.contains("'alternate-exchange'"),
        _ => false,
    }
}

/// Compares the response to a new declaration with the first predicted refusal.
fn fresh(first: Option<Refusal>, answer: &Answer) -> Result<Vec<String>, &'static str> {
    match first {
        None if answer.status != 201 => Err("an unpredicted refusal"),
        None => Ok(vec!["fresh: taken".to_owned()]),
        Some(_) if answer.is_success() => Err("a predicted refusal did not occur"),
        Some(first) if !is_named(&first, &reason(answer), answer.status) => Err("another subject"),
        Some(first) => Ok(vec!["fresh: invalid".to_owned(), format!("invalid {}", first.subject)]),
    }
}

impl Exchanges {
    fn judge(&self, road: &Road<'_>, name: &str, case: &Case, planned: &Planned) -> Judged {
        let exchange: Exchange = model(&case.desired);
        let action = Action::declare_exchange(&name.into(), &exchange);
        let answer = road.send(&request(&road.vhost.name().into(), &action).unwrap());
        let text_of_the_broker = reason(&answer);
        let wrong = |what: &'static str| {
            Err(Wrong::new(
                what,
                format!("The broker answered {} {text_of_the_broker}; topo {planned:?}", answer.status),
            ))
        };
        if case.live.is_none() {
            let first = refusals(&Object::Exchange(name.into(), exchange), &planned.profile).into_iter().next();
            if planned.blocked != first.is_some() {
                return wrong("blocked for no reason, or not blocked");
            }
            return fresh(first, &answer).map_err(|what| wrong(what).unwrap_err());
        }
        // Each pair is declared twice: for the current exchange and under a new name.
        let fresh_name = format!("fresh-{name}");
        let action = Action::declare_exchange(&fresh_name.as_str().into(), &exchange);
        let fresh_answer = road.send(&request(&road.vhost.name().into(), &action).unwrap());
        let refused = refusals(&Object::Exchange(fresh_name.as_str().into(), exchange), &planned.profile);
        let first = refused.first().cloned();
        let mut labels = fresh(first.clone(), &fresh_answer)
            .map_err(|what| Wrong::new(what, format!("A fresh one: {fresh_answer:?}; topo {first:?}, {planned:?}")))?;
        let verdicts = &planned.verdicts;
        let has = |word: &str| verdicts.iter().any(|(_, verdict)| verdict == word);
        if has("invalid") && fresh_answer.is_success() {
            return wrong("invalid, but a fresh declare is accepted");
        }
        // The field in the broker's error is invalid if its value differs.
        if let Some(first) = first
            && verdicts.iter().any(|(field, verdict)| *field == first.subject && verdict != "invalid")
        {
            return wrong("valid, but a fresh declare is refused for it");
        }
        if has("conflict") && planned.broker_error.is_none() {
            return wrong("a conflict without an error");
        }
        if planned.broker_error.is_some() || text_of_the_broker == "null_not_allowed" {
            // From 4.0 on, the broker cannot write an error with a character beyond Latin-1, and responds with 500
            // (`rabbit_mgmt_util:direct_request`).
            if answer.status != 400 && !(answer.status == 500 && format!("{case:?}").contains('ü')) {
                return wrong("a wrongly predicted conflict");
            }
            // Over HTTP, the reason contains no error code. `facts::exchanges` shows the code for an unknown type.
            let is_unknown_type = text_of_the_broker.starts_with("unknown exchange type");
            let code = match is_unknown_type && !planned.profile.version.is_at_least(4, 0) {
                true => "COMMAND_INVALID",
                false => "PRECONDITION_FAILED",
            };
            if let Some(broker_error) = planned.broker_error.as_ref().filter(|_| answer.status == 400)
                && *broker_error != format!("{code} - {text_of_the_broker}")
                && text_of_the_broker != "null_not_allowed"
                // The broker prints lists and tables as Erlang terms.
                && !["{", "["].iter().any(|open| case.desired["arguments"]["alternate-exchange"].to_string().starts_with(open))
            {
                return wrong("another error");
            }
        } else if answer.status != 204 {
            return wrong("an unpredicted conflict");
        }
        labels.push(LIVE.to_owned());
        if verdicts.is_empty() {
            labels.push("live: equal".to_owned());
        }
        for (field, verdict) in verdicts {
            let on = if field.starts_with("hash-") {
                format!(" on {}", case.live.as_ref().unwrap()["type"])
            } else {
                String::new()
            };
            labels.push(format!("{verdict} {field}{on}"));
            labels.push(format!("live: {verdict}"));
        }
        labels.sort();
        labels.dedup();
        Ok(labels)
    }
}

/// topo's prediction for an exchange.
#[derive(Debug)]
struct Planned {
    blocked: bool,
    verdicts: Vec<(String, String)>,
    broker_error: Option<String>,
    profile: topo::rabbitmq::BrokerProfile,
}

impl Kind for Exchanges {
    type Case = Case;
    const WHAT: &'static str = "exchanges";

    fn draw(&self, random: &mut Random) -> Case {
        let good = self.good(random);
        let is_fresh = random.chance(35);
        let mut desired = if random.chance(88) { good.clone() } else { self.good(random) };
        for _ in 0..random.below(4) {
            desired = self.changed(random, &desired);
        }
        let prefix = if is_fresh && random.chance(20) { *random.pick(&["amq.", "amq.rabbitmq.", "amq"]) } else { "" };
        let mut live = (!is_fresh).then_some(good);
        if let Some(arguments) = live.as_mut().map(|live| live["arguments"].as_object_mut().unwrap()) {
            arguments.retain(|_, value| !value.to_string().contains("null"));
        }
        Case { prefix, live, desired }
    }

    fn play(&self, road: &Road<'_>, cases: &[Case]) -> Vec<Judged> {
        let names: Vec<String> =
            cases.iter().enumerate().map(|(number, case)| format!("{}{number}", case.prefix)).collect();
        let mut topology = road.topology();
        for (name, case) in names.iter().zip(cases) {
            topology.exchanges.insert(name.as_str().into(), model(&case.desired));
            if let Some(live) = &case.live {
                road.put("exchanges", name, live).expect_status(201);
            }
        }
        let snapshot = road.read();
        let planned = plan(&snapshot, topology, Scope::default(), &Options::default());
        let judge = |(name, case): (&String, &Case)| {
            let address = format!("exchanges/{}/{name}", road.vhost.name());
            let change = planned.changes.iter().find(|change| change.address.as_str() == address);
            let noted = planned.infos.iter().any(|info| info.address.as_str() == address);
            let mut verdicts: Vec<(String, String)> = Vec::new();
            if let Some(change) = change.filter(|change| change.kind != ChangeKind::Create) {
                let shown = change.fields.iter().map(|field| (field.field.clone(), field.verdict.to_string()));
                verdicts.extend(shown);
            } else if noted {
                verdicts.push(("arguments".to_owned(), "unknown".to_owned()));
            }
            let text_of_the_broker = Planned {
                blocked: planned.blocks.iter().any(|block| block.address.as_str() == address),
                verdicts,
                broker_error: change.and_then(|change| change.conflict.as_ref()?.broker_error.clone()),
                profile: snapshot.profile.clone(),
            };
            self.judge(road, name, case, &text_of_the_broker)
        };
        let mut judged: Vec<Judged> = names.iter().zip(cases).map(judge).collect();
        for ((name, case), judged) in names.iter().zip(cases).zip(&mut judged).step_by(application::ONE_OVER_AMQP) {
            if let Ok(labels) = judged
                && !case.desired["arguments"].to_string().contains("null")
            {
                match application::declare(road, name, case) {
                    Ok(received) => labels.push(received.to_owned()),
                    Err(wrong) => *judged = Err(wrong),
                }
            }
        }
        let after = road.read();
        for ((name, case), judged) in names.iter().zip(cases).zip(&mut judged) {
            let of = |snapshot: &Snapshot| snapshot.topology.exchanges.get(&name.as_str().into()).cloned();
            if case.live.is_some() && of(&snapshot) != of(&after) {
                *judged = Err(Wrong::new("a redeclaration changed it", format!("It is {:?} now.", of(&after))));
            }
        }
        judged
    }

    fn smaller(&self, case: &Case) -> Vec<Case> {
        let mut all = Vec::new();
        let arguments = |value: &Value| value["arguments"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let mut names: BTreeSet<String> = arguments(&case.desired).into_iter().collect();
        names.extend(case.live.iter().flat_map(arguments));
        for name in names {
            for both in [true, false] {
                let mut one = case.clone();
                one.desired["arguments"].as_object_mut().unwrap().remove(&name);
                if let Some(live) = one.live.as_mut().filter(|_| both) {
                    live["arguments"].as_object_mut().unwrap().remove(&name);
                }
                if both || case.live.is_some() {
                    all.push(one);
                }
            }
        }
        for (field, plain) in [("durable", true), ("auto_delete", false), ("internal", false)] {
            let mut one = case.clone();
            one.desired[field] = plain.into();
            if let Some(live) = &mut one.live {
                live[field] = plain.into();
            }
            all.push(one);
        }
        all.retain(|one| one.desired != case.desired || one.live != case.live);
        all
    }

    fn scenario(&self, case: &Case, wrong: Wrong) -> Scenario {
        // A number makes the name unique in a run.
        let name = format!("{}0", case.prefix);
        let keys = ["type", "durable", "internal", "arguments"].map(|key| (key, key));
        let keys = [&keys[..], &[("auto_delete", "autoDelete")]].concat();
        let mut exchanges = live(&name, case.live.as_ref());
        let mut declared = json!({&name: renamed(&case.desired, &keys)});
        // A spec cannot refer to a missing exchange.
        if let Some(alternate) = case.desired["arguments"]["alternate-exchange"].as_str() {
            exchanges.push(json!({"name": alternate, "type": "fanout"}));
            declared[alternate] = json!({"external": true});
        }
        Scenario {
            wrong,
            remark: String::new(),
            live: json!({"exchanges": exchanges}),
            spec: json!({"exchanges": declared}),
        }
    }

    fn expected(&self) -> BTreeSet<String> {
        let words = ["equal", "conflict", "drift", "unknown", "invalid"];
        let mut all: BTreeSet<String> = words.map(|word| format!("live: {word}")).into();
        all.extend(
            ["fresh: taken", "fresh: invalid", "conflict alternate-exchange", "conflict type"].map(str::to_owned),
        );
        all.extend(["over AMQP: taken", "over AMQP: refused"].map(str::to_owned));
        for verdict in ["drift", "invalid"] {
            all.extend(["hash-header", "hash-property"].map(|it| format!("{verdict} {it} on \"x-consistent-hash\"")));
        }
        all
    }
}

#[test]
fn exchange_answers_match_the_prediction() {
    run(&Exchanges::of(Node::shared()), 3300);
}

/// An artificial disagreement is reduced to a scenario.
#[test]
fn disagreement_on_an_exchange_becomes_a_scenario() {
    let kind = Exchanges { types: vec!["direct", "fanout"] };
    let body = |alternate: &str| {
        json!({"type": "fanout", "durable": false, "auto_delete": true, "internal": true,
               "arguments": {"alternate-exchange": alternate, "hash-header": "a", "x-foo": 1}})
    };
    let case = Case { prefix: "", live: Some(body("a")), desired: body("b") };
    let made_up = |case: &Case| {
        let alternate = |body: &Value| body["arguments"]["alternate-exchange"].clone();
        let is_wrong = alternate(&case.desired) == "b" && case.live.as_ref().is_some_and(|live| alternate(live) == "a");
        if is_wrong { Err(Wrong::new("artificial", "Another alternate exchange.")) } else { Ok(()) }
    };
    let wrong = made_up(&case).unwrap_err();
    let scenario = super::smallest_scenario(&kind, case, wrong, made_up);
    expect_scenario(
        &scenario,
        r#"# artificial

Another alternate exchange.

```json live
{"exchanges":[{"type":"fanout","durable":true,"auto_delete":false,"internal":false,"arguments":{"alternate-exchange":"a"},"name":"0"},{"name":"b","type":"fanout"}]}
```

```yaml spec
exchanges: {"0":{"type":"fanout","durable":true,"internal":false,"arguments":{"alternate-exchange":"b"},"autoDelete":false},"b":{"external":true}}
```

```text plan exit 2
```
"#,
    );
}
