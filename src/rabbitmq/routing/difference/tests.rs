//! Compares the results for random topologies with a brute-force search over all short routing keys and small sets of
//! headers.

use super::*;
use crate::model::{ArgumentValue, Arguments, BrokerVersion, Exchange, Topology, VhostName};
use crate::model::{Binding, Destination, ExchangeName, QueueName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use crate::rabbitmq::routing::{Certainty, Message};
use std::collections::{BTreeMap, BTreeSet};

/// A generator of pseudo-random numbers (`xorshift64*`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

const EXCHANGES: [&str; 4] = ["e1", "e2", "e3", "e4"];
const QUEUES: [&str; 3] = ["q1", "q2", "q3"];

fn pattern(random: &mut Random, words: &[&str]) -> String {
    (0..random.below(4)).map(|_| random.of(words)).collect::<Vec<_>>().join(".")
}

fn headers(random: &mut Random) -> Arguments {
    let mut arguments: Arguments = [("x-match".to_owned(), random.of(&["all", "any"]).into())].into();
    for name in ["h1", "h2"] {
        match random.below(4) {
            0 => drop(arguments.insert(name.to_owned(), "a".into())),
            1 => drop(arguments.insert(name.to_owned(), "b".into())),
            2 if random.below(3) == 0 => drop(arguments.insert(name.to_owned(), ArgumentValue::Null)),
            _ => {}
        }
    }
    arguments
}

fn exchange(kind: &str, alternate: Option<&str>) -> Exchange {
    let arguments = alternate.map(|name| ("alternate-exchange".to_owned(), name.into())).into_iter().collect();
    Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments }
}

fn binding(random: &mut Random, topology: &Topology) -> Binding {
    let source = random.of(&EXCHANGES);
    let kind = topology.exchanges[&ExchangeName::from(source)].kind.as_str();
    let destination = if random.below(3) == 0 {
        Destination::Exchange(random.of(&EXCHANGES).into())
    } else {
        Destination::Queue(random.of(&QUEUES).into())
    };
    let (routing_key, arguments) = match kind {
        "topic" => (pattern(random, &["a", "b", "*", "#", "#", ""]), Arguments::new()),
        "headers" => (String::new(), headers(random)),
        _ => (pattern(random, &["a", "b", ""]), Arguments::new()),
    };
    Binding { source: source.into(), destination, routing_key, arguments }
}

fn random_topology(random: &mut Random) -> Topology {
    let mut topology = Topology::missing(VhostName::new("v"));
    for name in EXCHANGES {
        let kind = random.of(&["topic", "topic", "direct", "fanout", "headers"]);
        let alternate = (random.below(3) == 0).then(|| random.of(&EXCHANGES));
        topology.exchanges.insert(name.into(), exchange(kind, alternate));
    }
    for _ in 0..3 + random.below(6) {
        let binding = binding(random, &topology);
        topology.bindings.insert(binding);
    }
    topology
}

/// Makes one to three random changes to bindings, alternate exchanges or exchange types.
fn random_changes(random: &mut Random, before: &Topology) -> Topology {
    let mut topology = before.clone();
    for _ in 0..1 + random.below(3) {
        let number = random.below(topology.bindings.len().max(1));
        match random.below(6) {
            0 | 1 => {
                let removed = topology.bindings.iter().nth(number).cloned();
                removed.map(|binding| topology.bindings.remove(&binding));
            }
            2 | 3 => {
                let binding = binding(random, &topology);
                topology.bindings.insert(binding);
            }
            4 => {
                let name = ExchangeName::from(random.of(&EXCHANGES));
                let alternate = (random.below(2) == 0).then(|| random.of(&EXCHANGES));
                let kind = topology.exchanges[&name].kind.clone();
                topology.exchanges.insert(name, exchange(&kind, alternate));
            }
            _ => {
                let name = ExchangeName::from(random.of(&EXCHANGES));
                let kept = topology.exchanges[&name].clone();
                let kind = random.of(&["topic", "direct", "fanout"]).to_owned();
                topology.exchanges.insert(name, Exchange { kind, ..kept });
            }
        }
    }
    topology
}

/// Returns messages with all combinations of a key of up to three words and a set of up to two headers.
fn messages() -> Vec<Message> {
    let words = ["a", "b", "x", "*", ""];
    let longer = |all: &[String]| -> Vec<String> {
        all.iter().flat_map(|start| words.map(|word| format!("{start}.{word}"))).collect()
    };
    let one = words.map(str::to_owned).to_vec();
    let two = longer(&one);
    let three = longer(&two);
    let keys = [vec![String::new()], one, two, three].concat();
    let values = [None, Some("a"), Some("b"), Some("x")];
    let sets = values.into_iter().flat_map(|h1| {
        values.map(|h2| {
            let headers = [("h1", h1), ("h2", h2)].into_iter();
            let headers = headers.filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
            headers.collect::<Arguments>()
        })
    });
    let sets: Vec<Arguments> = sets.collect();
    keys.iter()
        .flat_map(|key| sets.iter().map(|headers| Message::published(key, headers)).collect::<Vec<_>>())
        .collect()
}

fn reached(routing: &Routing<'_>, entry: &ExchangeName, message: &Message) -> BTreeSet<QueueName> {
    let route = routing.route(entry, message);
    assert!(route.reaches != Certainty::Perhaps, "{route:?}");
    route.certain_queues
}

/// The number of checks of each kind, over all pairs of topologies.
#[derive(Debug, Default)]
struct Counts {
    examples: usize,
    partial: usize,
    complete: usize,
    without_loss: usize,
}

/// Compares a pair of random topologies, and checks the result against the routes of each message.
fn check_pair(seed: u64, messages: &[&Message], counts: &mut Counts) {
    let none = BTreeSet::new();
    let profile = BrokerProfile::of(BrokerVersion::NEWEST_KNOWN);
    let entries: BTreeSet<ExchangeName> = EXCHANGES.into_iter().map(ExchangeName::from).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
    let before = random_topology(&mut random);
    let after = random_changes(&mut random, &before);
    let (one, other) = (Routing::new(&before, [], &none, &profile), Routing::new(&after, [], &none, &profile));
    let found = losses(&one, &other, &entries);
    assert_eq!(found.not_compared, BTreeMap::new(), "seed {seed}");
    let mut lost: BTreeSet<(&ExchangeName, &QueueName)> = BTreeSet::new();
    for ((entry, cause), queues) in &found.queues {
        for (queue, Loss { example, extent }) in queues {
            let message = example.message();
            let (was, is) = (reached(&one, entry, &message), reached(&other, entry, &message));
            let what = format!("seed {seed}: {entry} to {queue} by {cause:?}: {example:?}");
            assert!(was.contains(queue) && !is.contains(queue), "{what}: {was:?}, {is:?}");
            if let Extent::Except(still) = extent {
                let message = still.message();
                let (was, is) = (reached(&one, entry, &message), reached(&other, entry, &message));
                assert!(was.contains(queue) && is.contains(queue), "{what}: {still:?}: {was:?}, {is:?}");
                counts.partial += 1;
            }
            if let (Extent::All, Cause::Binding(binding)) = (extent, cause)
                && (&binding.source, &binding.destination) == (entry, &Destination::Queue(queue.clone()))
            {
                let alone = Topology { bindings: [binding.clone()].into(), ..before.clone() };
                let alone = Routing::new(&alone, [], &none, &profile);
                for message in messages {
                    let is_matched = before.bindings.contains(binding)
                        && alone.candidates(entry, alone.kind(entry).unwrap(), &message.keys).len() == 1
                        && reached(&alone, entry, message).contains(queue);
                    let is_lost = !reached(&other, entry, message).contains(queue);
                    assert!(!is_matched || is_lost, "{what}: not all, because of {message:?}");
                    counts.complete += usize::from(is_matched);
                }
            }
            lost.insert((entry, queue));
            counts.examples += 1;
        }
    }
    for ((entry, _), example) in &found.complete {
        let message = example.message();
        let (was, is) = (reached(&one, entry, &message), reached(&other, entry, &message));
        assert!(!was.is_empty() && is.is_empty(), "seed {seed}: {entry}: {example:?}: {was:?}, {is:?}");
    }
    for entry in &entries {
        for message in messages {
            let (was, is) = (reached(&one, entry, message), reached(&other, entry, message));
            let is_complete = !was.is_empty() && is.is_empty();
            let of_entry = |(key, _): &(&EntryAndCause, _)| key.0 == *entry;
            let is_known = !is_complete || found.complete.iter().any(|it| of_entry(&it));
            assert!(is_known, "seed {seed}: {entry}: missed complete loss {message:?}");
            for queue in was.difference(&is) {
                assert!(lost.contains(&(entry, queue)), "seed {seed}: {entry} to {queue}: missed {message:?}");
            }
            counts.without_loss += usize::from(was.is_subset(&is));
        }
    }
}

#[test]
fn examples_are_right_and_no_loss_is_missed() {
    let messages = messages();
    let mut found = Counts::default();
    for seed in 1..=60 {
        check_pair(seed, &messages.iter().collect::<Vec<_>>(), &mut found);
    }
    assert!(found.partial > 5 && found.complete > 100, "{found:?}");
    assert!(found.examples > 30 && found.without_loss > 100_000, "{found:?}");
}

/// Checks 500 pairs, or 5,000 pairs in a long run. Checks each pair with one fortieth of the messages.
#[test]
fn examples_for_many_pairs_are_correct_and_no_loss_is_missed() {
    let messages = messages();
    let pairs = if std::env::var_os("TOPO_LONG").is_some() { 5_000 } else { 500 };
    let (mut found, stride, start) = (Counts::default(), 40, std::time::Instant::now());
    for seed in 1_000..1_000 + pairs {
        let some: Vec<&Message> = messages.iter().skip(seed as usize % stride).step_by(stride).collect();
        check_pair(seed, &some, &mut found);
    }
    println!("{pairs} pairs of topologies in {:.1?}: {found:?}", start.elapsed());
    assert!(found.partial > 50 && found.complete > 100 && found.examples > 300, "{found:?}");
}
