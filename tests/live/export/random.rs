//! Tests random topologies from specs, with all kinds of retries and dead-lettering, and with unmanaged objects.
//!
//! `TOPO_SEED` repeats a run, and `TOPO_PAIR` repeats a single topology of it. `TOPO_PAIRS` sets the number of
//! topologies.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::round_trip::{plans_to_nothing, round_trip, without_comments};
use crate::live::convergence::case::draw;
use crate::live::convergence::possible;
use crate::scenarios::make_live;
use crate::support::{Argument, Node, Random, Topo, Vhost, cases, number, seed};

/// The numbers of topologies in a short run and in a long run.
const TOPOLOGIES: [usize; 2] = [14, 100];
/// The number of concurrent topologies. A topology spends most of its time waiting for the broker.
const AT_ONCE: usize = 4;

/// The number of occurrences of each event.
type Counts = Mutex<BTreeMap<&'static str, usize>>;

/// Runs every topology of a run and returns the events.
fn play(what: fn(&Node, u64, &Counts)) -> BTreeMap<&'static str, usize> {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let usize_of = |name: &str| number(name).map(|it| usize::try_from(it).unwrap());
    let only = usize_of("TOPO_PAIR");
    let all = only
        .map_or(0..usize_of("TOPO_PAIRS").unwrap_or_else(|| cases(TOPOLOGIES[0], TOPOLOGIES[1])), |one| one..one + 1);
    let (next, counts) = (AtomicUsize::new(all.start), Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= all.end {
                        break;
                    }
                    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        what(node, seed.wrapping_mul(1_000_003).wrapping_add(index as u64), &counts);
                    }));
                    assert!(played.is_ok(), "TOPO_SEED={seed} TOPO_PAIR={index}");
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

fn count(counts: &Counts, what: &'static str, times: usize) {
    *counts.lock().unwrap().entry(what).or_default() += times;
}

fn applied(vhost: &Vhost<'_>, spec: &Value) -> bool {
    let mut spec = spec.clone();
    spec["vhost"] = vhost.name().into();
    let topo = Topo::new(vhost).file("topology.yaml", &spec.to_string());
    topo.run(["apply", "--yes"]).code == Some(0)
}

#[test]
fn unmanaged_topologies_round_trip() {
    let counts = play(|node, seed, counts| {
        let case = draw(seed, possible(node));
        let vhost = node.vhost("random");
        if !applied(&vhost, &case.first) {
            count(counts, "refused", 1);
            return;
        }
        make_live(&vhost, &case.unmanaged);
        let amqp = vhost.amqp();
        for binding in case.unmanaged["int32"].as_array().unwrap() {
            let text = |key: &str| binding[key].as_str().unwrap();
            amqp.bind_queue(text("source"), text("destination"), "int32", &[("n", Argument::LongInt(1))]);
        }
        let text = round_without_types(&vhost);
        count(counts, "round trips", 1);
        count(counts, "left out", usize::from(text.starts_with("# Not exported")));
        count(counts, "lines", without_comments(&text).len());
    });
    println!("{counts:?}");
    if number("TOPO_PAIR").is_none() {
        assert!(counts.get("left out").is_some_and(|it| *it > 2), "{counts:?}");
    }
    assert!(counts.get("round trips") > counts.get("refused"), "{counts:?}");
}

/// In the definitions of an old broker, an unmanaged queue that was declared without a type has no type. A spec adds
/// the type.
fn round_without_types(vhost: &Vhost<'_>) -> String {
    let is_untyped = |queue: &Value| queue["arguments"].get("x-queue-type").is_none() && queue["durable"] == true;
    if vhost.list("queues").iter().any(is_untyped) {
        let text = super::round_trip::exported(vhost);
        plans_to_nothing(vhost, &text);
        return text;
    }
    round_trip(vhost)
}

#[test]
fn retries_and_dead_letters_round_trip() {
    let counts = play(|node, seed, counts| {
        let vhost = node.vhost("retries");
        let spec = draw_spec(&mut Random::new(seed), node);
        if !applied(&vhost, &spec) {
            count(counts, "refused", 1);
            return;
        }
        let text = round_trip(&vhost);
        count(counts, "round trips", 1);
        let topo = Topo::new(&vhost).file("export.yaml", &text);
        topo.write("topology.yaml", &{
            let mut spec = spec;
            spec["vhost"] = vhost.name().into();
            spec.to_string()
        });
        let retries = |file: &str| {
            let flags = ["contract", file, "--format", "json", "--broker-version", node.version()];
            let contract = topo.run(flags).expect_code(0).json();
            let queues = contract["vhosts"][vhost.name()]["queues"].as_object().cloned().unwrap_or_default();
            // `republish` without delays requires no objects on the broker, so there are none.
            let queues =
                queues.into_iter().filter(|(_, it)| it["delays"] != json!([]) || it["strategy"] == "redeliver");
            let settings = |it: Value| json!([it["strategy"], it["maxRetries"], it["delays"]]);
            queues.map(|(name, it)| (name, settings(it))).collect::<BTreeMap<_, _>>()
        };
        let (expected, found) = (retries("topology.yaml"), retries("export.yaml"));
        let is_tiered = |it: &Value| it[0] == "ladder" || it[0] == "republish";
        let tiered = |all: &BTreeMap<String, Value>| {
            all.iter().filter(|(_, it)| is_tiered(it)).map(|(name, it)| (name.clone(), it.clone())).collect::<Vec<_>>()
        };
        assert_eq!(tiered(&found), tiered(&expected), "{text}");
        count(counts, "tiered", tiered(&expected).len());
        count(counts, "retries", expected.len());
        count(counts, "wired by policy", text.matches("wiring: policy").count());
        count(counts, "dead-letter queues", usize::from(text.contains("deadLetterQueues:")));
    });
    println!("{counts:?}");
    if number("TOPO_PAIR").is_some() {
        return;
    }
    for what in ["round trips", "tiered", "wired by policy", "dead-letter queues"] {
        assert!(counts.get(what).is_some_and(|it| *it > 2), "{what}: {counts:?}");
    }
}

/// Returns a spec with retries, and with dead-letter exchanges of every type.
fn draw_spec(random: &mut Random, node: &Node) -> Value {
    let stems = ["orders", "a/b", "a b", "é", "x.retry", "1e3", "yes", "a.dlx"];
    let (mut queues, mut dead) = (json!({}), json!({}));
    for number in 0..random.below(3) + 1 {
        let name = format!("{}{number}.dead", random.pick(&stems));
        let mut entry = json!({"type": *random.pick(&["classic", "quorum"])});
        if random.chance(50) {
            let kind = *random.pick(&["fanout", "topic", "direct", "headers"]);
            entry["exchange"] = json!({"type": kind, "internal": random.chance(20)});
            if random.chance(50) {
                entry["exchange"]["name"] = json!(format!("dlx{number}"));
            }
            if random.chance(20) {
                entry["exchange"]["routingKey"] = json!("dead");
            }
        }
        dead[name] = entry;
    }
    let ends: Vec<String> = dead.as_object().unwrap().keys().cloned().collect();
    for number in 0..random.below(4) + 1 {
        let mut queue = json!({"type": *random.pick(&["classic", "quorum"])});
        let end = random.pick(&ends).clone();
        queue["deadLetter"] = if random.chance(25) { json!({"queue": end, "wiring": "policy"}) } else { json!(end) };
        let all: [&[&str]; 7] = [
            &["1s"],
            &["5s", "30s", "5m"],
            &["30s", "30s", "30s", "30s"],
            &["1s", "2s", "4s", "8s", "16s"],
            &["1500ms", "1h30m"],
            &["2s", "4s", "8s", "10s", "10s"],
            &["1s", "2s"],
        ];
        let delays = *random.pick(&all);
        match random.below(5) {
            0 | 1 => queue["retry"] = json!({"delays": delays}),
            2 => queue["retry"] = json!({"delays": delays, "strategy": "republish"}),
            3 if queue["type"] == "quorum" => queue["maxRetries"] = json!(random.below(5) + 1),
            4 if queue["type"] == "quorum" && node.at_least(4, 3) => {
                queue["retry"] = json!({"strategy": "delayed", "delays": ["1s", "2s", "3s", "3s"]});
            }
            _ => queue["maxLength"] = json!(1000),
        }
        if random.chance(30) {
            queue["arguments"] = json!({"x-foo": [1, 1.5, "1", true]});
        }
        queue["bindings"] =
            json!([{"exchange": "work", "routingKey": "a.#"}, {"exchange": "amq.headers", "arguments": {"n": 1.0}}]);
        queues[format!("{}{number}", random.pick(&stems))] = queue;
    }
    json!({"version": 1, "exchanges": {"work": {"type": "topic"}}, "queues": queues, "deadLetterQueues": dead})
}
