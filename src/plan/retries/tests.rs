//! What blocks, and above all what does not.

use super::super::{Activity, Block, Situation, Wanted, plan_vhost};
use super::Options;
use crate::behaviour::Dialect;
use crate::expand::expand;
use crate::model::{Arguments, Binding, Destination, Exchange, Glob, ObjectId, Queue, Topology, Vhost};
use crate::spec::{SourceFile, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};

const LADDER: &str = "retry: {delays: [5s, 30s]}";
const REPUBLISH: &str = "retry: {strategy: republish, delays: [5s, 30s]}";

fn dialect() -> Dialect {
    Dialect::of("4.0.5".parse().unwrap())
}

fn wanted(text: &str) -> Wanted {
    let text = format!("version: 1\nvhost: shop\n{text}");
    let file = SourceFile { name: "topology.yaml".to_owned(), text };
    let specs = parse(&[file], &Variables::new()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let expansion = expand(&specs[0], &dialect()).unwrap_or_else(|wrong| panic!("{wrong}"));
    Wanted { topology: expansion.topology, scope: expansion.scope, sources: Vec::new() }
}

/// A queue `work` with these keys, and what else the spec says.
fn work(keys: &str, rest: &str) -> Wanted {
    wanted(&format!(
        "defaults: {{queue: {{type: quorum}}}}\nqueues:\n  work: {{{keys}, deadLetter: dead}}\n\
         deadLetterQueues: {{dead: {{}}}}\n{rest}"
    ))
}

fn planned(live: &Topology, wanted: &Wanted, targets: &[&str]) -> Vec<Block> {
    let (activity, keys, untouchable, operator) =
        (Activity::default(), BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    let live = Topology { settings: Some(Vhost::default()), ..live.clone() };
    let situation = Situation {
        current: &live,
        wanted,
        activity: &activity,
        properties_keys: &keys,
        untouchable: &untouchable,
        operator_policies: &operator,
        dialect: &dialect(),
    };
    let targets = targets.iter().map(|target| Glob::new(*target)).collect();
    plan_vhost(&situation, &Options { targets, ..Options::default() }).blocks
}

/// What is said of live retries.
fn said(live: &Topology, wanted: &Wanted) -> String {
    let blocks = planned(live, wanted, &[]);
    let texts = blocks.into_iter().map(|block| block.text).filter(|text| text.contains("has live retries"));
    texts.map(|text| text + "\n").collect()
}

fn exchange(kind: &str) -> Exchange {
    let arguments = Arguments::new();
    Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments }
}

fn bind(live: &mut Topology, source: &str, routing_key: &str, destination: Destination) {
    let (routing_key, arguments) = (routing_key.to_owned(), Arguments::new());
    live.bindings.insert(Binding { source: source.into(), destination, routing_key, arguments });
}

fn to_queue(name: &str) -> Destination {
    Destination::Queue(name.into())
}

#[test]
fn every_change_of_live_retries_is_told() {
    for (before, after, expected) in [
        (
            LADDER,
            "retry: {delays: [5s, 30s, 5m]}",
            "queue work has live retries that the spec changes: 1 binding (work.retry ─ work.retry.2 → dead.dlx); topo \
             cannot retire tiers yet\n",
        ),
        (
            LADDER,
            "retry: {delays: [5s]}",
            "queue work has live retries that the spec changes: 1 tier queue (work.retry.2.30s), 2 bindings (work.retry ─ \
             work.retry.1 → work.retry.2.30s, work.retry ─ work.retry.2 → dead.dlx); topo cannot retire tiers yet\n",
        ),
        (
            REPUBLISH,
            "retry: {strategy: republish, delays: [5s, 1m]}",
            "queue work has live retries that the spec changes: 1 tier queue (work.retry.2.30s), 1 binding (work.retry ─ \
             2 → work.retry.2.30s); topo cannot retire tiers yet\n",
        ),
        (
            LADDER,
            "retry: none",
            "queue work has live retries that the spec changes: 2 tier queues (work.retry.1.5s, work.retry.2.30s), 4 \
             exchanges (work.dlx, work.retry, work.retry.first, and 1 more), 7 bindings (work.dlx ─ \
             {x-last-death-reason: delivery_limit, x-match: all-with-x} → dead.dlx, work.dlx ─ {x-last-death-reason: \
             expired, x-match: all-with-x} → dead.dlx, work.dlx ─ {x-last-death-reason: maxlen, x-match: all-with-x} → \
             dead.dlx, and 4 more); topo cannot retire tiers yet\n",
        ),
        (
            LADDER,
            REPUBLISH,
            "queue work has live retries that the spec changes: 2 exchanges (work.dlx, work.retry.first), 6 bindings \
             (work.dlx ─ {x-last-death-reason: delivery_limit, x-match: all-with-x} → dead.dlx, work.dlx ─ \
             {x-last-death-reason: expired, x-match: all-with-x} → dead.dlx, work.dlx ─ {x-last-death-reason: maxlen, \
             x-match: all-with-x} → dead.dlx, and 3 more); topo cannot retire tiers yet\n",
        ),
        (
            REPUBLISH,
            "maxRetries: 3",
            "queue work has live retries that the spec changes: 2 tier queues (work.retry.1.5s, work.retry.2.30s), 2 \
             exchanges (work.retry, work.return), 3 bindings (work.retry ─ 1 → work.retry.1.5s, work.retry ─ 2 → \
             work.retry.2.30s, work.return ─ \"\" → work); topo cannot retire tiers yet\n",
        ),
    ] {
        assert_eq!(said(&work(before, "").topology, &work(after, "")), expected, "{before} → {after}");
    }
}

#[test]
fn another_end_is_a_change() {
    let text = |end: &str| {
        format!(
            "queues: {{work: {{type: quorum, {LADDER}, deadLetter: {end}}}}}\n\
             deadLetterQueues: {{dead: {{type: classic}}, other: {{type: classic}}}}\n"
        )
    };
    let told = said(&wanted(&text("dead")).topology, &wanted(&text("other")));
    assert!(told.contains(": 4 bindings (work.dlx ─ "), "{told}");
}

/// An apply can be cut off anywhere: whatever is there of what is wanted stops nothing.
#[test]
fn a_part_of_what_is_wanted_is_no_change() {
    for keys in [LADDER, REPUBLISH, "maxRetries: 2", "retry: none"] {
        let wanted = work(keys, "");
        let whole = &wanted.topology;
        assert_eq!(planned(whole, &wanted, &[]), [], "{keys}");
        let names = |topology: &Topology| -> Vec<ObjectId> {
            let queues = topology.queues.keys().cloned().map(ObjectId::Queue);
            let exchanges = topology.exchanges.keys().cloned().map(ObjectId::Exchange);
            exchanges.chain(queues).chain(topology.bindings.iter().cloned().map(ObjectId::Binding)).collect()
        };
        let all = names(whole);
        let keep = |kept: &BTreeSet<&ObjectId>| {
            let mut part = whole.clone();
            part.exchanges.retain(|name, _| kept.contains(&ObjectId::Exchange(name.clone())));
            part.queues.retain(|name, _| kept.contains(&ObjectId::Queue(name.clone())));
            let ends = (part.exchanges.clone(), part.queues.clone());
            part.bindings.retain(|binding| {
                let has_end = match &binding.destination {
                    Destination::Exchange(name) => ends.0.contains_key(name),
                    Destination::Queue(name) => ends.1.contains_key(name),
                };
                has_end && ends.0.contains_key(&binding.source) && kept.contains(&ObjectId::Binding(binding.clone()))
            });
            part
        };
        for cut in 0..all.len() {
            let until: BTreeSet<&ObjectId> = all.iter().take(cut).collect();
            let without: BTreeSet<&ObjectId> = all.iter().filter(|id| **id != all[cut]).collect();
            for part in [keep(&until), keep(&without)] {
                assert_eq!(planned(&part, &wanted, &[]), [], "{keys} without {}", all[cut]);
            }
        }
    }
}

/// What others call by such names, or hang on what is generated.
#[test]
fn what_is_no_part_of_retries_stops_nothing() {
    type Others = fn(&mut Topology);
    let cases: [(&str, Others); 7] = [
        ("dead letters by hand", |live| {
            live.exchanges.insert("work.dlx".into(), exchange("fanout"));
            bind(live, "work.dlx", "", to_queue("dead"));
        }),
        ("retries by hand, back through the default exchange", |live| {
            live.exchanges.insert("work.retry".into(), exchange("direct"));
            for (name, back) in [("work.retry.1.5s", ""), ("work.retry.2.30s", "work.back")] {
                let arguments: Arguments = [("x-dead-letter-exchange".to_owned(), back.into())].into();
                let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments };
                live.queues.insert(name.into(), queue);
                bind(live, "work.retry", "1", to_queue(name));
            }
        }),
        ("a shop's returns", |live| {
            live.exchanges.insert("work.return".into(), exchange("fanout"));
            bind(live, "work.return", "", to_queue("work"));
        }),
        ("headers by hand", |live| {
            live.exchanges.insert("work.dlx".into(), exchange("headers"));
            live.exchanges.insert("work.retry.first".into(), exchange("topic"));
        }),
        ("retries of another queue", |live| {
            let text = "queues: {work.too: {type: quorum, retry: {delays: [7s]}, deadLetter: dead}}\n\
                        deadLetterQueues: {dead: {type: quorum}}\n";
            let other = wanted(text).topology;
            live.queues.extend(other.queues);
            live.exchanges.extend(other.exchanges);
            live.bindings.extend(other.bindings);
        }),
        ("a queue that is called like a tier", |live| {
            let queue = Queue { durable: true, auto_delete: false, exclusive: false, arguments: Arguments::new() };
            live.queues.insert("work.retry.9.1h".into(), queue);
        }),
        ("a queue whose dead letters come with a key of their own", |live| {
            live.exchanges.insert("work.retry".into(), exchange("direct"));
            live.exchanges.insert("elsewhere".into(), exchange("fanout"));
            bind(live, "work.retry", "work.retry.9", Destination::Exchange("elsewhere".into()));
        }),
    ];
    for (what, others) in cases {
        for keys in ["retry: none", "maxRetries: 2"] {
            let wanted = work(keys, "");
            let mut live = wanted.topology.clone();
            others(&mut live);
            assert_eq!(said(&live, &wanted), "", "{what}, {keys}");
        }
    }
    for keys in [LADDER, REPUBLISH] {
        let wanted = work(keys, "");
        let mut live = wanted.topology.clone();
        // Taps and ways in.
        for tap in ["work.retry", "work.return"] {
            live.exchanges.insert("parked".into(), exchange("fanout"));
            bind(&mut live, tap, "work.retry.1", to_queue("dead"));
            bind(&mut live, "parked", "", Destination::Exchange(tap.into()));
            bind(&mut live, "parked", "", to_queue("work.retry.1.5s"));
        }
        assert_eq!(said(&live, &wanted), "", "{keys}");
    }
}

#[test]
fn what_the_spec_says_of_it_counts() {
    let live = work(LADDER, "").topology;
    let fewer = "retry: {delays: [5s]}";
    assert_ne!(said(&live, &work(fewer, "")), "");
    // Somebody else's queue has somebody else's retries.
    let external = wanted("queues: {work: {external: true}}\n");
    assert_eq!(said(&live, &external), "");
    assert_eq!(said(&live, &work("retry: none", "ignore: [\"work.*\"]\n")), "");
    // To delete them while messages may be in them is not made safe by a word in the spec.
    let removed = "removed: {queues: [work.retry.2.30s]}\n";
    assert_ne!(said(&live, &work(fewer, removed)), "");
}

#[test]
fn a_target_that_leaves_the_retries_alone_is_not_stopped() {
    let live = work(LADDER, "").topology;
    let grown = work("retry: {delays: [5s, 30s, 5m]}", "exchanges: {orders: {type: topic}}\n");
    for (target, is_stopped) in [
        ("exchanges/shop/orders", false),
        ("queues/shop/work", true),
        ("queues/shop/work.retry.3.5m", true),
        // What is bound to it comes with it: the key after the last.
        ("exchanges/shop/dead.dlx", true),
    ] {
        assert_eq!(!planned(&live, &grown, &[target]).is_empty(), is_stopped, "{target}");
    }
}
