//! Tests graphs of specs. `tests/cli/graph.rs` tests graphs of plans, because the binary creates the plans.

use super::*;
use crate::expand::{CreatedFor, Origin, expand};
use crate::model::BrokerVersion;
use crate::plan::Source;
use crate::spec::{SourceFile, Variables, parse};
use std::collections::BTreeMap;

fn draw(yaml: &str, options: &Options) -> Option<VhostGraph> {
    let file = SourceFile { name: "t.yaml".to_owned(), text: format!("version: 1\nvhost: v\n{yaml}") };
    let spec = parse(&[file], &Variables::new()).unwrap().vhosts.remove(0);
    let profile = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    let expansion = expand(&spec, &profile).unwrap();
    let source = |(id, origin): (ObjectId, Origin)| {
        let part_of = match (&id, origin.because) {
            (ObjectId::Queue(name), _) => spec.dead_letter_queues.contains_key(name).then(|| name.clone()),
            (_, CreatedFor::DeadLetterExchange(queue)) => Some(queue),
            (_, _) => None,
        };
        let Origin { file, line, column, places, .. } = origin;
        (id, Source { file, line, column, places, part_of })
    };
    let sources = expansion.origins.into_iter().map(source).collect();
    of_spec(&Desired { topology: expansion.topology, scope: expansion.scope, sources }, &profile, options)
}

fn graph(yaml: &str) -> VhostGraph {
    draw(yaml, &Options::default()).unwrap()
}

/// Formats each arrow as `orders → work: binding a, b`.
fn arrows(graph: &VhostGraph) -> Vec<String> {
    let name = |index: usize| graph.nodes[index].name.as_str();
    let text = |arrow: &Arrow| {
        let labels: Vec<&str> = arrow.labels.iter().map(|label| label.text.as_str()).collect();
        let text = format!("{} → {}: {} {}", name(arrow.from), name(arrow.to), arrow.kind.as_str(), labels.join(", "));
        text.trim_end().to_owned()
    };
    graph.arrows.iter().map(text).collect()
}

fn node<'a>(graph: &'a VhostGraph, name: &str) -> &'a Node {
    graph.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("{name}: {graph:?}"))
}

fn tiers(node: &Node) -> Vec<&str> {
    node.retries.iter().flat_map(|retries| retries.tiers.iter().map(|tier| tier.delay.as_str())).collect()
}

#[test]
fn manual_retries_are_drawn_as_retries() {
    let queues = "exchanges: {in: {type: topic}, again: {type: direct}, dead: {type: fanout}}\nqueues:
  work: {type: classic, deadLetter: {exchange: again, routingKey: w}, bindings: [{exchange: in, routingKey: w}]}
  wait: {type: classic, messageTtl: 5s, deadLetter: {exchange: in, routingKey: w}, bindings: [{exchange: again, routingKey: w}]}
  old: {type: classic, messageTtl: 1d, deadLetter: {exchange: dead}, bindings: [{exchange: in, routingKey: o}]}
  gone: {type: classic, bindings: [{exchange: dead}]}\n";
    let found = arrows(&draw(queues, &Options { all: true, focus: None }).unwrap());
    let not_bindings: Vec<&String> = found.iter().filter(|arrow| !arrow.contains("binding")).collect();
    assert_eq!(
        not_bindings,
        ["old → dead: dead-lettering", "wait → in: retry (round trip) w", "work → again: retry (round trip) w"]
    );
    // If some rejected messages go to another queue, the arrow is a dead-letter arrow.
    let both = queues.replace("[{exchange: dead}]", "[{exchange: dead}, {exchange: again, routingKey: w}]");
    let found = arrows(&draw(&both, &Options { all: true, focus: None }).unwrap());
    assert!(found.contains(&"work → again: dead-lettering w".to_owned()), "{found:?}");
    assert!(found.contains(&"wait → in: retry (round trip) w".to_owned()), "{found:?}");
}

const DEAD: &str = "deadLetterQueues: {dead: {type: quorum}}\n";

#[test]
fn ladder_is_part_of_its_queue() {
    let ladder = "exchanges: {in: {type: topic}}\nqueues:\n  q: {type: quorum, retry: {delays: [5s, 30s]}, deadLetter: dead, \
                  bindings: [{exchange: in, routingKey: b}, {exchange: in, routingKey: a}]}\n";
    let graph = graph(&format!("{ladder}{DEAD}"));
    assert_eq!(arrows(&graph), ["in → q: binding a, b", "q → dead: dead-lettering"]);
    let q = node(&graph, "q");
    assert_eq!((tiers(q), q.kind), (vec!["5s", "30s"], Kind::Queue));
    assert_eq!(node(&graph, "dead").words, "quorum dead-letter queue");
    let all = draw(&format!("{ladder}{DEAD}"), &Options { all: true, focus: None }).unwrap();
    assert_eq!(all.nodes.len(), 13, "{all:?}");
    assert_eq!((node(&all, "q.retry.1.5s").kind, node(&all, "q").retries.clone()), (Kind::Tier, None));
    let found = arrows(&all);
    for arrow in [
        "q → q.dlx: retry (round trip)",
        "q.retry → q.retry.switch: alternate exchange",
        "q.retry.1.5s → q.return: retry (round trip)",
        "q.return → q: retry (round trip)",
        "dead.dlx → dead: binding",
        "q.retry.over → dead.dlx: dead-lettering q.retry.*",
    ] {
        assert!(found.iter().any(|it| it == arrow), "{arrow}: {found:#?}");
    }
}

#[test]
fn each_strategy_is_drawn() {
    let of = |keys: &str| {
        let graph = graph(&format!("queues: {{q: {{{keys}, deadLetter: dead}}}}\n{DEAD}"));
        assert_eq!(arrows(&graph), ["q → dead: dead-lettering"], "{keys}");
        let q = node(&graph, "q").clone();
        let out = q.retries.as_ref().map(|retries| retries.out.clone()).unwrap_or_default();
        format!("{} {out} {}", q.notes.join(" "), tiers(&q).join(" ")).trim().to_owned()
    };
    assert_eq!(of("type: quorum, maxRetries: 2"), "2 immediate retries");
    assert_eq!(of("type: classic, maxRetries: 1, retry: {strategy: republish}"), "1 retry at the back of the queue");
    assert_eq!(of("type: classic, retry: {strategy: republish, delays: [1s, 2s]}"), "republished 1s 2s");
    assert_eq!(of("type: quorum, retry: {strategy: delayed, delays: [1s, 2s]}"), "2 retries: 1s → 2s");
    assert_eq!(of("type: quorum, retry: {delays: [1s]}, maxRetries: 3"), "rejected 1s 1s 1s");
}

#[test]
fn predeclared_exchanges_are_drawn_if_used() {
    let plain = graph("queues: {q: {type: classic}}\n");
    assert_eq!(plain.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["q"]);
    let used = graph(
        "queues:\n  q: {type: classic, deadLetter: {exchange: ''}, bindings: [{exchange: amq.topic, routingKey: a}]}\n  \
         r: {type: classic, deadLetter: {exchange: '', routingKey: q}}\n  s: {type: classic, deadLetter: {exchange: '', routingKey: s}}\n",
    );
    let expected = ["amq.topic → q: binding a", "q → default exchange: dead-lettering", "r → q: dead-lettering"];
    let mut found = arrows(&used);
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(node(&used, "amq.topic").words, "predeclared topic exchange");
    assert_eq!(node(&used, "s").notes, ["dead-lettered messages return"]);
}

#[test]
fn policies_set_dead_letter_and_alternate_exchanges() {
    let graph = graph(
        "exchanges: {in: {type: topic}, other: {type: fanout}, theirs: {external: true}}\nqueues: {q: {type: classic}}\npolicies:\n  \
         p: {pattern: '^q$', applyTo: queues, definition: {deadLetterExchange: theirs, messageTtl: 1m}}\n  \
         x: {pattern: '^in$', applyTo: exchanges, definition: {alternateExchange: other}}\n",
    );
    assert_eq!(arrows(&graph), ["in → other: alternate exchange", "q → theirs: dead-lettering"]);
    assert_eq!(node(&graph, "q").notes, ["ttl 1m"]);
    assert_eq!(node(&graph, "theirs").words, "external exchange");
}

#[test]
fn dead_letter_queue_that_dead_letters_to_itself_has_a_note() {
    let all = "policies: {all: {pattern: '.*', applyTo: queues, definition: {deadLetterExchange: dead.dlx}}}\n";
    let graph = graph(&format!("queues: {{q: {{type: classic}}}}\n{DEAD}{all}"));
    assert_eq!(arrows(&graph), ["q → dead: dead-lettering"]);
    assert_eq!(node(&graph, "dead").notes, ["dead-lettered messages return"]);
}

#[test]
fn dead_letter_exchange_with_a_second_destination_is_drawn() {
    let graph = graph(&format!(
        "queues:\n  q: {{type: classic, deadLetter: dead}}\n  copy: {{type: classic, bindings: [{{exchange: dead.dlx}}]}}\n{DEAD}"
    ));
    let expected = ["dead.dlx → copy: binding", "dead.dlx → dead: binding", "q → dead.dlx: dead-lettering"];
    assert_eq!(arrows(&graph), expected);
}

#[test]
fn joined_mark_is_the_common_mark_or_changed() {
    let (created, deleted, conflict) = (Some(Mark::Created), Some(Mark::Deleted), Some(Mark::Conflict));
    for (marks, expected) in [
        (vec![], None),
        (vec![created, created], created),
        (vec![created, None], Some(Mark::Changed)),
        (vec![created, deleted, created], Some(Mark::Changed)),
        (vec![None, conflict, deleted], conflict),
        (vec![None, None], None),
    ] {
        assert_eq!(Mark::join(marks.clone()), expected, "{marks:?}");
    }
}

/// Returns the names of the boxes in each connected part.
fn parts(graph: &VhostGraph) -> Vec<Vec<&str>> {
    let mut part: Vec<usize> = (0..graph.nodes.len()).collect();
    for _ in 0..graph.nodes.len() {
        for arrow in &graph.arrows {
            let least = part[arrow.from].min(part[arrow.to]);
            (part[arrow.from], part[arrow.to]) = (least, least);
        }
    }
    let mut parts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (node, part) in graph.nodes.iter().zip(part) {
        parts.entry(part).or_default().push(&node.name);
    }
    parts.into_values().collect()
}

/// Draws two exchanges with queues that are too different to be stacked, and that share a dead-letter queue.
#[test]
fn large_graph_is_drawn_in_groups() {
    let mut yaml = "exchanges: {a: {type: topic}, b: {type: topic}}\nqueues:\n".to_owned();
    for number in 0..120 {
        let from = if number % 2 == 0 { "a" } else { "b" };
        yaml += &format!(
            "  q{number:03}: {{type: classic, messageTtl: {}ms, deadLetter: dead, bindings: [{{exchange: {from}, routingKey: k}}]}}\n",
            number + 1
        );
    }
    let graph = graph(&format!("{yaml}{DEAD}"));
    let parts = parts(&graph);
    let shape = |part: &Vec<&str>| (part[0].to_owned(), part.len());
    // Each part has twenty queues, an exchange and a dead-letter queue.
    let (a, b) = (("a".to_owned(), 22), ("b".to_owned(), 22));
    assert_eq!(parts.iter().map(shape).collect::<Vec<_>>(), [a.clone(), a.clone(), a, b.clone(), b.clone(), b]);
    assert_eq!(parts[0][1..4], ["dead", "q000", "q002"], "{parts:?}");
    // Each object has exactly one box that is not a copy.
    let copies = |name: &str| graph.nodes.iter().filter(|node| node.name == name && node.is_copy).count();
    assert_eq!((copies("a"), copies("b"), copies("dead"), graph.arrows.len()), (2, 2, 5, 240));
}

#[test]
fn source_of_another_group_is_copied_next_to_the_queue() {
    let mut yaml =
        "exchanges: {bill: {type: topic}, shop.commands: {type: direct}, shop.events: {type: topic}}\nqueues:\n"
            .to_owned();
    for number in 0..20 {
        for (team, own) in [("bill", "bill"), ("shop", "shop.commands")] {
            yaml += &format!(
                "  {team}.q{number:02}: {{type: classic, messageTtl: {}ms, bindings: [{{exchange: {own}, routingKey: k}}",
                number + 1
            );
            let foreign = match (team, number) {
                ("bill", 3 | 5) => ", {exchange: shop.events, routingKey: far}",
                ("shop", 4) => ", {exchange: shop.events, routingKey: near}",
                _ => "",
            };
            yaml += &format!("{foreign}]}}\n");
        }
    }
    let graph = graph(&yaml);
    let parts = parts(&graph);
    let heads: Vec<&[&str]> = parts.iter().map(|part| &part[..3]).collect();
    // An exchange without queues of its own is in the group of objects with similar names.
    assert_eq!(heads, [["bill", "shop.events", "shop.events"], ["shop.commands", "shop.events", "shop.q00"]]);
    let is_copy = |arrow: &&Arrow| graph.nodes[arrow.from].is_copy;
    let foreign: Vec<&Arrow> = graph.arrows.iter().filter(is_copy).collect();
    let ends: Vec<&str> = foreign.iter().map(|arrow| graph.nodes[arrow.to].name.as_str()).collect();
    assert_eq!(ends, ["bill.q03", "bill.q05"]);
    assert_ne!(foreign[0].from, foreign[1].from, "each queue has its own copy");
}

#[test]
fn ttl_zero_is_a_note_and_key_of_a_headers_binding_is_not_shown() {
    let graph = graph(
        "exchanges: {h: {type: headers}}\nqueues:\n  q: {type: classic, messageTtl: 0, bindings: [{exchange: h, routingKey: x}]}\n",
    );
    assert_eq!(
        (arrows(&graph), &node(&graph, "q").notes),
        (vec!["h → q: binding".to_owned()], &vec!["ttl 0".to_owned()])
    );
}

/// An arrow with an empty label would be invalid in Mermaid.
#[test]
fn empty_dead_letter_routing_key_is_quoted() {
    let graph = graph(
        "exchanges: {x: {type: fanout}}\nqueues:\n  a: {type: classic, deadLetter: {exchange: x, routingKey: ''}}\n  \
         b: {type: classic, bindings: [{exchange: x}]}\n",
    );
    assert_eq!(arrows(&graph), ["x → b: binding", "a → x: dead-lettering \"\""]);
}

#[test]
fn unconditional_binding_has_a_label_next_to_conditional_bindings() {
    let of = |kind: &str, bindings: &str| {
        let yaml =
            format!("exchanges: {{x: {{type: {kind}}}}}\nqueues:\n  q: {{type: classic, bindings: [{bindings}]}}\n");
        arrows(&graph(&yaml)).join("; ")
    };
    let zip = "{exchange: x, arguments: {x-match: all, f: zip}}";
    assert_eq!(of("headers", &format!("{{exchange: x}}, {zip}")), "x → q: binding every message, f: zip");
    assert_eq!(of("headers", zip), "x → q: binding f: zip");
    assert_eq!(of("fanout", "{exchange: x}, {exchange: x, routingKey: k}"), "x → q: binding every message, k");
    assert_eq!(of("fanout", "{exchange: x}"), "x → q: binding");
}
