//! Writes the scenario of a case.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Bindings, Case, Drawn, typed};
use crate::live::differential_objects::smallest_scenario;
use crate::live::differential_report::{Scenario, Wrong, expect_scenario};

impl Bindings {
    pub(super) fn scenario_text(&self, case: &Case, wrong: Wrong) -> Scenario {
        let reply = |(source, key, arguments): &Drawn| json!({"source": source, "destination": "q", "routing_key": key, "arguments": arguments});
        let (over_http, over_amqp): (Vec<_>, Vec<_>) = case.live.iter().partition(|(_, amqp_type)| amqp_type.is_none());
        let by_a_client = |((source, key, _), amqp_type): &&(Drawn, Option<usize>)| {
            amqp_type.map(|number| format!("{source} {key:?} with n as {:?}", typed(number)))
        };
        let remark: Vec<String> = over_amqp.iter().filter_map(by_a_client).collect();
        let remark = if remark.is_empty() { String::new() } else { format!("Bound over AMQP: {}", remark.join(", ")) };
        let live: Vec<Value> = over_http.into_iter().map(|(drawn, _)| reply(drawn)).collect();
        let desired: Vec<Value> = case
            .desired
            .iter()
            .map(|(source, key, arguments)| json!({"exchange": source, "routingKey": key, "arguments": arguments}))
            .collect();
        // Declares only the exchanges of the case; predeclared exchanges exist.
        let sources = case.live.iter().map(|(drawn, _)| drawn).chain(&case.desired).map(|(source, ..)| *source);
        let own: BTreeSet<&str> = sources.filter(|source| self.types.contains_key(source)).collect();
        let exchanges: Vec<Value> = own.iter().map(|name| json!({"name": name, "type": self.types[name]})).collect();
        let declared: Map<String, Value> =
            own.iter().map(|name| ((*name).to_owned(), json!({"type": self.types[name]}))).collect();
        let queue = json!({"name": "q", "arguments": {"x-queue-type": "classic"}});
        Scenario {
            wrong,
            remark,
            live: json!({"exchanges": exchanges, "queues": [queue], "bindings": live}),
            spec: json!({"owns": ["*"], "exchanges": declared, "queues": {"q": {"type": "classic", "bindings": desired}}}),
        }
    }
}

/// An artificial disagreement is reduced to a scenario.
#[test]
fn disagreement_on_a_binding_becomes_a_scenario() {
    let arguments = |value: Value| value.as_object().unwrap().clone();
    let case = Case {
        live: vec![
            (("t", "a".to_owned(), Map::new()), None),
            (("h", "b".to_owned(), arguments(json!({"n": 1}))), None),
            (("h", "b".to_owned(), Map::new()), Some(1)),
        ],
        desired: vec![
            ("amq.topic", "c".to_owned(), Map::new()),
            ("h", "b".to_owned(), arguments(json!({"n": 1, "x-match": "any"}))),
        ],
    };
    let made_up = |case: &Case| {
        let is_live = case.live.iter().any(|(_, amqp_type)| *amqp_type == Some(1));
        let is_wrong = is_live && case.desired.iter().any(|(.., arguments)| arguments.contains_key("n"));
        if is_wrong { Err(Wrong::new("artificial", "A number in 16 bits.")) } else { Ok(()) }
    };
    let wrong = made_up(&case).unwrap_err();
    let kind = Bindings { types: [("t", "topic"), ("h", "headers")].into() };
    let scenario = smallest_scenario(&kind, case, wrong, made_up);
    expect_scenario(
        &scenario,
        r#"# artificial

A number in 16 bits.

Bound over AMQP: h "b" with n as ShortInt(1)

```json live
{"exchanges":[{"name":"h","type":"headers"}],"queues":[{"name":"q","arguments":{"x-queue-type":"classic"}}],"bindings":[]}
```

```yaml spec
owns: ["*"]
exchanges: {"h":{"type":"headers"}}
queues: {"q":{"type":"classic","bindings":[{"exchange":"h","routingKey":"b","arguments":{"n":1}}]}}
```

```text plan exit 2
```
"#,
    );
}
