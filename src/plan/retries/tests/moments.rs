//! What a message meets while a plan is carried out.

use super::{LADDER, REPUBLISH, planned, work};
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
        let (live, wanted) = (work(before, "").topology, work(after, ""));
        let plan = planned(&live, &wanted, &[]);
        for done in 0..=plan.steps.len() {
            let between = run(&live, &plan.steps[..done]).unwrap();
            for key in ["1", "2", "3", "work.retry.1", "work.retry.2", "work.retry.9", "order.created"] {
                // Who republishes has a number as the key, who climbs has none of those.
                if before == REPUBLISH && key.len() > 1 || before == LADDER && key.len() == 1 && key != "1" {
                    continue;
                }
                let ends = ends(&between, "work.retry", key);
                assert_eq!(ends.len(), 1, "{before} → {after} after {done} steps: {key} → {ends:?}");
            }
        }
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
