//! Tests the expansion of whole specs.

use super::*;
use crate::model::OnConflict;
use crate::spec::{SourceFile, Variables, parse};
use std::fmt::Write;

pub(super) fn spec(text: &str) -> Spec {
    let text = format!("version: 1\nvhost: shop\n{text}");
    let files = [SourceFile { name: "topology.yaml".to_owned(), text }];
    match parse(&files, &Variables::new()) {
        Ok(mut specs) => specs.vhosts.remove(0),
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn expand_text(text: &str) -> Expansion {
    expand_for("3.13.7", text)
}

pub(super) fn expand_for(version: &str, text: &str) -> Expansion {
    expand(&spec(text), &BrokerProfile::of(version.parse().unwrap()))
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

fn errors(text: &str) -> String {
    let profile = BrokerProfile::of(crate::model::BrokerVersion::NEWEST_KNOWN);
    expand(&spec(text), &profile).expect_err("this spec cannot be expanded").to_string()
}

/// Formats the topology, one line for each object.
pub(super) fn format_topology(expansion: &Expansion) -> String {
    let mut text = String::new();
    let topology = &expansion.topology;
    for (name, it) in &topology.exchanges {
        let _ = writeln!(text, "exchange {name} {} {}", it.kind, ArgumentValue::Table(it.arguments.clone()));
    }
    for (name, it) in &topology.queues {
        let _ = writeln!(text, "queue {name} {}", ArgumentValue::Table(it.arguments.clone()));
    }
    for binding in &topology.bindings {
        let _ = writeln!(text, "binding {binding}");
    }
    for (name, it) in &topology.policies {
        let definition = ArgumentValue::Table(it.definition.clone());
        let _ = writeln!(text, "policy {name} {} {} {} {definition}", it.pattern, it.apply_to, it.priority);
    }
    text
}

#[test]
fn dead_letter_queue_expands_to_exchange_queue_and_binding() {
    let expansion = expand_text(
        "queues: {work: {type: quorum, deadLetter: dead}}\ndeadLetterQueues: {dead: {type: classic, maxLength: 5}}\n",
    );
    assert_eq!(
        format_topology(&expansion),
        "exchange dead.dlx fanout {}\n\
         queue dead {x-max-length: 5, x-queue-type: classic}\n\
         queue work {x-dead-letter-exchange: dead.dlx, x-queue-type: quorum}\n\
         binding dead.dlx ─ \"\" → dead\n"
    );
    let origins: Vec<String> = expansion.origins.iter().map(|(id, origin)| format!("{id}: {origin}")).collect();
    assert_eq!(
        origins,
        [
            "vhost: topology.yaml:2:8",
            "exchange dead.dlx: topology.yaml:4:20 (dead-letter exchange of dead)",
            "queue dead: topology.yaml:4:20",
            "queue work: topology.yaml:3:10",
            "binding dead.dlx ─ \"\" → dead: topology.yaml:4:20 (binding of dead-letter queue dead)",
        ]
    );
    let json = serde_json::to_string(&expansion.origins.values().collect::<Vec<_>>()).unwrap();
    let parsed: Vec<Origin> = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed.iter().collect::<Vec<_>>(), expansion.origins.values().collect::<Vec<_>>());
}

#[test]
fn dead_letter_queue_can_set_its_exchange() {
    for (exchange, expected) in [
        ("{type: topic}", "binding d.dlx ─ # → d"),
        ("{type: direct}", "x-dead-letter-exchange: d.dlx, x-dead-letter-routing-key: d"),
        ("{type: direct, routingKey: k}", "binding d.dlx ─ k → d"),
        ("{name: all.dead, internal: true}", "x-dead-letter-exchange: all.dead"),
    ] {
        let text = format!(
            "queues: {{q: {{type: quorum, deadLetter: d}}}}\ndeadLetterQueues: {{d: {{type: quorum, exchange: {exchange}}}}}\n"
        );
        let listed = format_topology(&expand_text(&text));
        assert!(listed.contains(expected), "{exchange}: {listed}");
    }
}

#[test]
fn dead_letter_target_can_be_another_exchange_or_none() {
    let listed = format_topology(&expand_text(
        "exchanges: {corp: {external: true}}\n\
         queues:\n  a: {type: quorum, deadLetter: {exchange: corp, routingKey: k}}\n  b: {type: quorum, deadLetter: none}\n  \
         c: {type: quorum, arguments: {x-dead-letter-exchange: corp}}\n",
    ));
    assert_eq!(
        listed,
        "queue a {x-dead-letter-exchange: corp, x-dead-letter-routing-key: k, x-queue-type: quorum}\n\
         queue b {x-queue-type: quorum}\n\
         queue c {x-dead-letter-exchange: corp, x-queue-type: quorum}\n"
    );
}

#[test]
fn wiring_policy_copies_the_keys_of_the_governing_policy() {
    let listed = format_topology(&expand_text(
        "queues: {a.b: {type: quorum, deadLetter: {queue: d, wiring: policy}}, z: {type: quorum, deadLetter: {queue: d, wiring: policy}}}\n\
         deadLetterQueues: {d: {type: quorum}}\n\
         policies:\n  high: {pattern: '^(?!x)a', applyTo: queues, priority: 7, definition: {queue-mode: lazy}}\n  \
         low: {pattern: b, applyTo: quorum_queues, priority: 3, definition: {maxLength: 5, deadLetterRoutingKey: k}}\n  \
         lower: {pattern: b, definition: {maxLength: 6}}\n  \
         classic: {pattern: b, applyTo: classic_queues, priority: 99, definition: {maxLength: 7}}\n",
    ));
    let generated: Vec<&str> =
        listed.lines().filter(|line| line.contains(".topo.") || line.starts_with("queue a")).collect();
    assert_eq!(
        generated,
        [
            "queue a.b {x-queue-type: quorum}",
            r"policy a.b.topo.dead-letter ^a\.b$ queues 8 {dead-letter-exchange: d.dlx, max-length: 5}",
            "policy z.topo.dead-letter ^z$ queues 1 {dead-letter-exchange: d.dlx}",
        ],
        "`high` sets a key that quorum queues do not support, so the broker skips it"
    );
}

#[test]
fn pattern_that_cannot_be_evaluated_is_an_error_only_with_policy_wiring() {
    let policy = "policies: {p: {pattern: 'a{,3}b', definition: {maxLength: 5}}}\n";
    expand_text(&format!("queues: {{q: {{type: quorum}}}}\n{policy}"));
    let text =
        format!("queues: {{q: {{type: quorum, deadLetter: {{exchange: amq.topic, wiring: policy}}}}}}\n{policy}");
    assert!(errors(&text).contains("topo cannot evaluate the pattern of policy `p`"));
}

#[test]
fn external_objects_are_only_in_the_scope() {
    let expansion = expand_text(
        "exchanges: {e: {external: true}}\nqueues: {q: {external: true, bindings: [{exchange: e, routingKey: k}]}}\n\
         deadLetterQueues: {d: {external: true, exchange: {name: x}}}\n",
    );
    assert_eq!(format_topology(&expansion), "binding e ─ k → q\n");
    let external: Vec<String> = expansion.scope.external.iter().map(ToString::to_string).collect();
    assert_eq!(external, ["exchange e", "exchange x", "queue d", "queue q"]);
}

#[test]
fn scope_contains_the_ownership_settings() {
    let expansion = expand_text(
        "owns: [\"a.*\"]\nprotect: [p]\nignore: [i]\nremoved: {queues: [old]}\n\
         queues: {q: {type: quorum, onConflict: discard}}\nexchanges: {e: {type: topic, onConflict: ifEmpty}}\n",
    );
    let scope = &expansion.scope;
    assert!(scope.owns("a.b") && scope.protects("p") && scope.ignores("i"));
    assert_eq!(scope.removed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["queue old"]);
    let expected =
        [(ObjectId::Exchange("e".into()), OnConflict::IfEmpty), (ObjectId::Queue("q".into()), OnConflict::Discard)];
    assert_eq!(scope.on_conflict, expected);
}

#[test]
fn generated_names_that_are_in_use_are_errors() {
    let dead = "deadLetterQueues: {d: {type: quorum}}\n";
    let declared = errors(&format!("exchanges: {{d.dlx: {{type: topic}}}}\n{dead}"));
    assert_eq!(
        declared,
        "4:20: error[generated-name]: exchange `d.dlx`, which topo generates here, is also declared\n"
    );
    let wired = "queues: {q: {type: quorum, deadLetter: {queue: d, wiring: policy}}}\n";
    assert!(errors(&format!("ignore: [\"q.*\"]\n{wired}{dead}")).contains("is matched by `ignore`"));
    let long = "d".repeat(253);
    assert!(errors(&format!("deadLetterQueues: {{{long}: {{type: quorum}}}}\n")).contains("a name of 257 bytes"));
}

/// Many topologies use one exchange for all dead-lettered messages and distinguish the queues by routing key.
#[test]
fn dead_letter_queues_can_share_an_exchange() {
    let shared = |first: &str, second: &str| {
        format!(
            "queues:\n  a: {{type: classic, deadLetter: a.dead}}\n  b: {{type: classic, deadLetter: b.dead}}\n\
             deadLetterQueues:\n  a.dead: {{type: classic, exchange: {{name: DLX, {first}}}}}\n  b.dead: {{type: classic, \
             exchange: {{name: DLX, {second}}}}}\n"
        )
    };
    let expansion = expand_text(&shared("type: direct", "type: direct, routingKey: b"));
    let keys: Vec<_> = expansion.topology.bindings.iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["DLX ─ a.dead → a.dead", "DLX ─ b → b.dead"]);
    let key = |queue: &str| expansion.topology.queues[&queue.into()].arguments["x-dead-letter-routing-key"].clone();
    assert_eq!((key("a"), key("b")), ("a.dead".into(), "b".into()));
    expand_text(&shared("type: topic, routingKey: a", "type: topic, routingKey: b"));
    for (first, second) in [
        ("type: fanout", "type: fanout"),
        ("type: topic, routingKey: a", "type: topic"),
        ("type: topic, routingKey: a", "type: topic, routingKey: a.#"),
        ("type: direct, routingKey: a", "type: direct, routingKey: a"),
    ] {
        let error = errors(&shared(first, second));
        assert!(error.contains("exchange `DLX` would route every dead-lettered message for `a.dead`"), "{error}");
    }
    // A message that is republished after the last retry has a number as its routing key.
    let spec = shared("type: topic, routingKey: a", "type: direct");
    let spec = spec.replace("DLX, type: direct", "own, type: direct");
    let spec = spec.replace("a.dead}\n", "a.dead, retry: {strategy: republish, delays: [1s]}}\n");
    assert!(
        format_topology(&expand_text(&spec)).contains("a.retry.over ─ # → a.dead"),
        "{}",
        format_topology(&expand_text(&spec))
    );
    // The check includes a third queue.
    let third = "  c.dead: {type: classic, exchange: {name: DLX, type: direct, routingKey: b}}\n";
    let error = errors(&(shared("type: direct, routingKey: a", "type: direct, routingKey: b") + third));
    assert!(error.contains("would route every dead-lettered message for `b.dead` to this queue too"), "{error}");
    let error = errors(&shared("type: direct", "type: topic, routingKey: b"));
    assert!(error.contains("dead-letter queue `a.dead` uses exchange `DLX` with different settings"), "{error}");
}
