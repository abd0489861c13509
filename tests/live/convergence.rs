//! Runs random pairs of topologies on a real broker: applies the first spec, adds unmanaged objects, then plans and
//! applies the second spec. Afterwards, the plan is empty, unmanaged objects are unchanged, and no step used a deleted
//! object.
//!
//! `TOPO_SEED` repeats a run, and `TOPO_PAIR` repeats a single pair of it. `TOPO_PAIRS` sets the number of pairs
//! (default 40; 1,500 with `TOPO_LONG=1`).

pub(super) mod case;
mod pair;
mod replay;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::case::{Case, Possible, draw, without_dangling_references};
use self::pair::{Counts, Player, Wrong, text_of};
use crate::support::{Node, cases, draws_on, number, seed};

/// The numbers of pairs in a short run and in a long run.
const PAIRS: [usize; 2] = [40, 1_500];
/// The number of concurrent pairs. A pair spends most of its time waiting for the broker.
const AT_ONCE: usize = 8;
/// The minimum number of occurrences of each event in a meaningful run. A short run with `TOPO_PAIRS` requires fewer
/// occurrences.
const ENOUGH: usize = 20;
/// The minimum number of pairs of a run that is not short.
const ENOUGH_FOR_ALL: usize = 200;
const ENOUGH_OF_A_SHORT_RUN: usize = 3;
/// The time limit for reducing a failed case.
const SHRINKING: Duration = Duration::from_secs(60);

pub(super) fn possible(node: &Node) -> Possible {
    Possible {
        streams: node.at_least(3, 9),
        untyped_queues: !node.at_least(4, 0),
        ten_years_at_most: node.at_least(3, 10),
    }
}

/// Runs a pair. Treats a panic, such as an unexpected refusal, as a failure.
fn play(player: &Player, case: &Case) -> Result<Option<Counts>, Wrong> {
    catch_unwind(AssertUnwindSafe(|| player.play(case, Node::shared()))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        Err(Wrong { check: "arranging", text, live: Value::Null })
    })
}

/// Returns the names of all objects.
fn names(case: &Case) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for spec in [&case.first, &case.second] {
        for kind in ["exchanges", "queues", "policies"] {
            names.extend(spec[kind].as_object().unwrap().keys().cloned());
        }
    }
    for kind in ["exchanges", "queues", "policies"] {
        let list = case.unmanaged[kind].as_array().unwrap();
        names.extend(list.iter().map(|object| object["name"].as_str().unwrap().to_owned()));
    }
    names
}

/// Returns the case without the objects of this name.
fn without(case: &Case, name: &str) -> Case {
    let mut case = case.clone();
    for spec in [&mut case.first, &mut case.second] {
        for kind in ["exchanges", "queues", "policies"] {
            spec[kind].as_object_mut().unwrap().remove(name);
        }
        without_dangling_references(spec);
    }
    for kind in ["exchanges", "queues", "policies", "bindings", "int32", "consumers"] {
        case.unmanaged[kind].as_array_mut().unwrap().retain(|object| {
            *object != name && ["name", "source", "destination"].iter().all(|key| object[key] != name)
        });
    }
    case.unmanaged["messages"].as_object_mut().unwrap().remove(name);
    case
}

/// Returns the case without each object in turn.
fn smaller(case: &Case) -> Vec<Case> {
    let mut all: Vec<Case> = names(case).iter().map(|name| without(case, name)).collect();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut one = case.clone();
        change(&mut one);
        all.push(one);
    };
    for index in 0..case.first["bindings"].as_array().unwrap().len() {
        add(&|case| drop(case.first["bindings"].as_array_mut().unwrap().remove(index)));
    }
    for index in 0..case.second["bindings"].as_array().unwrap().len() {
        add(&|case| drop(case.second["bindings"].as_array_mut().unwrap().remove(index)));
    }
    for kind in ["bindings", "consumers", "int32"] {
        for index in 0..case.unmanaged[kind].as_array().unwrap().len() {
            add(&|case| drop(case.unmanaged[kind].as_array_mut().unwrap().remove(index)));
        }
    }
    for key in ["removed", "protect", "ignore"] {
        if case.second.get(key).is_some() {
            add(&|case| drop(case.second.as_object_mut().unwrap().remove(key)));
        }
    }
    for kind in ["exchanges", "queues"] {
        for (name, object) in case.second[kind].as_object().unwrap() {
            for key in object.as_object().unwrap().keys().filter(|key| !["type", "onConflict"].contains(&key.as_str()))
            {
                add(&|case| drop(case.second[kind][name].as_object_mut().unwrap().remove(key)));
            }
        }
    }
    all
}

/// Removes objects while the same check fails.
fn shrink(player: &Player, mut case: Case, mut wrong: Wrong) -> (Case, Wrong) {
    let deadline = Instant::now() + SHRINKING;
    'smaller: loop {
        for candidate in smaller(&case) {
            if Instant::now() > deadline {
                return (case, wrong);
            }
            if let Err(again) = play(player, &candidate)
                && again.check == wrong.check
            {
                (case, wrong) = (candidate, again);
                continue 'smaller;
            }
        }
        return (case, wrong);
    }
}

/// Returns the scenario file of a case.
fn scenario(case: &Case, wrong: &Wrong) -> String {
    let json = |value: &Value| serde_json::to_string(value).unwrap();
    let messages: String = case.unmanaged["messages"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(queue, count)| format!("{queue}: {count}\n"))
        .collect();
    let mut flags = String::new();
    if !case.prune.is_empty() {
        flags = format!("--prune={}", case.prune.join(","));
    }
    if case.allow {
        flags.push_str(
            " --allow message-loss,message-drop,mass-delete,routing-gap,routing-loss,consumer-disruption,publisher-block,durability-down",
        );
    }
    format!(
        "# {}\n\n{}\n\nConsumers: {}; int32: {}\n\n```json live\n{}\n```\n\n```messages\n{messages}```\n\n```yaml spec\n{}\n```\n\n\
         ```flags\n{flags}\n```\n\n```text plan exit 2\n```\n",
        wrong.check,
        wrong.text,
        json(&case.unmanaged["consumers"]),
        json(&case.unmanaged["int32"]),
        json(&wrong.live),
        text_of(&case.second, "{vhost}"),
    )
}

/// Returns the events that occurred too rarely for a run with this number of pairs.
fn rare(counts: &Counts, pairs: usize, possible: Possible) -> Vec<String> {
    let enough = if pairs < ENOUGH_FOR_ALL { ENOUGH_OF_A_SHORT_RUN } else { ENOUGH };
    let verdicts = [
        ("verdict in place", true),
        ("verdict conflict", true),
        ("verdict drift", true),
        ("verdict unknown", true),
        // If every queue has its type in its arguments, no different value is equivalent.
        ("verdict equal", possible.untyped_queues),
        ("verdict invalid", true),
    ];
    let hazards = [
        "message-loss",
        "message-drop",
        "routing-gap",
        "routing-loss",
        "consumer-disruption",
        "publisher-block",
        "policy-shift",
        "durability-down",
        "mass-delete",
    ];
    let done = [
        "recreated queues",
        "recreated exchanges",
        "bindings between exchanges created",
        "bindings between exchanges restored",
        "unmanaged bindings kept over a recreation",
        "auto-delete sources kept",
        "blocked pairs",
    ];
    let expected = verdicts.iter().filter(|(_, possible)| *possible).map(|(what, _)| (*what).to_owned());
    let expected = expected.chain(hazards.map(|hazard| format!("hazard {hazard}"))).chain(done.map(str::to_owned));
    // The shortest runs, on additional versions, require all events except the rarest ones. The rarest hazard occurred
    // twice in 50 pairs.
    let is_short = pairs < ENOUGH_FOR_ALL;
    let expected = expected.filter(|what| !(is_short && what == "hazard publisher-block"));
    expected.filter(|what| counts.get(what).copied().unwrap_or(0) < enough).collect()
}

#[test]
fn random_pairs_converge() {
    let node = Node::shared();
    let seed = seed();
    let only = number("TOPO_PAIR").map(|pair| usize::try_from(pair).unwrap());
    let pairs = number("TOPO_PAIRS").map_or_else(|| cases(PAIRS[0], PAIRS[1]), |pairs| usize::try_from(pairs).unwrap());
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let possible = possible(node);
    let case = |pair: usize| draw(seed.wrapping_mul(1_000_003).wrapping_add(pair as u64), possible);

    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(Counts::new());
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let player = Player::new(node);
                loop {
                    let pair = only.unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
                    let is_enough = || rare(&counts.lock().unwrap(), pairs, possible).is_empty();
                    if !draws_on(pair, pairs, is_enough) || failed.lock().unwrap().is_some() {
                        break;
                    }
                    match play(&player, &case(pair)) {
                        Ok(found) => {
                            let found = found.unwrap_or_else(|| Counts::from([("no pair".to_owned(), 1)]));
                            let mut counts = counts.lock().unwrap();
                            found.into_iter().for_each(|(what, times)| *counts.entry(what).or_default() += times);
                        }
                        Err(wrong) => drop(failed.lock().unwrap().get_or_insert((pair, wrong))),
                    }
                    if only.is_some() {
                        break;
                    }
                }
            });
        }
    });
    let took = started.elapsed().as_secs();
    if let Some((pair, wrong)) = failed.into_inner().unwrap() {
        println!("pair {pair}: {}: {}\nmaking it smaller", wrong.check, wrong.text);
        let (case, wrong) = shrink(&Player::new(node), case(pair), wrong);
        panic!("TOPO_SEED={seed} TOPO_PAIR={pair}\n{}", scenario(&case, &wrong));
    }
    if only.is_some() {
        return;
    }
    let counts = counts.into_inner().unwrap();
    println!("{} pairs in {took} s", next.into_inner() - AT_ONCE);
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    let rare = rare(&counts, pairs, possible);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: too rare: {}", rare.join(", "));
}
