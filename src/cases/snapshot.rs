//! Writes snapshots: test files that record the routing of a topology.
//!
//! A snapshot contains a table of routes for each exchange, with a message for each binding that is routed differently
//! without the binding, and a message that no binding matches. It also contains a case for each reason for which a queue
//! dead-letters messages. A change of the topology therefore changes the snapshot.

use super::compare::time;
use super::parts::{Death, parts};
use super::subject::Subject;
use crate::model::yaml::{Entry, Text, Tree, entry, value};
use crate::model::{Arguments, Binding, Destination, ExchangeName, ObjectId, QueueName};
use crate::rabbitmq::routing::difference::{ExampleMessage, routing_changes};
use crate::rabbitmq::routing::{Kind, Message, Reason};
use crate::simulation::{Behavior, End, Outcome, RoutingPart};
use std::collections::{BTreeMap, BTreeSet};

/// Routing keys among which a snapshot chooses one that no binding matches.
const UNMATCHED: [&str; 4] = ["unmatched", "unmatched.x", "x.unmatched.x", ""];

/// The snapshot of a topology, with the positions of the specs relative to the snapshot.
pub struct SnapshotSource<'s> {
    /// The value of `spec`.
    pub specs: &'s [String],
    /// The value of `vhost`; `None` if the specs declare one vhost.
    pub vhost: Option<&'s str>,
}

/// Returns the text of a snapshot.
pub fn snapshot(subject: &Subject<'_>, source: &SnapshotSource<'_>) -> String {
    let mut tests: Vec<Entry> = Vec::new();
    for (exchange, routes) in routes(subject) {
        let name = format!("routes of {exchange}");
        tests.push(entry(&name, table(subject, &exchange, &routes)));
    }
    tests.extend(parts(subject).into_iter().filter_map(|part| match part {
        RoutingPart::DeadLettering(queue, reason) => dead_lettering(subject, &queue, reason),
        RoutingPart::Binding(_) | RoutingPart::Alternate(_) => None,
    }));
    let specs = match source.specs {
        [one] => Tree::text(one),
        several => Tree::list(several.iter().map(|spec| Tree::text(spec))),
    };
    let mut sections = vec![entry("version", Tree::plain(1)), entry("spec", specs)];
    sections.extend(source.vhost.map(|vhost| entry("vhost", Tree::text(vhost))));
    sections.push(entry("snapshot", Tree::plain(true)));
    sections.push(entry("tests", Tree::table(tests)));
    let header = "# Written by `topo test --init`. To update this file, run `topo test --update`.\n";
    Text::of(&sections).with_header(header.to_owned()).text
}

/// Returns the exchanges to which applications publish, with the messages of the snapshot.
fn routes(subject: &Subject<'_>) -> BTreeMap<ExchangeName, BTreeSet<(String, Arguments)>> {
    let topology = subject.routing.topology();
    let members: BTreeSet<&ObjectId> =
        subject.expansion.scope.families.iter().flat_map(|family| &family.members).collect();
    let is_entry = |name: &&ExchangeName| {
        let exchange = topology.exchanges.get(*name);
        exchange.is_some_and(|it| !it.internal && !it.is_created_by_topo())
            && !members.contains(&ObjectId::Exchange((*name).clone()))
            && subject.spec.exchanges.contains_key(*name)
    };
    let entries: BTreeSet<ExchangeName> = topology.exchanges.keys().filter(is_entry).cloned().collect();
    let mut found: BTreeMap<ExchangeName, BTreeSet<(String, Arguments)>> =
        entries.iter().map(|entry| (entry.clone(), BTreeSet::new())).collect();
    for part in parts(subject) {
        let Some((exchange, message)) = telling_message(subject, &part, &entries) else { continue };
        found.entry(exchange).or_default().insert((message.routing_key, message.headers));
    }
    for (exchange, messages) in &mut found {
        let is_unmatched =
            |key: &&&str| subject.routing.taken(exchange, &message(key, &Arguments::new())).bindings.is_empty();
        messages.extend(UNMATCHED.iter().find(is_unmatched).map(|key| ((*key).to_owned(), Arguments::new())));
        messages.retain(|(key, headers)| subject.routing.route(exchange, &message(key, headers)).unclear.is_none());
    }
    found.retain(|_, messages| !messages.is_empty());
    found
}

/// Returns a message that is routed differently without a binding or an alternate exchange, and the exchange to which it
/// is published.
fn telling_message(
    subject: &Subject<'_>,
    part: &RoutingPart,
    entries: &BTreeSet<ExchangeName>,
) -> Option<(ExchangeName, ExampleMessage)> {
    if let RoutingPart::Binding(binding) = part
        && entries.contains(&binding.source)
        && let Destination::Queue(_) = binding.destination
        && let Some(example) = own_message(subject, binding)
    {
        return Some((binding.source.clone(), example));
    }
    let mut topology = subject.routing.topology().clone();
    if !part.remove_from(&mut topology) {
        return None;
    }
    let (with, without) = (subject.routing_of(subject.routing.topology()), subject.routing_of(&topology));
    let changes = routing_changes(&with, &without, entries).changes;
    changes.into_iter().next().map(|change| (change.entry, change.example))
}

/// Returns a message that only this binding of its exchange matches; `None` if the exchange has an alternate exchange, or
/// if the simplest message for the binding matches others as well.
fn own_message(subject: &Subject<'_>, binding: &Binding) -> Option<ExampleMessage> {
    if !subject.routing.alternates(&binding.source).is_empty() {
        return None;
    }
    let routing_key = match subject.routing.kind(&binding.source)? {
        Kind::Direct => binding.routing_key.clone(),
        Kind::Topic => {
            let word = |word: &str| if matches!(word, "*" | "#") { "x" } else { word }.to_owned();
            binding.routing_key.split('.').map(word).collect::<Vec<_>>().join(".")
        }
        Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => return None,
    };
    let taken = subject.routing.taken(&binding.source, &message(&routing_key, &Arguments::new()));
    (taken.bindings == [binding]).then_some(ExampleMessage { routing_key, headers: Arguments::new() })
}

fn message(routing_key: &str, headers: &Arguments) -> Message {
    ExampleMessage { routing_key: routing_key.to_owned(), headers: headers.clone() }.message()
}

/// Returns a table of routes.
fn table(subject: &Subject<'_>, exchange: &ExchangeName, messages: &BTreeSet<(String, Arguments)>) -> Tree {
    let queues = |key: &str, headers: &Arguments| {
        let route = subject.routing.route(exchange, &message(key, headers));
        Tree::list(route.certain_queues.iter().map(|queue| Tree::text(queue.as_str())))
    };
    let routes = if messages.iter().all(|(_, headers)| headers.is_empty()) {
        Tree::table(messages.iter().map(|(key, headers)| entry(key, queues(key, headers)))).block()
    } else {
        Tree::list(messages.iter().map(|(key, headers)| {
            let mut route = Vec::new();
            if !key.is_empty() {
                route.push(entry("routingKey", Tree::text(key)));
            }
            if !headers.is_empty() {
                let headers = headers.iter().map(|(name, of)| entry(name, value::exact(of)));
                route.push(entry("headers", Tree::table(headers)));
            }
            route.push(entry("to", queues(key, headers)));
            Tree::table(route)
        }))
        .block()
    };
    Tree::table([entry("exchange", Tree::text(exchange.as_str())), entry("routes", routes)]).block()
}

/// Returns a case in which a queue dead-letters messages for a reason; `None` if the simulation has no such result.
fn dead_lettering(subject: &Subject<'_>, queue: &QueueName, reason: Reason) -> Option<Entry> {
    if !subject.spec.queues.contains_key(queue) && !subject.spec.dead_letter_queues.contains_key(queue) {
        // The cases of a queue with retries also test the queues of its retries.
        return None;
    }
    let death = Death::of(subject, queue, reason)?;
    let outcome = death.run(subject);
    let part = RoutingPart::DeadLettering(queue.clone(), reason);
    if !outcome.unknown.is_empty() || !outcome.taken.contains(&part) {
        return None;
    }
    let mut publish = vec![entry("queue", Tree::text(queue.as_str()))];
    publish.extend(death.expiration.map(|expiration| entry("expiration", Tree::plain(time(expiration)))));
    if death.count > 1 {
        publish.push(entry("count", Tree::plain(death.count)));
    }
    let mut case = vec![entry("publish", Tree::table(publish))];
    let of_queue = |tree: Tree| Tree::table([entry(queue.as_str(), tree)]);
    if let Some(behavior) = death.behavior {
        case.push(entry("workers", of_queue(Tree::plain(behavior.as_str()))));
        let times = outcome.attempts.get(queue).map_or(&[][..], Vec::as_slice);
        let is_delayed = times.iter().any(|at| *at > 0);
        let attempts = match is_delayed {
            true => Tree::list(times.iter().map(|at| Tree::plain(time(*at)))),
            false => Tree::plain(times.len()),
        };
        case.push(entry("attempts", of_queue(attempts)));
    }
    case.push(entry("ends", ends(&outcome)));
    let name = match (death.behavior, reason) {
        (Some(Behavior::Fail), _) => format!("every attempt of {queue} fails"),
        (Some(Behavior::GiveUp), _) => format!("the worker of {queue} gives up"),
        (Some(_), _) => format!("the worker of {queue} requeues every delivery"),
        (None, Reason::Maxlen) => format!("{queue} is full"),
        (None, _) => format!("messages in {queue} expire"),
    };
    Some(entry(&name, Tree::table(case).block()))
}

fn ends(outcome: &Outcome) -> Tree {
    let mut counts: BTreeMap<&QueueName, BTreeMap<End, u64>> = BTreeMap::new();
    for copy in &outcome.ends {
        *counts.entry(&copy.queue).or_default().entry(copy.end).or_default() += 1;
    }
    Tree::table(counts.into_iter().map(|(queue, counts)| {
        let of_queue = match counts.iter().next() {
            Some((end, 1)) if counts.len() == 1 => Tree::plain(end.as_str()),
            _ => Tree::table(counts.iter().map(|(end, count)| entry(end.as_str(), Tree::plain(count)))),
        };
        entry(queue.as_str(), of_queue)
    }))
}
