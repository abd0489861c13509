//! What a message meets while a plan is carried out.

use super::{Desired, LADDER, REPUBLISH, planned, work};
use crate::model::{Binding, Destination, Topology};
use crate::plan::simulate::run;
use std::collections::BTreeSet;

/// The moment: whatever step was the last, each key leads to one tier, or else to the dead letters.
#[test]
fn no_message_goes_two_ways_or_none() {
    for (before, after) in [
        (LADDER, "retry: {delays: [1s, 1m, 1h]}"),
        (LADDER, "retry: {delays: [1s]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [1s, 1m]}"),
        (REPUBLISH, "retry: {strategy: republish, delays: [30s]}"),
    ] {
        let (live, desired) = (work(before, "").topology, work(after, ""));
        each_moment(&live, &desired, &mut |between, done| {
            one_way(between, before, &format!("{before} → {after} after {done} steps"));
        });
    }
}

/// A change that was cut off at any step, and then the spec was changed once more.
#[test]
fn nor_when_a_change_is_cut_off_and_another_follows() {
    let specs = |strategy: &str| {
        [["5s", "30s"].as_slice(), &["1s", "1m"], &["2s", "1m", "1h"], &["7s"]]
            .map(|delays| format!("retry: {{strategy: {strategy}, delays: [{}]}}", delays.join(", ")))
    };
    let mut played = 0;
    for strategy in ["ladder", "republish"] {
        let specs = specs(strategy);
        for (first, second, third) in specs.iter().flat_map(|first| {
            let all = specs.iter();
            all.flat_map(|second| specs.iter().map(move |third| (second, third))).map(move |(it, too)| (first, it, too))
        }) {
            let (live, desired, at_last) = (work(first, "").topology, work(second, ""), work(third, ""));
            each_moment(&live, &desired, &mut |cut_off, done| {
                each_moment(cut_off, &at_last, &mut |between, then| {
                    let story = format!("{first} → {second} after {done} steps → {third} after {then} steps");
                    one_way(between, if strategy == "ladder" { LADDER } else { REPUBLISH }, &story);
                    played += 1;
                });
            });
        }
    }
    assert!(played > 1000, "{played} moments");
}

/// What is live before, between and after the steps of a plan, with the number of steps done.
fn each_moment(live: &Topology, desired: &Desired, look: &mut impl FnMut(&Topology, usize)) {
    let plan = planned(live, desired, &[]);
    assert_eq!(plan.blocks, []);
    for done in 0..=plan.steps.len() {
        look(&run(live, &plan.steps[..done]).unwrap(), done);
    }
}

/// Each key leads to one queue.
fn one_way(live: &Topology, strategy: &str, story: &str) {
    // Who republishes has a number as the key, who climbs has none of those.
    let keys: &[&str] = if strategy == REPUBLISH {
        &["1", "2", "3"]
    } else {
        &["1", "work.retry.1", "work.retry.2", "work.retry.9", "order.created"]
    };
    for key in keys {
        let ends = ends(live, "work.retry", key);
        assert_eq!(ends.len(), 1, "{story}: {key} → {ends:?}");
    }
}

/// Where a message with that key comes out: the first exchange that knows it takes it.
fn ends(live: &Topology, exchange: &str, key: &str) -> BTreeSet<String> {
    let kind = live.exchanges[&exchange.into()].kind.as_str();
    let takes = |binding: &&Binding| match kind {
        "direct" => binding.routing_key == key,
        "topic" => binding.routing_key == "#" || key.starts_with("work.retry."),
        _ => true,
    };
    let bindings: Vec<&Binding> =
        live.bindings.iter().filter(|binding| binding.source.as_str() == exchange).filter(takes).collect();
    if bindings.is_empty() {
        let next = live.exchanges[&exchange.into()].alternate_exchange();
        return next.map(|next| ends(live, next, key)).unwrap_or_default();
    }
    let onward = |binding: &&Binding| match &binding.destination {
        Destination::Queue(name) => BTreeSet::from([name.to_string()]),
        Destination::Exchange(name) => ends(live, name.as_str(), key),
    };
    bindings.iter().flat_map(onward).collect()
}

/// Another strategy by a policy, which is no conflict: a first failure goes to a tier, or to the dead letters where the
/// strategy that is in force says so, and never past the tiers because the other's last way is there already.
#[test]
fn a_strategy_changes_at_one_moment() {
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
            // By the guard, a rejection goes on to its alternate.
            let entry = if wired == "work.dlx" { "work.retry" } else { wired };
            let met = ends(live, entry, "order.created");
            assert_eq!(met, BTreeSet::from([expected.to_owned()]), "{before} → {after} after {done} steps");
        });
    }
}
