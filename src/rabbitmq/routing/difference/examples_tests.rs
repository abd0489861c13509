//! Tests the examples that topo finds for single changes.

use super::*;
use crate::model::{Arguments, Binding, BrokerVersion, Destination, Exchange, ExchangeName, Topology, VhostName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use std::collections::BTreeSet;

/// Returns a topology with exchanges (`NAME: TYPE` or `NAME: TYPE > ALTERNATE`) and bindings (`SOURCE KEY QUEUE`, with
/// `@NAME` for an exchange as the destination, and `NAME=VALUE` for an argument instead of a key).
fn topology(exchanges: &[&str], bindings: &[&str]) -> Topology {
    let mut topology = Topology::missing(VhostName::new("v"));
    for text in exchanges {
        let (name, kind) = text.split_once(": ").unwrap();
        let (kind, alternate) = kind.split_once(" > ").map_or((kind, None), |(kind, name)| (kind, Some(name)));
        let arguments = alternate.map(|name| ("alternate-exchange".to_owned(), name.into())).into_iter().collect();
        let exchange =
            Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments };
        topology.exchanges.insert(name.into(), exchange);
    }
    for text in bindings {
        let words: Vec<&str> = text.split(' ').collect();
        let destination = match words[2].strip_prefix('@') {
            Some(exchange) => Destination::Exchange(exchange.into()),
            None => Destination::Queue(words[2].into()),
        };
        let (key, arguments) = match words[1].split_once('=') {
            Some((name, value)) => ("", [(name.to_owned(), value.into())].into()),
            None => (words[1].trim_matches('\''), Arguments::new()),
        };
        topology.bindings.insert(Binding {
            source: words[0].into(),
            destination,
            routing_key: key.to_owned(),
            arguments,
        });
    }
    topology
}

/// Describes each change as `ENTRY: -LOST +GAINED 'KEY' HEADERS all`. `all` means that all messages are affected.
fn changes(before: &Topology, after: &Topology) -> Vec<String> {
    let (none, profile) = (BTreeSet::new(), BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let routing = |of| Routing::new(of, [], &none, &profile).complete();
    let entries: BTreeSet<ExchangeName> = before.exchanges.keys().cloned().collect();
    let found = routing_changes(&routing(before), &routing(after), &entries);
    assert!(found.not_compared.is_empty(), "{found:?}");
    let text = |it: &EntryChange| {
        let lost: String = it.lost.iter().map(|queue| format!(" -{queue}")).collect();
        let gained: String = it.gained.iter().map(|queue| format!(" +{queue}")).collect();
        let headers: String = it.example.headers.keys().map(|name| format!(" {name}")).collect();
        let all = if it.extent == Extent::All { " all" } else { "" };
        format!("{}:{lost}{gained} '{}'{headers}{all}", it.entry, it.example.routing_key)
    };
    found.changes.iter().map(text).collect()
}

#[test]
fn changes_have_the_shortest_example_with_a_word_for_each_hash() {
    let of =
        |pattern: &str| changes(&topology(&["e: topic"], &[&format!("e {pattern} q")]), &topology(&["e: topic"], &[]));
    assert_eq!(of("order.#"), ["e: -q 'order.x' all"]);
    assert_eq!(of("#"), ["e: -q 'x' all"]);
    assert_eq!(of("*.*"), ["e: -q 'x.x' all"]);
    // Only the empty key matches.
    assert_eq!(of("''"), ["e: -q '' all"]);
    // The key consists of two empty words.
    assert_eq!(of("."), ["e: -q '.' all"]);
}

#[test]
fn covered_binding_changes_nothing() {
    let exchanges = &["e: topic"];
    assert!(changes(&topology(exchanges, &["e # q", "e a.* q"]), &topology(exchanges, &["e # q"])).is_empty());
    let part = changes(&topology(exchanges, &["e a.# q", "e a.* q"]), &topology(exchanges, &["e a.* q"]));
    assert_eq!(part, ["e: -q 'a.x.x'"]);
}

#[test]
fn unrelated_binding_takes_messages_from_an_alternate_exchange() {
    let exchanges = &["e: topic > a", "a: fanout"];
    let before = topology(exchanges, &["a '' q"]);
    let after = topology(exchanges, &["a '' q", "e paid other"]);
    assert_eq!(changes(&before, &after), ["e: -q +other 'paid'"]);
    // A queue that is also bound to the alternate exchange receives the message in both cases.
    let both = topology(exchanges, &["a '' q", "e paid q"]);
    assert!(changes(&before, &both).is_empty());
}

#[test]
fn cycles_and_alternates_of_alternates_are_compared() {
    let exchanges = &["e: fanout", "f: fanout > g", "g: fanout"];
    let before = topology(exchanges, &["e '' @f", "f '' @e", "g '' q"]);
    assert!(changes(&before, &before).is_empty());
    // Without the binding from `f` back to `e`, the alternate exchange receives the messages.
    let after = topology(exchanges, &["e '' @f", "g '' q"]);
    assert_eq!(changes(&before, &after), ["e: +q 'x'", "f: +q 'x'"]);
}

#[test]
fn example_has_no_unnecessary_headers() {
    let exchanges = &["e: headers"];
    let none = topology(exchanges, &[]);
    assert_eq!(changes(&topology(exchanges, &["e region=eu q"]), &none), ["e: -q 'x' region all"]);
    // Headers that begin with `x-` are not compared, so such a binding matches all messages.
    assert_eq!(changes(&topology(exchanges, &["e x-kind=big q"]), &none), ["e: -q 'x' all"]);
    // `any` without a header matches no message.
    assert!(changes(&topology(exchanges, &["e x-match=any q"]), &none).is_empty());
}

#[test]
fn type_and_alternate_exchange_are_causes() {
    let before = topology(&["e: topic > a", "a: fanout"], &["e a.* q", "a '' lost"]);
    // A message with the routing key `a.*` still reaches the queue.
    let direct = topology(&["e: direct > a", "a: fanout"], &["e a.* q", "a '' lost"]);
    assert_eq!(changes(&before, &direct).first().map(String::as_str), Some("e: -q +lost 'a.x'"));
    let without = topology(&["e: topic", "a: fanout"], &["e a.* q", "a '' lost"]);
    assert_eq!(changes(&before, &without), ["e: -lost 'x'"]);
}

/// Returns the difference, with all exchanges as entries.
fn difference(before: &Topology, after: &Topology) -> RoutingDifference {
    let (none, profile) = (BTreeSet::new(), BrokerProfile::of(BrokerVersion::NEWEST_KNOWN));
    let routing = |of| Routing::new(of, [], &none, &profile).complete();
    let entries: BTreeSet<ExchangeName> = before.exchanges.keys().cloned().collect();
    routing_changes(&routing(before), &routing(after), &entries)
}

#[test]
fn longer_keys_are_searched_after_an_empty_word() {
    let exchanges = &["e: topic"];
    let before = topology(exchanges, &["e .#.# q", "e #.*.*.* q"]);
    assert_eq!(changes(&before, &topology(exchanges, &["e #.*.*.* q"])), ["e: -q '.x'"]);
}

#[test]
fn message_that_loses_another_queue_is_not_shown_as_unaffected() {
    let exchanges = &["g: topic", "e: fanout"];
    let kept = ["g a.b one", "e '' one", "e '' two"];
    let found = difference(&topology(exchanges, &[&kept[..], &["g a.# @e"]].concat()), &topology(exchanges, &kept));
    let change = found.changes.iter().find(|it| it.entry.as_str() == "g").unwrap();
    assert_eq!((change.lost.len(), &change.extent), (2, &Extent::Unknown));
}

/// Returns a chain of topic exchanges, and the chain without its last binding.
fn chain(length: usize, pattern: impl Fn(usize) -> String) -> [Topology; 2] {
    let exchanges: Vec<String> = (0..length).map(|number| format!("e{number}: topic")).collect();
    let exchanges: Vec<&str> = exchanges.iter().map(String::as_str).collect();
    let to = |number: usize| if number == length - 1 { "q".to_owned() } else { format!("@e{}", number + 1) };
    let bindings: Vec<String> =
        (0..length).map(|number| format!("e{number} {} {}", pattern(number), to(number))).collect();
    let bindings: Vec<&str> = bindings.iter().map(String::as_str).collect();
    [topology(&exchanges, &bindings), topology(&exchanges, &bindings[..length - 1])]
}

#[test]
fn chain_with_equal_patterns_is_compared() {
    let [before, after] = chain(25, |_| "order.#".to_owned());
    let found = changes(&before, &after);
    assert_eq!((found.len(), found[0].as_str()), (25, "e0: -q 'order.x'"));
}

#[test]
fn chain_with_too_many_cases_is_not_compared() {
    let [before, after] = chain(16, |number| format!("order.#.w{number}.#"));
    let found = difference(&before, &after);
    assert!(found.not_compared.values().all(|reason| *reason == NotCompared::TooComplex));
    // The last exchanges in the chain have few cases.
    assert!(found.not_compared.len() > 2 && found.changes.len() + found.not_compared.len() >= 16, "{found:?}");
}

#[test]
fn unroutable_message_is_found_among_too_many_queues_to_compare() {
    let queues: Vec<String> = (0..2_100).map(|number| format!("f '' q{number}")).collect();
    let bindings: Vec<&str> = queues.iter().map(String::as_str).chain(["g '' @f"]).collect();
    let exchanges = &["g: fanout", "f: fanout"];
    let found = difference(&topology(exchanges, &bindings), &topology(exchanges, &bindings[..2_100]));
    assert_eq!(found.losses.keys().map(ExchangeName::as_str).collect::<Vec<_>>(), ["g"]);
    assert_eq!(found.not_compared.values().collect::<Vec<_>>(), [&NotCompared::TooComplex]);
}

/// A hash exchange can route messages through the new binding, which reaches no queue.
#[test]
fn new_plugin_exchange_binding_to_no_queue_is_not_compared() {
    let exchanges = &["e: x-consistent-hash", "empty: fanout", "f: fanout"];
    for new in ["e 1 @empty", "e 1 @e"] {
        let found =
            difference(&topology(exchanges, &["e 1 q", "f '' @e"]), &topology(exchanges, &["e 1 q", "f '' @e", new]));
        let entries: BTreeSet<&str> = found.not_compared.keys().map(|(entry, _)| entry.as_str()).collect();
        assert_eq!(entries, ["e", "f"].into(), "{found:?}");
    }
}

#[test]
fn changed_plugin_type_is_not_compared() {
    let found = difference(&topology(&["e: x-random"], &["e 1 q"]), &topology(&["e: x-consistent-hash"], &["e 1 q"]));
    assert!(found.changes.is_empty() && !found.not_compared.is_empty(), "{found:?}");
}
