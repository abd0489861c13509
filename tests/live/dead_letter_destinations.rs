//! Poisons every queue of random topologies, and compares the queues where dead-lettered messages arrive with the JSON
//! of `topo contract`, `topo explain` and `topo graph`. Messages die because of a rejection, an exhausted retry, a TTL
//! or a length limit.
//!
//! For the destination `maybe`, the test checks the dropped keys, the possible queues, and the number of queues with a
//! single outcome. `tests/live/routing` compares each message in topologies without unmanaged objects.
//!
//! With `TOPO_LONG=1`, the test generates 300 topologies, otherwise 30. `TOPO_SEED` repeats a run.

mod generate;
mod graph_edges;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use topo::rabbitmq::routing::{Certainty, Keys};

use self::generate::{Case, EXTERNAL_BINDINGS};
use self::graph_edges::Edges;
use self::worker::{Played, Seen, play};
use crate::support::{Node, Random, Topo, Vhost, seed};

/// The number of topologies per run of topo, each in a separate vhost.
const AT_ONCE: usize = 15;
/// The minimum percentage of queues with a certain destination, for a meaningful comparison.
const CERTAIN: usize = 50;
/// The maximum percentage of `maybe` destinations with a single outcome. If more of them had a single outcome, topo
/// would probably fail to predict known facts.
const ONE_OUTCOME: usize = 75;

type Counts = BTreeMap<String, usize>;

/// The statement of one command about one queue.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claim {
    /// `always`, `maybe` or `never`; for a queue without a dead-letter exchange, `never`.
    reach: String,
    queues: BTreeSet<String>,
    possible: BTreeSet<String>,
}

fn names(list: &Value) -> BTreeSet<String> {
    let names = list.as_array().map_or(&[][..], Vec::as_slice).iter();
    names.map(|name| name.as_str().expect("a name").to_owned()).collect()
}

impl Claim {
    /// Reads the object `deadLetters` of any of the three commands.
    fn of(dead_letters: &Value) -> Self {
        let reach = dead_letters["reach"].as_str().unwrap_or("never").to_owned();
        let (queues, possible) = (names(&dead_letters["queues"]), names(&dead_letters["possibleQueues"]));
        Self { reach, queues, possible }
    }

    /// Returns the difference between the claim and the observation, if any. Through an unmanaged exchange, messages
    /// may arrive in undeclared queues.
    fn differs(&self, seen: &Seen, is_open: bool) -> Option<&'static str> {
        let arrived: usize = seen.arrivals.values().sum();
        let may = |queue: &String| {
            let is_claimed = self.queues.contains(queue) || self.possible.contains(queue);
            is_claimed || is_open && EXTERNAL_BINDINGS.contains(&queue.as_str())
        };
        let count = |queue: &String| seen.arrivals.get(queue).copied().unwrap_or(0);
        if self.reach == "never" && arrived > 0 {
            return Some("a message arrives, expected dropped");
        }
        if self.reach == "always" && arrived < seen.poisoned {
            return Some("a message is dropped, expected to arrive");
        }
        if !seen.arrivals.keys().all(may) {
            return Some("a message arrives in another queue");
        }
        let is_missing = |queue: &String| count(queue) != seen.poisoned;
        self.queues.iter().any(is_missing).then_some("a message does not arrive in a queue that gets all of them")
    }
}

/// The statements of the three commands about a batch of topologies.
struct Statements {
    contracts: Value,
    graph: Value,
    /// The explanations by queue, one map per vhost.
    explained: BTreeMap<String, Value>,
}

impl Statements {
    fn read(topo: &Topo, version: &str, cases: &[Case]) -> Self {
        let json = |line: &[&str]| {
            let tail = ["specs", "--format", "json", "--broker-version", version];
            topo.run(line.iter().copied().chain(tail)).expect_code(0).json()
        };
        let of_case =
            |case: &'_ Case| case.queues().iter().cloned().chain(case.stream_name().map(str::to_owned)).collect();
        let names: BTreeSet<String> = cases.iter().flat_map::<Vec<String>, _>(of_case).collect();
        let explained = names.into_iter().map(|name| (name.clone(), json(&["explain", &name]))).collect();
        Self { contracts: json(&["contract"]), graph: json(&["graph"]), explained }
    }

    fn contract(&self, vhost: &str, queue: &str) -> &Value {
        &self.contracts["vhosts"][vhost]["queues"][queue]
    }

    fn explanation(&self, vhost: &str, queue: &str) -> &Value {
        let Some(explained) = self.explained.get(queue) else { return &Value::Null };
        let explanations = explained["explanations"].as_array().expect("explanations");
        explanations.iter().find(|explanation| explanation["vhost"] == vhost).unwrap_or(&Value::Null)
    }

    fn graph(&self, vhost: &str) -> &Value {
        let vhosts = self.graph["vhosts"].as_array().expect("vhosts");
        vhosts.iter().find(|it| it["vhost"] == vhost).expect("a graph of each vhost")
    }

    /// Returns all differences between the statements and the observations of a queue.
    fn differences(&self, vhost: &str, queue: &str, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |command: &str, what: &str| found.push(format!("{command} {queue}: {what}: {seen:?}"));
        let graph = self.graph(vhost);
        let nodes = graph["nodes"].as_array().expect("nodes");
        let node = nodes.iter().position(|it| it["name"] == queue).expect("a node of each queue");
        let edges = Edges::of(graph);
        let explanation = self.explanation(vhost, queue);
        let contract = Claim::of(&self.contract(vhost, queue)["deadLetters"]);
        let claims = [
            ("contract", contract.clone()),
            ("explain", Claim::of(&explanation["contract"]["deadLetters"])),
            ("graph", Claim::of(&nodes[node]["deadLetters"])),
        ];
        for (command, claim) in &claims {
            if let Some(what) = claim.differs(seen, edges.are_open(queue)) {
                differ(command, &format!("{what}, {claim:?}"));
            }
            if *claim != contract {
                differ(command, &format!("has {claim:?}, contract has {contract:?}"));
            }
        }
        // The graph and the explanation agree with the claim.
        let last = explanation["steps"].as_array().and_then(|steps| steps.last()).expect("a last step");
        let is_end = matches!(last["state"]["name"].as_str(), Some("deadLetter"));
        if last["state"]["name"] != "kept" && is_end != (contract.reach != "never") {
            differ("explain", &format!("the last step is {last}"));
        }
        for (other, count) in &seen.arrivals {
            let explanation = self.explanation(vhost, other);
            if *count > 0 && !explanation.is_null() && !names(&explanation["deadLettersFrom"]).contains(queue) {
                differ("explain", &format!("{other} does not name it as a source"));
            }
        }
        for what in edges.differences(queue, &Claim::of(&nodes[node]["deadLetters"])) {
            differ("graph", &what);
        }
        found
    }
}

/// Returns the messages that arrive although the contract lists the keys of all their copies as dropped.
fn arrived_with_dropped_keys(queue: &str, contract: &Value, played: &Played) -> Vec<String> {
    let dropped = names(&contract["deadLetters"]["droppedKeys"]);
    let of_queue = played.dead.iter().filter(|((source, _), dead)| source == queue && !dead.arrivals.is_empty());
    let is_dropped = |key: &String| {
        let key = Keys::One(key.clone());
        dropped.iter().any(|pattern| key.match_topic(pattern) == Certainty::Always)
    };
    let lies = of_queue.filter(|(_, dead)| dead.keys.iter().all(is_dropped));
    lies.map(|((_, body), dead)| format!("contract {queue}: drops the keys of {body:?}, which arrives: {dead:?}"))
        .collect()
}

/// Returns the outcomes of the messages that died in a queue: arrived or dropped.
fn outcomes(queue: &str, played: &Played) -> BTreeSet<&'static str> {
    let of_queue = played.dead.iter().filter(|((source, _), _)| source == queue);
    of_queue.map(|(_, dead)| if dead.arrivals.is_empty() { "dropped" } else { "arrived" }).collect()
}

/// Applies a batch of topologies, poisons all their queues, and returns the differences.
fn batch(node: &'static Node, random: &mut Random, size: usize, counts: &mut Counts) -> Vec<String> {
    let version = node.version();
    let vhosts: Vec<Vhost<'_>> = (0..size).map(|_| node.vhost("poisoned")).collect();
    let topo = Topo::new(&vhosts[0]);
    let mut cases = Vec::new();
    for vhost in &vhosts {
        // Replaces topologies that the broker or a strategy refuses.
        let case = loop {
            let case = Case::draw(random, node);
            topo.write("candidate.yaml", &case.spec(vhost.name()));
            let checked = topo.run(["validate", "candidate.yaml", "--broker-version", version]);
            if checked.code == Some(0) {
                break case;
            }
            *counts.entry("specs drawn again".to_owned()).or_default() += 1;
        };
        topo.write(&format!("specs/{}.yaml", vhost.name()), &case.spec(vhost.name()));
        cases.push(case);
    }
    for (vhost, case) in vhosts.iter().zip(&cases) {
        case.declare_external_objects(&vhost.amqp());
    }
    topo.run(["apply", "-y", "specs"]).expect_code(0);
    let statements = Statements::read(&topo, version, &cases);
    let played: Vec<_> = std::thread::scope(|scope| {
        let plays: Vec<_> = vhosts
            .iter()
            .zip(&cases)
            .map(|(vhost, case)| {
                let statements = &statements;
                scope.spawn(move || play(vhost, case, &|queue| statements.contract(vhost.name(), queue)))
            })
            .collect();
        plays.into_iter().map(|play| play.join().expect("playing a case does not panic")).collect()
    });
    let mut found = Vec::new();
    let mut add = |what: String, times: usize| *counts.entry(what).or_default() += times;
    for ((vhost, case), played) in vhosts.iter().zip(&cases).zip(played) {
        add("topologies".to_owned(), 1);
        let spec = || format!("\n{}", case.spec(vhost.name()));
        for queue in case.queues() {
            let seen = played.queues.get(queue).cloned().unwrap_or_default();
            if seen.poisoned == 0 {
                found.push(format!("{queue}: received no message{}", spec()));
            }
            let contract = statements.contract(vhost.name(), queue);
            let claim = Claim::of(&contract["deadLetters"]);
            let has_exchange = if contract["deadLetters"].is_null() { "no dead-letter exchange" } else { "routed" };
            add(format!("queues: {has_exchange}: {}", claim.reach), 1);
            add(format!("queues with strategy {}", contract["strategy"].as_str().unwrap_or("none")), 1);
            add("queues".to_owned(), 1);
            add("messages dead-lettered".to_owned(), seen.poisoned);
            add("messages arrived".to_owned(), seen.arrivals.values().sum());
            if claim.reach == "maybe" {
                let is_open = Edges::of(statements.graph(vhost.name())).are_open(queue);
                let through = if is_open { ", over an unmanaged exchange" } else { "" };
                let outcomes = Vec::from_iter(outcomes(queue, &played)).join(" and ");
                add(format!("maybe{through}: messages {outcomes}"), 1);
            }
            add("possible queues".to_owned(), claim.possible.len());
            let reached = claim.possible.iter().filter(|name| seen.arrivals.contains_key(*name));
            add("possible queues that got a message".to_owned(), reached.count());
            let dropped = contract["deadLetters"]["droppedKeys"].as_array().map_or(0, Vec::len);
            add("keys that are listed as dropped".to_owned(), dropped);
            found.extend(arrived_with_dropped_keys(queue, contract, &played).into_iter().map(|it| it + &spec()));
            found.extend(statements.differences(vhost.name(), queue, &seen).into_iter().map(|it| it + &spec()));
        }
        for (reason, times) in &played.deaths {
            add(format!("deaths: {reason}"), *times);
        }
        // The spec does not declare the bindings of external exchanges.
        let edges = Edges::of(statements.graph(vhost.name()));
        let dropped = played.dropped.into_iter().filter(|(queue, _)| !edges.are_open(queue));
        found.extend(dropped.map(|(_, it)| it + &spec()));
        found.extend(played.wrong.into_iter().map(|it| it + &spec()));
    }
    found
}

#[test]
fn dead_lettered_messages_arrive_as_predicted() {
    let node = Node::shared();
    let seed = seed();
    let topologies = if std::env::var_os("TOPO_LONG").is_some() { 300 } else { 30 };
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let (mut counts, mut differences) = (Counts::new(), Vec::new());
    for number in 0..topologies / AT_ONCE {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        differences.extend(batch(node, &mut random, AT_ONCE, &mut counts));
    }
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    println!("{:>6}  differences", differences.len());
    assert!(differences.is_empty(), "TOPO_SEED={seed}: {} differences\n{}", differences.len(), differences.join("\n"));
    let count = |what: &str| counts.get(what).copied().unwrap_or(0);
    let certain = count("queues: routed: always") + count("queues: routed: never");
    let routed = certain + count("queues: routed: maybe");
    assert!(certain * 100 > routed * CERTAIN, "TOPO_SEED={seed}: {certain} of {routed} fates are certain");
    let both = count("maybe: messages arrived and dropped");
    let one = count("maybe: messages arrived") + count("maybe: messages dropped");
    let maybe = one + both;
    assert!(
        maybe < 50 || one * 100 <= maybe * ONE_OUTCOME,
        "TOPO_SEED={seed}: {one} of {maybe} uncertain fates show one outcome"
    );
    assert!(count("queues: routed: never") * 20 > routed, "TOPO_SEED={seed}: too few queues drop their messages");
}
