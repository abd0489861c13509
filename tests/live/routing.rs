//! Tests routing on a real broker: published messages, and messages that die several times, arrive as topo predicts.
//!
//! `TOPO_SEED` repeats a run.

pub(super) mod case;
mod changes;
mod deaths;

use std::collections::{BTreeMap, BTreeSet};

use topo::model::QueueName;
use topo::rabbitmq::BrokerProfile;
use topo::rabbitmq::routing::{Headers, Keys, Message, Route, RouteOutcome, Routing, SenderSelected, Unclear};

use self::case::{Case, Publication};
use crate::support::{Amqp, Node, Outcome, Random, cases, draws_on, seed};

/// The numbers of vhosts, each with its own topology, in a short run and in a long run.
const CASES: [usize; 2] = [8, 40];
/// The number of messages per vhost.
const MESSAGES: usize = 80;

type Counts = BTreeMap<String, usize>;

fn add(counts: &mut Counts, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

/// Drains a queue and returns the bodies of its messages.
fn drained(amqp: &Amqp, queue: &QueueName) -> Vec<String> {
    let bodies = amqp.get_all(queue.as_str()).into_iter().map(|message| message.body);
    bodies.map(|body| String::from_utf8(body).unwrap()).collect()
}

/// Returns true if the queues differ from the prediction.
fn wrong(route: &Route, actual: &BTreeSet<QueueName>) -> bool {
    let possible: BTreeSet<QueueName> = route.certain_queues.union(&route.possible_queues).cloned().collect();
    let is_wrong = match route.outcome() {
        RouteOutcome::Reaches(_) => actual.is_empty(),
        RouteOutcome::ReachesNothing => !actual.is_empty(),
        RouteOutcome::Uncertain(_) => false,
    };
    is_wrong || !route.certain_queues.is_subset(actual) || !actual.is_subset(&possible)
}

/// Publishes to a vhost, and compares the routes with the predictions for full and for partial knowledge.
fn play(node: &Node, random: &mut Random, counts: &mut Counts) -> Vec<String> {
    let version = node.version().parse().unwrap();
    let (case, profile) = (Case::draw(random, version), BrokerProfile::of(version));
    let vhost = node.vhost("routing");
    case.declare(&vhost);
    let amqp = vhost.amqp();
    let mut publications: Vec<Publication> = (0..MESSAGES).map(|_| case.publication(random)).collect();
    publications.iter_mut().for_each(|it| it.headers.extend(Case::sender_selected(random)));
    let mut outcomes = Vec::new();
    for (number, it) in publications.iter().enumerate() {
        let properties = case::properties(&it.headers);
        outcomes.push(amqp.publish_with(it.exchange.as_str(), &it.key, number.to_string(), properties));
    }
    let mut actual: Vec<BTreeSet<QueueName>> = vec![BTreeSet::new(); MESSAGES];
    for queue in case.topology.queues.keys() {
        for body in drained(&amqp, queue) {
            let number: usize = body.parse().unwrap();
            assert!(actual[number].insert(queue.clone()), "one copy per queue");
        }
    }
    let external = BTreeSet::new();
    let routing = Routing::new(&case.topology, [], &external, &profile);
    let mut found = Vec::new();
    for ((it, actual), outcome) in publications.iter().zip(&actual).zip(outcomes) {
        assert_eq!(outcome == Outcome::Unroutable, actual.is_empty(), "{it:?}");
        let Message { more_keys, headers, .. } = Message::published(&it.key, &it.headers);
        let known = [
            ("all known", Keys::One(it.key.clone()), headers.clone()),
            ("headers unknown", Keys::One(it.key.clone()), Headers::any()),
            ("a pattern known", it.like.clone().map_or_else(Keys::any, Keys::Like), headers),
            ("nothing known", Keys::any(), Headers::any()),
        ];
        for (what, keys, headers) in known {
            // A key with a wildcard is not one of the keys of a pattern.
            if it.is_odd && matches!(keys, Keys::Like(_)) {
                continue;
            }
            let message = Message { keys, more_keys: more_keys.clone(), headers };
            let route = routing.route(&it.exchange, &message);
            if wrong(&route, actual) {
                found.push(format!("{it:?}, {what}: {route:?}, came to {actual:?}\n{}", case::shown(&case.topology)));
            }
            let outcome = match route.outcome() {
                RouteOutcome::Reaches(_) if route.possible_queues.is_empty() => "reaches",
                RouteOutcome::Reaches(_) => "reaches, and perhaps more",
                RouteOutcome::ReachesNothing => "reaches nothing",
                RouteOutcome::Uncertain(Unclear::Type(_)) => "cannot tell: a plugin's type",
                RouteOutcome::Uncertain(Unclear::UnknownBindings(_)) => "cannot tell: not declared here",
                RouteOutcome::Uncertain(_) => "cannot tell: key or headers",
            };
            add(counts, format!("{what}: {outcome}"));
        }
        if !more_keys.is_empty() {
            let first = Message { more_keys: SenderSelected::default(), ..Message::published(&it.key, &it.headers) };
            let all = Message::published(&it.key, &it.headers);
            let queues = |message| routing.route(&it.exchange, message).certain_queues;
            let is_changed = queues(&first) != queues(&all);
            add(counts, if is_changed { "more keys: more queues" } else { "more keys: the same queues" });
        }
        let kind = case.kind(&it.exchange);
        add(counts, format!("to {kind}: {}", if actual.is_empty() { "lost" } else { "arrived" }));
    }
    found
}

/// Returns the number of messages whose outcome begins with this text.
fn total(counts: &Counts, outcome: &str) -> usize {
    counts.iter().filter(|(what, _)| what.starts_with(outcome)).map(|(_, times)| times).sum()
}

/// Returns the events that occurred too rarely. With full knowledge, only hash exchanges and external exchanges are
/// unpredictable: less than one message of seven.
fn rare(counts: &Counts) -> Vec<String> {
    let kinds = ["default", "direct", "fanout", "topic", "headers", "x-consistent-hash"];
    let expected = kinds.map(|kind| (format!("to {kind}: arrived"), 10)).into_iter();
    let rest = [("a pattern known: reaches nothing", 21), ("more keys: more queues", 10)];
    let expected = expected.chain(rest.map(|(what, enough)| (what.to_owned(), enough)));
    let is_rare = |(what, enough): &(String, usize)| counts.get(what).copied().unwrap_or(0) < *enough;
    let is_unclear = total(counts, "all known: cannot") * 7 >= total(counts, "all known");
    let predicted = is_unclear.then(|| "all known: predicted".to_owned());
    expected.filter(is_rare).map(|(what, _)| what).chain(predicted).collect()
}

#[test]
fn messages_arrive_as_predicted() {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let (mut counts, mut wrong) = (Counts::new(), Vec::new());
    let mut index = 0;
    while draws_on(index, cases(CASES[0], CASES[1]), || rare(&counts).is_empty()) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
        wrong.extend(play(node, &mut random, &mut counts));
        index += 1;
    }
    println!("{index} vhosts");
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    assert!(wrong.is_empty(), "TOPO_SEED={seed}: {} wrong\n{}", wrong.len(), wrong[0]);
    let count = |what: &str| counts.get(what).copied().unwrap_or(0);
    let rare = rare(&counts);
    assert!(rare.is_empty(), "TOPO_SEED={seed}: too little {rare:?}");
    let all = total(&counts, "all known");
    assert_eq!(count("all known: cannot tell: key or headers"), 0);
    assert!(count("all known: reaches nothing") * 20 > all);
}
