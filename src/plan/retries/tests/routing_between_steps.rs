//! Tests the routing of messages between the steps of a plan.

use super::{Desired, LADDER, REPUBLISH, plan_for, work};
use crate::model::{Binding, Destination, Topology};
use crate::plan::simulate::run;
use std::collections::BTreeSet;

/// After every step, each routing key routes to exactly one tier or dead-letter queue.
#[test]
fn every_key_has_one_destination_between_steps() {
    for (before, after) in [
        (LADDER, "retry: {delays: [1s, 1m, 1h]}"),
        (LADDER, "retry: {delays: [1s]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [1s, 1m]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [30s]}"),
    ] {
        let (live, desired) = (work(before, "").topology, work(after, ""));
        each_moment(&live, &desired, &mut |between, done| {
            assert_one_destination(between, before, &format!("{before} → {after} after {done} steps"));
        });
    }
}

/// A change can be interrupted after any step, and the spec can then change again.
#[test]
fn every_key_has_one_destination_after_an_interrupted_change() {
    let specs = |strategy: &str| {
        [["5s", "30s"].as_slice(), &["1s", "1m"], &["2s", "1m", "1h"], &["7s"]]
            .map(|delays| format!("retry: {{strategy: {strategy}, delays: [{}]}}", delays.join(", ")))
    };
    let mut checked = 0;
    for strategy in ["ladder", "republish"] {
        let specs = specs(strategy);
        for (first, second, third) in specs.iter().flat_map(|first| {
            let all = specs.iter();
            all.flat_map(|second| specs.iter().map(move |third| (second, third))).map(move |(it, too)| (first, it, too))
        }) {
            let (live, desired, third_spec) = (work(first, "").topology, work(second, ""), work(third, ""));
            each_moment(&live, &desired, &mut |interrupted, done| {
                each_moment(interrupted, &third_spec, &mut |between, then| {
                    let case = format!("{first} → {second} after {done} steps → {third} after {then} steps");
                    assert_one_destination(between, if strategy == "ladder" { LADDER } else { REPUBLISH }, &case);
                    checked += 1;
                });
            });
        }
    }
    assert!(checked > 1000, "{checked} moments");
}

/// Calls `check` with the topology before, between and after the steps of a plan, and with the number of completed
/// steps.
fn each_moment(live: &Topology, desired: &Desired, check: &mut impl FnMut(&Topology, usize)) {
    let plan = plan_for(live, desired, &[]);
    assert_eq!(plan.blocks, []);
    for done in 0..=plan.steps.len() {
        check(&run(live, &plan.steps[..done]).unwrap(), done);
    }
}

/// Asserts that each routing key routes to one queue.
fn assert_one_destination(live: &Topology, strategy: &str, case: &str) {
    // A worker that republishes uses a number as the key; the keys of a ladder are different.
    let keys: &[&str] = if strategy == REPUBLISH {
        &["1", "2", "3"]
    } else {
        &["1", "work.retry.1", "work.retry.2", "work.retry.9", "order.created"]
    };
    for key in keys {
        let reached = reached_queues(live, "work.retry", key);
        assert_eq!(reached.len(), 1, "{case}: {key} → {reached:?}");
    }
}

/// Returns the queues that a message with this routing key reaches. In the chain of alternate exchanges, only the
/// first exchange with a matching binding routes the message.
fn reached_queues(live: &Topology, exchange: &str, key: &str) -> BTreeSet<String> {
    let kind = live.exchanges[&exchange.into()].kind.as_str();
    let matches = |binding: &&Binding| match kind {
        "direct" => binding.routing_key == key,
        "topic" => binding.routing_key == "#" || key.starts_with("work.retry."),
        _ => true,
    };
    let bindings: Vec<&Binding> =
        live.bindings.iter().filter(|binding| binding.source.as_str() == exchange).filter(matches).collect();
    if bindings.is_empty() {
        let next = live.exchanges[&exchange.into()].alternate_exchange();
        return next.map(|next| reached_queues(live, next, key)).unwrap_or_default();
    }
    let onward = |binding: &&Binding| match &binding.destination {
        Destination::Queue(name) => BTreeSet::from([name.to_string()]),
        Destination::Exchange(name) => reached_queues(live, name.as_str(), key),
    };
    bindings.iter().flat_map(onward).collect()
}

/// A policy changes the strategy without a conflict. After every step, a first failure reaches a tier, or the
/// dead-letter queue if the effective strategy dead-letters first failures. An existing binding of the other
/// strategy must not make a first failure skip the tiers.
#[test]
fn strategies_are_switched_atomically() {
    let of = |retry: &str| {
        super::desired(&format!(
            "queues: {{work: {{type: classic, {retry}, deadLetter: {{queue: dead, wiring: policy}}}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}}}\n"
        ))
    };
    for (before, after) in [(LADDER, REPUBLISH), (REPUBLISH, LADDER)] {
        each_moment(&of(before).topology, &of(after), &mut |live, done| {
            let policy = live.policies.values().next().unwrap();
            let wired = policy.definition["dead-letter-exchange"].as_text().unwrap();
            let expected = if wired == "work.dlx" { "work.retry.1.5s" } else { "dead" };
            // The guard exchange routes a rejected message to its alternate exchange.
            let entry = if wired == "work.dlx" { "work.retry" } else { wired };
            let reached = reached_queues(live, entry, "order.created");
            assert_eq!(reached, BTreeSet::from([expected.to_owned()]), "{before} → {after} after {done} steps");
        });
    }
}
