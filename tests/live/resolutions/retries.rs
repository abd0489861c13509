//! Tests, for each strategy, that a conflict because of a different strategy can be resolved by keeping the current
//! retries.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::apply_resolution::{apply_resolution_to, resolutions_of};
use crate::support::{Node, Topo};

/// Returns the retry settings of a queue as the keys of its entry.
fn strategies(node: &Node) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut all: BTreeMap<_, _> = [
        ("none", vec!["retry: none"]),
        ("ladder", vec!["retry: {delays: [5s, 30s]}"]),
        ("republish", vec!["retry: {strategy: republish, delays: [1s, 1m30s]}"]),
        ("three", vec!["maxRetries: 3"]),
        ("five", vec!["retry: {strategy: redeliver}", "maxRetries: 5"]),
    ]
    .into();
    if node.at_least(4, 3) {
        all.insert("delayed", vec!["maxRetries: 3", "retry: {strategy: delayed, delays: [1s, 2s]}"]);
        all.insert("slower", vec!["retry: {strategy: delayed, delays: [2s, 4s, 6s]}"]);
    }
    all
}

fn spec(vhost: &str, queues: &BTreeMap<String, (Vec<&str>, &str)>) -> String {
    let mut text = format!("version: 1\nvhost: {vhost}\nqueues:\n");
    for (name, (keys, end)) in queues {
        text += &format!("  {name}:\n    type: quorum\n    deadLetter: {end}\n");
        keys.iter().for_each(|key| text += &format!("    {key}\n"));
    }
    text + "deadLetterQueues:\n  dead:\n    type: classic\n  other:\n    type: classic\n"
}

#[test]
fn current_retries_can_be_kept() {
    let node = Node::shared();
    let vhost = node.vhost("retries-kept");
    let strategies = strategies(node);
    let pairs = || strategies.keys().flat_map(|old| strategies.keys().map(move |new| (*old, *new)));
    let queues = |pick: fn((&'static str, &'static str)) -> (&'static str, &'static str)| {
        let queue = |(old, new)| {
            let (strategy, end) = pick((old, new));
            (format!("{old}-{new}"), (strategies[strategy].clone(), end))
        };
        pairs().filter(|(old, new)| old != new).map(queue).collect()
    };
    let topo = Topo::new(&vhost).spec(&spec(vhost.name(), &queues(|(old, _)| (old, "dead"))));
    topo.run(["apply", "-y"]).expect_code(0);
    // Some queues also use a different dead-letter queue.
    let changed = queues(|(old, new)| (new, if old < new { "dead" } else { "other" }));
    let mut kept = spec(vhost.name(), &changed);
    topo.rewrite(&kept);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let changes = plan["vhosts"][0]["changes"].as_array().unwrap();
    let conflicts: Vec<&Value> = changes.iter().filter(|change| change["kind"] == "conflict").collect();
    for conflict in &conflicts {
        let address = conflict["address"].as_str().unwrap();
        let name = address.rsplit('/').next().unwrap();
        let keep = resolutions_of(&plan, address, "keep")[0];
        assert_eq!(keep["applicability"], "yes", "{address}: {keep:#}");
        kept = apply_resolution_to(&kept, ("queues", name), keep);
    }
    // From `none` to `republish`, the queue itself does not change.
    assert!(conflicts.len() > strategies.len(), "{conflicts:#?}");
    topo.rewrite(&kept);
    let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
    let of_conflicts = |change: &&Value| conflicts.iter().any(|conflict| conflict["address"] == change["address"]);
    let left: Vec<&Value> = plan["vhosts"][0]["changes"].as_array().unwrap().iter().filter(of_conflicts).collect();
    assert!(left.is_empty() && plan["summary"]["conflict"] == 0, "{kept}\n{left:#?}");
}
