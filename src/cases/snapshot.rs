//! Writes snapshots: test files that record the routing of a topology.
//!
//! A snapshot contains a table of routes for each exchange. For each binding and alternate exchange that affects the
//! routing, a table contains a message that is routed differently without it. The table also contains a message that no
//! binding matches. For each reason why a queue dead-letters messages, the snapshot contains a case. Therefore, a case
//! fails if a topology lacks one of these bindings, alternate exchanges or reasons.

use super::compare::time;
use super::parts::{Scenario, changes_without, is_unknown, parts};
use super::subject::Subject;
use crate::model::yaml::{Entry, Text, Tree, literal_entry, value};
use crate::model::{ArgumentValue, Arguments, Binding, BrokerVersion, Destination, ExchangeName, ObjectId, QueueName};
use crate::rabbitmq::routing::difference::ExampleMessage;
use crate::rabbitmq::routing::{Kind, Message, Reason};
use crate::simulation::{Behavior, End, Outcome, RoutingPart, Simulation};
use std::collections::{BTreeMap, BTreeSet};

/// The candidates for a routing key that no binding matches.
const UNMATCHED: [&str; 4] = ["unmatched", "unmatched.x", "x.unmatched.x", ""];
/// The maximum length of a routing key, in bytes.
const MAX_KEY: usize = 255;

/// The origin of a snapshot, with the paths of the specs relative to the snapshot.
pub struct SnapshotSource<'s> {
    /// The value of `spec`.
    pub specs: &'s [String],
    /// The value of `vhost`; `None` if the specs declare one vhost.
    pub vhost: Option<&'s str>,
    /// The value of `brokers`; empty for the newest known version.
    pub brokers: &'s [BrokerVersion],
    /// The names of the tests that apply only to the subject's RabbitMQ version and later versions.
    pub restricted: &'s BTreeSet<String>,
}

/// Returns the text of a snapshot; `None` if the topology contains no routing to record.
pub fn snapshot(subject: &Subject<'_>, source: &SnapshotSource<'_>) -> Option<String> {
    let mut tests: Vec<(String, Vec<Entry>)> = Vec::new();
    for (exchange, routes) in routes(subject) {
        tests.push((format!("routes of {exchange}"), table(subject, &exchange, &routes)));
    }
    let simulation = subject.simulation().recording();
    tests.extend(parts(subject).into_iter().filter_map(|part| match part {
        RoutingPart::DeadLettering(queue, reason) => dead_lettering(subject, &simulation, &queue, reason),
        RoutingPart::Binding(_) | RoutingPart::Alternate(_) => None,
    }));
    if tests.is_empty() {
        return None;
    }
    let specs = match source.specs {
        [one] => Tree::literal(one),
        several => Tree::list(several.iter().map(|spec| Tree::literal(spec))),
    };
    let mut sections = vec![literal_entry("version", Tree::plain(1)), literal_entry("spec", specs)];
    sections.extend(source.vhost.map(|vhost| literal_entry("vhost", Tree::literal(vhost))));
    sections.push(literal_entry("snapshot", Tree::plain(true)));
    if !source.brokers.is_empty() {
        let versions = source.brokers.iter().map(|version| Tree::plain(format!("\"{version}\"")));
        sections.push(literal_entry("brokers", Tree::list(versions)));
    }
    let tests = tests.into_iter().map(|(name, mut test)| {
        if source.restricted.contains(&name) {
            test.push(literal_entry("only", Tree::plain(format!("\">= {}\"", subject.profile.version))));
        }
        literal_entry(&name, Tree::table(test).block())
    });
    sections.push(literal_entry("tests", Tree::table(tests)));
    let header = "# Written by `topo test --init`. To update this file, run `topo test --update`.\n";
    Some(Text::of(&sections).with_header(header.to_owned()).text)
}

/// Returns the exchanges to which applications publish, with their messages in the snapshot.
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
        let Some((exchange, message)) = distinguishing_message(subject, &part, &entries) else { continue };
        found.entry(exchange).or_default().insert((message.routing_key, message.headers));
    }
    for binding in &topology.bindings {
        if let Some(messages) =
            found.get_mut(&binding.source).filter(|_| subject.routing.kind(&binding.source) == Some(Kind::Topic))
        {
            let keys = variants(&binding.routing_key).into_iter().filter(|key| key.len() <= MAX_KEY);
            messages.extend(keys.map(|key| (key, Arguments::new())));
        }
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

/// Returns a message that is routed differently without a binding or an alternate exchange, and the exchange to which
/// the message is published. Returns `None` for other parts, and if topo finds no such message.
fn distinguishing_message(
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
    if matches!(part, RoutingPart::DeadLettering(..)) || is_unknown(subject, part) {
        return None;
    }
    let changes = changes_without(subject, part, entries).changes;
    changes.into_iter().next().map(|change| (change.entry, change.example))
}

/// Returns two routing keys that are derived from a pattern: one without the wildcards, and one with two words in place
/// of each wildcard. These keys detect most changes that make the pattern narrower or wider. Returns no keys for a
/// pattern without wildcards.
fn variants(pattern: &str) -> Vec<String> {
    if !pattern.split('.').any(|word| matches!(word, "*" | "#")) {
        return Vec::new();
    }
    let with = |words: &[&str]| {
        let words = pattern.split('.').flat_map(|word| match word {
            "#" | "*" => words.to_vec(),
            word => vec![word],
        });
        words.collect::<Vec<_>>().join(".")
    };
    vec![with(&[]), with(&["x", "x"])]
}

/// Returns a message that matches only this binding of a direct or topic exchange. Returns `None` for other exchange
/// types, and if the exchange has an alternate exchange. Also returns `None` if the simplest message for the binding
/// matches other bindings too.
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

/// Returns the table of routes for an exchange.
fn table(subject: &Subject<'_>, exchange: &ExchangeName, messages: &BTreeSet<(String, Arguments)>) -> Vec<Entry> {
    let queues = |key: &str, headers: &Arguments| {
        let route = subject.routing.route(exchange, &message(key, headers));
        Tree::list(route.certain_queues.iter().map(|queue| Tree::literal(queue.as_str())))
    };
    let routes = if messages.iter().all(|(_, headers)| headers.is_empty()) {
        Tree::table(messages.iter().map(|(key, headers)| literal_entry(key, queues(key, headers)))).block()
    } else {
        Tree::list(messages.iter().map(|(key, headers)| {
            let mut route = Vec::new();
            if !key.is_empty() {
                route.push(literal_entry("routingKey", Tree::literal(key)));
            }
            if !headers.is_empty() {
                let headers = headers.iter().map(|(name, of)| literal_entry(name, header(of)));
                route.push(literal_entry("headers", Tree::table(headers)));
            }
            route.push(literal_entry("to", queues(key, headers)));
            Tree::table(route)
        }))
        .block()
    };
    vec![literal_entry("exchange", Tree::literal(exchange.as_str())), literal_entry("routes", routes)]
}

fn header(value: &ArgumentValue) -> Tree {
    value.as_text().map_or_else(|| value::exact(value), Tree::literal)
}

/// Returns the name and the content of a case in which a queue dead-letters messages for a reason. Returns `None` if
/// the queue is generated, if no scenario exists, or if the simulation does not produce this result.
fn dead_lettering(
    subject: &Subject<'_>,
    simulation: &Simulation<'_, '_>,
    queue: &QueueName,
    reason: Reason,
) -> Option<(String, Vec<Entry>)> {
    if !subject.spec.queues.contains_key(queue) && !subject.spec.dead_letter_queues.contains_key(queue) {
        // The cases for a queue with retries also test its generated queues.
        return None;
    }
    let scenario = Scenario::of(subject, queue, reason)?;
    let outcome = scenario.run(simulation);
    let part = RoutingPart::DeadLettering(queue.clone(), reason);
    if !outcome.unknown.is_empty() || !outcome.taken.contains(&part) {
        return None;
    }
    let mut publish = vec![literal_entry("queue", Tree::literal(queue.as_str()))];
    publish.extend(scenario.expiration.map(|expiration| literal_entry("expiration", Tree::plain(time(expiration)))));
    if scenario.count > 1 {
        publish.push(literal_entry("count", Tree::plain(scenario.count)));
    }
    let mut case = vec![literal_entry("publish", Tree::table(publish))];
    let of_queue = |tree: Tree| Tree::table([literal_entry(queue.as_str(), tree)]);
    if let Some(behavior) = scenario.behavior {
        case.push(literal_entry("workers", of_queue(Tree::plain(behavior.as_str()))));
        let times = outcome.attempts.get(queue).map_or(&[][..], Vec::as_slice);
        let is_delayed = times.iter().any(|at| *at > 0);
        let attempts = match is_delayed {
            true => Tree::list(times.iter().map(|at| Tree::plain(time(*at)))),
            false => Tree::plain(times.len()),
        };
        case.push(literal_entry("attempts", of_queue(attempts)));
    }
    case.push(literal_entry("ends", ends(&outcome)));
    if outcome.ended_at > 0 {
        case.push(literal_entry("within", Tree::plain(time(outcome.ended_at))));
    }
    let name = match (scenario.behavior, reason) {
        (Some(Behavior::Fail), _) => format!("every attempt of {queue} fails"),
        (Some(Behavior::GiveUp), _) => format!("the worker of {queue} gives up"),
        (Some(_), _) => format!("the worker of {queue} requeues every delivery"),
        (None, Reason::Maxlen) => format!("messages overflow {queue}"),
        (None, _) => format!("messages in {queue} expire"),
    };
    Some((name, case))
}

/// Returns the number of copies in each queue for each final state.
fn ends(outcome: &Outcome) -> Tree {
    let mut counts: BTreeMap<&QueueName, BTreeMap<End, u64>> = BTreeMap::new();
    for copy in &outcome.ends {
        *counts.entry(&copy.queue).or_default().entry(copy.end).or_default() += 1;
    }
    Tree::table(counts.into_iter().map(|(queue, counts)| {
        let counts = counts.iter().map(|(end, count)| literal_entry(end.as_str(), Tree::plain(count)));
        literal_entry(queue.as_str(), Tree::table(counts))
    }))
}
