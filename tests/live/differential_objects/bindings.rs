//! Tests bindings of a queue: current bindings, declared over AMQP and HTTP, and desired bindings.

mod first_refusal;
mod scenario;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use topo::model::{Binding, Destination, Exchange, Glob, ObjectKind, Queue, Scope};
use topo::plan::document::{ChangeKind, Options};
use topo::plan::{Action, VhostPlan};

use super::{Judged, Kind, LIVE, Road, Scenario, Wrong, model, plan, run};
use crate::support::{Amqp, Argument, Node, Random, text};

struct Bindings {
    types: BTreeMap<&'static str, &'static str>,
}

/// A binding to the queue of the case: source, routing key and arguments.
type Drawn = (&'static str, String, Map<String, Value>);

#[derive(Clone, Debug)]
struct Case {
    /// The current bindings; with the number of an AMQP type, declared over AMQP, otherwise over HTTP.
    live: Vec<(Drawn, Option<usize>)>,
    desired: Vec<Drawn>,
}

const KEYS: [&str; 23] = [
    "",
    "a",
    "a.b",
    "#",
    "#.a.#.b.#",
    "null",
    "undefined",
    "~",
    "a~b",
    "a+b",
    "a b",
    "a%b",
    "a%2Fb",
    "日本",
    "ü",
    "..",
    ".",
    "<b>",
    "a/b",
    "1",
    "\"",
    "a\nb",
    "?x=1",
];
const WEIGHTS: [&str; 10] = ["1", "2", "10", "05", "+5", "0", "-1", "x", "", "1.5"];
/// Used rarely, because the broker creates this number of buckets.
const LARGE_WEIGHTS: [&str; 2] = ["10000", "10001"];

/// Returns an AMQP value that JSON cannot distinguish or represent.
fn typed(number: usize) -> Argument {
    match number {
        0 => Argument::ShortShortInt(1),
        1 => Argument::ShortInt(1),
        2 => Argument::LongInt(1),
        3 => Argument::LongLongInt(1),
        4 => Argument::LongUInt(1),
        5 => Argument::Timestamp(1),
        6 => Argument::Boolean(true),
        7 => Argument::Double(1.5),
        8 => Argument::Float(1.5),
        9 => Argument::Void,
        10 => text("1"),
        11 => Argument::ByteArray(b"1".to_vec().into()),
        12 => Argument::FieldArray(vec![Argument::LongInt(1)].into()),
        _ => {
            let mut table = lapin::types::FieldTable::default();
            table.insert("a".into(), Argument::ShortInt(1));
            Argument::FieldTable(table)
        }
    }
}
const TYPES: usize = 14;

fn value(random: &mut Random) -> Value {
    random
        .pick(&[
            json!(1),
            json!(1),
            json!(1),
            json!("1"),
            json!(1.5),
            json!(true),
            json!(1.0),
            json!([1]),
            json!({"a": 1}),
            json!(-1),
            json!({}),
            json!([]),
            json!("ü"),
            json!(i64::MAX),
            json!([{"a": [true]}]),
            json!(0.1),
        ])
        .clone()
}

impl Bindings {
    fn of(node: &Node) -> Self {
        let mut types: BTreeMap<&str, &str> =
            [("t", "topic"), ("h", "headers"), ("d", "direct"), ("c", "x-consistent-hash"), ("f", "fanout")].into();
        if node.at_least(4, 0) {
            types.insert("l", "x-local-random");
        }
        Self { types }
    }

    fn drawn(&self, random: &mut Random) -> Drawn {
        let mut sources: Vec<&'static str> = self.types.keys().copied().collect();
        sources.extend(["amq.topic", "amq.headers", "amq.match", "h", "h", "h", "t"]);
        let source = *random.pick(&sources);
        let key = match source {
            "c" if random.chance(4) => *random.pick(&LARGE_WEIGHTS),
            "c" => *random.pick(&WEIGHTS),
            "l" if random.chance(70) => "",
            _ => *random.pick(&KEYS),
        };
        let mut arguments = Map::new();
        if random.chance(if matches!(source, "h" | "amq.headers" | "amq.match") { 75 } else { 15 }) {
            arguments.insert("n".to_owned(), value(random));
            if random.chance(60) {
                let words = ["all", "any", "all", "any", "all-with-x", "any-with-x", "ALL", ""];
                let word = if random.chance(92) { json!(*random.pick(&words)) } else { value(random) };
                arguments.insert("x-match".to_owned(), word);
            }
        }
        if random.chance(2) {
            // The request has around 5,000 bytes, including the envelope.
            arguments.insert("big".to_owned(), json!("x".repeat(4_900 + random.below(120))));
        }
        if random.chance(2) {
            arguments.insert("none".to_owned(), random.pick(&[json!(null), json!([null])]).clone());
        }
        // A `~` in a key with arguments breaks the list of the whole vhost.
        let key = if arguments.is_empty() { key } else { key.trim_matches('~').split('~').next().unwrap() };
        (source, key.to_owned(), arguments)
    }
}

fn binding(queue: &str, (source, key, arguments): &Drawn) -> Binding {
    Binding {
        source: (*source).into(),
        destination: Destination::Queue(queue.into()),
        routing_key: key.clone(),
        arguments: model(&Value::Object(arguments.clone())),
    }
}

/// Creates a current binding if the broker accepts it.
fn make(road: &Road<'_>, amqp: &Amqp, queue: &str, (drawn, amqp_type): &(Drawn, Option<usize>)) {
    let (source, key, arguments) = drawn;
    if let Some(number) = amqp_type {
        amqp.bind_queue(source, queue, key, &[("n", typed(*number))]);
    } else {
        let path = road.vhost.path("bindings", &["e", source, "q", queue]);
        let body = json!({"routing_key": key, "arguments": arguments});
        let _ = road.ask("POST", &path, Some(&body));
    }
}

/// Returns the bindings listed for each queue, with the broker's own properties keys.
fn listed(road: &Road<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in road.list("bindings").into_iter().filter(|one| one["source"] != "") {
        let queue = one["destination"].as_str().unwrap().to_owned();
        all.entry(queue).or_default().insert(
            ["source", "routing_key", "arguments", "properties_key"].map(|field| one[field].to_string()).join(" "),
        );
    }
    all
}

fn changes<'a>(plan: &'a VhostPlan, queue: &'a str, kind: ChangeKind) -> impl Iterator<Item = &'a Binding> {
    let is_of = move |binding: &&Binding| binding.destination.name() == queue;
    plan.changes.iter().filter(move |change| change.kind == kind).filter_map(move |change| {
        match change.after.as_ref().or(change.before.as_ref()) {
            Some(topo::model::Object::Binding(binding)) => Some(binding).filter(is_of),
            _ => None,
        }
    })
}

impl Kind for Bindings {
    type Case = Case;
    const WHAT: &'static str = "bindings";

    fn draw(&self, random: &mut Random) -> Case {
        let mut live = Vec::new();
        for _ in 0..random.below(4) {
            let amqp_type = random.chance(60).then(|| random.below(TYPES));
            let mut drawn = self.drawn(random);
            if amqp_type.is_some() {
                drawn = (
                    *random.pick(&["h", "amq.headers", "t"]),
                    (*random.pick(&["", "a", "null"])).to_owned(),
                    Map::new(),
                );
            }
            live.push((drawn, amqp_type));
        }
        let mut desired: Vec<Drawn> = (0..random.below(3)).map(|_| self.drawn(random)).collect();
        for ((source, key, arguments), amqp_type) in &live {
            if random.chance(50) {
                let arguments = match amqp_type {
                    // Mostly equal in JSON.
                    Some(number) => {
                        let value = match number {
                            0..=5 => json!(1),
                            6 => json!(true),
                            7 | 8 => json!(1.5),
                            10 | 11 => json!("1"),
                            12 => json!([1]),
                            13 => json!({"a": 1}),
                            _ => value(random),
                        };
                        Map::from_iter([("n".to_owned(), value)])
                    }
                    None => arguments.clone(),
                };
                desired.push((source, key.clone(), arguments));
            }
        }
        Case { live, desired }
    }

    fn play(&self, road: &Road<'_>, cases: &[Case]) -> Vec<Judged> {
        let amqp = road.vhost.amqp();
        let mut topology = road.topology();
        for (name, kind) in &self.types {
            let exchange =
                json!({"type": kind, "durable": true, "auto_delete": false, "internal": false, "arguments": {}});
            road.put("exchanges", name, &exchange).expect_status(201);
            topology.exchanges.insert((*name).into(), model::<Exchange>(&exchange));
        }
        let names: Vec<String> = (0..cases.len()).map(|number| format!("q{number}")).collect();
        for (name, case) in names.iter().zip(cases) {
            let queue = json!({"durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}});
            road.put("queues", name, &queue).expect_status(201);
            topology.queues.insert(name.as_str().into(), model::<Queue>(&queue));
            case.live.iter().for_each(|live| make(road, &amqp, name, live));
            topology.bindings.extend(case.desired.iter().map(|drawn| binding(name, drawn)));
        }
        let owns = Scope { owns: vec![Glob::new("*")], ..Scope::default() };
        let before = listed(road);
        let snapshot = road.read();
        let planned = plan(&snapshot, topology.clone(), owns.clone(), &Options::default());
        let mut wrong: BTreeMap<String, Wrong> = BTreeMap::new();
        let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Sends the steps of the plan, and also the blocked bindings, to observe their refusals.
        for step in &planned.steps {
            let Action::Bind { binding } = &step.action else { panic!("{step:?}") };
            let queue = binding.destination.name().to_owned();
            let answer = road.send(step.request.as_ref().unwrap());
            let block = planned.blocks.iter().find(|block| block.address == step.address);
            let label = match (block, answer.is_success()) {
                (None, true) => "made",
                (Some(_), false) => {
                    match first_refusal::subject(&self.types, binding, &topology, &snapshot.profile, &answer) {
                        Ok(subject) => {
                            labels.entry(queue.clone()).or_default().push(format!("refused for {subject}"));
                        }
                        Err(text) => {
                            wrong.insert(queue, Wrong::new("another subject", text));
                            continue;
                        }
                    }
                    topology.bindings.remove(binding);
                    "refused"
                }
                (block, _) => {
                    let text =
                        format!("{binding}: the broker answered {} {}; topo {block:?}", answer.status, answer.body);
                    wrong.insert(queue, Wrong::new("the answer to a bind", text));
                    continue;
                }
            };
            let labels = labels.entry(queue).or_default();
            labels.push(label.to_owned());
            labels.push(format!("{label} {}", self.types.get(binding.source.as_str()).unwrap_or(&"predeclared")));
        }
        let after = listed(road);
        let snapshot = road.read();
        let again = plan(&snapshot, topology.clone(), owns.clone(), &Options::default());
        // Afterwards, only desired and undeletable bindings remain.
        let prune = Options { prune: [ObjectKind::Binding].into(), ..Options::default() };
        let pruned = plan(&snapshot, topology.clone(), owns.clone(), &prune);
        for step in &pruned.steps {
            // A binding with a disagreement is planned again.
            let Action::Unbind { binding, .. } = &step.action else { continue };
            let answer = road.send(step.request.as_ref().unwrap());
            let queue = binding.destination.name().to_owned();
            if answer.status != 204 {
                let text = format!("{}: {} {}", step.request.as_ref().unwrap(), answer.status, answer.body);
                wrong.insert(queue, Wrong::new("the answer to an unbind", text));
            } else {
                labels.entry(queue).or_default().push("deleted".to_owned());
            }
        }
        let last = road.read();
        let done = plan(&last, topology.clone(), owns, &prune);
        let nothing = BTreeSet::new();
        let judge = |(name, case): (&String, &Case)| {
            if let Some(wrong) = wrong.get(name) {
                return Err(wrong.clone());
            }
            let mut labels = labels.get(name).cloned().unwrap_or_default();
            let was = before.get(name).unwrap_or(&nothing);
            let is = after.get(name).unwrap_or(&nothing);
            let made: Vec<&Binding> =
                changes(&planned, name, ChangeKind::Create).filter(|one| topology.bindings.contains(one)).collect();
            // Compares each current binding with the desired bindings.
            labels.extend(was.iter().map(|_| LIVE.to_owned()));
            if !was.is_subset(is) || is.len() != was.len() + made.len() {
                return Err(Wrong::new("the created bindings", format!("From {was:?} to {is:?}, planned {made:?}")));
            }
            if let Some(left) = changes(&again, name, ChangeKind::Create).next() {
                return Err(Wrong::new("created bindings are still desired", format!("{left}: {is:?}")));
            }
            if let Some(left) =
                done.changes.iter().find(|change| change.address.as_str().contains(&format!("/queues/{name}/")))
            {
                return Err(Wrong::new("left after a prune", left.address.to_string()));
            }
            for drawn in &case.desired {
                let binding = binding(name, drawn);
                if topology.bindings.contains(&binding) && !last.topology.bindings.contains(&binding) {
                    return Err(Wrong::new("desired, but missing", binding.to_string()));
                }
                if !made.contains(&&binding) && topology.bindings.contains(&binding) {
                    labels.push("equal".to_owned());
                }
            }
            for binding in last.topology.bindings.iter().filter(|one| one.destination.name() == name) {
                if topology.bindings.contains(binding) {
                    continue;
                }
                if !matches!(binding.routing_key.as_str(), "null" | "undefined") {
                    return Err(Wrong::new("not desired, but present", binding.to_string()));
                }
                let address = topo::model::Address::of(
                    &road.vhost.name().into(),
                    &topo::model::ObjectId::Binding(binding.clone()),
                );
                if !done.infos.iter().any(|info| info.address == address && info.text.contains("AMQP client")) {
                    return Err(Wrong::new("not reported as undeletable", binding.to_string()));
                }
                labels.push("undeletable".to_owned());
            }
            Ok(labels)
        };
        names.iter().zip(cases).map(judge).collect()
    }

    fn smaller(&self, case: &Case) -> Vec<Case> {
        let mut all = Vec::new();
        for index in 0..case.live.len() {
            let mut one = case.clone();
            one.live.remove(index);
            all.push(one);
        }
        for index in 0..case.desired.len() {
            let mut one = case.clone();
            one.desired.remove(index);
            all.push(one);
            for name in case.desired[index].2.keys() {
                let mut one = case.clone();
                one.desired[index].2.remove(name);
                all.push(one);
            }
        }
        all
    }

    fn scenario(&self, case: &Case, wrong: Wrong) -> Scenario {
        self.scenario_text(case, wrong)
    }

    fn expected(&self) -> BTreeSet<String> {
        let words = ["made", "refused", "deleted", "equal", "undeletable", "refused for x-match"];
        words.map(str::to_owned).into()
    }
}

#[test]
fn binding_answers_match_the_prediction() {
    run(&Bindings::of(Node::shared()), 2000);
}
