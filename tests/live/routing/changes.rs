//! Tests the comparison of two topologies on a real broker: the examples arrive as reported, and no change is missed.

use std::collections::BTreeSet;

use topo::model::{ExchangeName, QueueName, Topology};
use topo::rabbitmq::BrokerProfile;
use topo::rabbitmq::routing::Routing;
use topo::rabbitmq::routing::difference::{RoutingDifference, routing_changes};

use super::case::{self, Case, Publication};
use super::{Counts, add, drained};
use crate::support::{Amqp, Node, Random, cases, draws_on, seed};

/// The numbers of pairs of vhosts in a short run and in a long run.
const PAIRS: [usize; 2] = [5, 1000];
/// The number of other messages for each pair.
const MESSAGES: usize = 40;

/// Publishes messages, and returns the queues that receive each message.
fn arrivals(topology: &Topology, amqp: &Amqp, messages: &[Publication]) -> Vec<BTreeSet<QueueName>> {
    for (number, it) in messages.iter().enumerate() {
        amqp.publish_with(it.exchange.as_str(), &it.key, number.to_string(), case::properties(&it.headers));
    }
    let mut arrived = vec![BTreeSet::new(); messages.len()];
    for queue in topology.queues.keys() {
        for body in drained(amqp, queue) {
            arrived[body.parse::<usize>().unwrap()].insert(queue.clone());
        }
    }
    arrived
}

/// Returns the messages of the examples.
fn examples(found: &RoutingDifference) -> Vec<Publication> {
    let changes = found.changes.iter().map(|it| (&it.entry, &it.example));
    let all = changes.chain(&found.losses);
    all.map(|(exchange, example)| Publication {
        exchange: exchange.clone(),
        key: example.routing_key.clone(),
        headers: example.headers.clone(),
        like: None,
        is_odd: false,
    })
    .collect()
}

/// Compares a pair of topologies on a broker. Returns the mistakes.
fn play(node: &Node, random: &mut Random, counts: &mut Counts) -> Vec<String> {
    let version = node.version().parse().unwrap();
    let profile = BrokerProfile::of(version);
    let before = Case::draw(random, version);
    let after = before.changed(random, version);
    let none = BTreeSet::new();
    let routing = |of| Routing::new(of, [], &none, &profile).complete();
    let is_entry =
        |topology: &Topology, name: &ExchangeName| topology.exchanges.get(name).is_some_and(|it| !it.internal);
    let names = before.topology.exchanges.keys().filter(|name| is_entry(&after.topology, name));
    let entries: BTreeSet<ExchangeName> = names.filter(|name| is_entry(&before.topology, name)).cloned().collect();
    let found = routing_changes(&routing(&before.topology), &routing(&after.topology), &entries);
    let mut messages = examples(&found);
    while messages.len() < found.changes.len() + found.losses.len() + MESSAGES {
        messages.extend(Some(before.publication(random)).filter(|it| entries.contains(&it.exchange)));
    }
    let arrived = |case: &Case| {
        let vhost = node.vhost("changes");
        case.declare(&vhost);
        arrivals(&case.topology, &vhost.amqp(), &messages)
    };
    let (was, is) = (arrived(&before), arrived(&after));
    let mut wrong = Vec::new();
    let mut check = |is_right: bool, what: String| {
        if !is_right {
            let shown = [&before, &after].map(|case| case::shown(&case.topology));
            wrong.push(format!("{what}\n{}\n{}", shown[0], shown[1]));
        }
    };
    for (number, it) in found.changes.iter().enumerate() {
        add(counts, "example");
        for (reached, arrived) in [(&it.before, &was[number]), (&it.after, &is[number])] {
            let is_right = match reached.unclear {
                None => reached.queues == *arrived,
                Some(_) => {
                    add(counts, "example with uncertain queues");
                    reached.queues.is_subset(arrived)
                }
            };
            check(is_right, format!("{it:?}: {:?}, {:?}", was[number], is[number]));
        }
        let is_shown = it.lost.iter().any(|queue| was[number].contains(queue) && !is[number].contains(queue))
            || it.gained.iter().any(|queue| is[number].contains(queue) && !was[number].contains(queue));
        check(is_shown, format!("{it:?} shows no change"));
    }
    for number in found.changes.len()..found.changes.len() + found.losses.len() {
        add(counts, "complete loss");
        check(!was[number].is_empty() && is[number].is_empty(), format!("{:?} is not lost", messages[number]));
    }
    for (message, (was, is)) in messages.iter().zip(was.iter().zip(&is)).skip(found.changes.len() + found.losses.len())
    {
        if found.not_compared.keys().any(|(entry, _)| *entry == message.exchange) {
            add(counts, "not compared");
            continue;
        }
        let of_entry = || found.changes.iter().filter(|it| it.entry == message.exchange);
        let is_lost = |queue: &QueueName| of_entry().any(|it| it.lost.contains(queue));
        let is_gained = |queue: &QueueName| of_entry().any(|it| it.gained.contains(queue));
        let is_known = was.difference(is).all(is_lost) && is.difference(was).all(is_gained);
        check(is_known, format!("missed {message:?}: {was:?}, {is:?}"));
        let is_complete = !was.is_empty() && is.is_empty();
        check(!is_complete || found.losses.contains_key(&message.exchange), format!("missed the loss of {message:?}"));
        add(counts, if was == is { "unchanged" } else { "changed" });
    }
    wrong
}

/// Returns the events that occurred too rarely.
fn rare(counts: &Counts) -> Vec<&'static str> {
    let enough = [("example", 10), ("complete loss", 2), ("changed", 5), ("unchanged", 50)];
    let is_rare = |(what, enough): &(&str, usize)| counts.get(*what).copied().unwrap_or(0) < *enough;
    enough.into_iter().filter(is_rare).map(|(what, _)| what).collect()
}

#[test]
fn routing_changes_arrive_as_reported() {
    let node = Node::shared();
    let seed = seed();
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let (mut counts, mut wrong, mut index) = (Counts::new(), Vec::new(), 0);
    while draws_on(index, cases(PAIRS[0], PAIRS[1]), || rare(&counts).is_empty()) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
        wrong.extend(play(node, &mut random, &mut counts));
        index += 1;
    }
    println!("{index} pairs");
    counts.iter().for_each(|(what, times)| println!("{times:>6}  {what}"));
    assert!(wrong.is_empty(), "TOPO_SEED={seed}: {} wrong\n{}", wrong.len(), wrong[0]);
    assert!(rare(&counts).is_empty(), "TOPO_SEED={seed}: too little {:?}", rare(&counts));
}
