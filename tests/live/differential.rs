//! Runs random pairs of a current and a desired queue. topo's verdict equals the broker's response on every tested
//! version.
//!
//! For each pair, the test sends two declarations over HTTP: a redeclaration of the current queue with the desired
//! arguments, and a declaration of a new queue. It also sends some declarations over AMQP. topo's verdict comes from
//! the code and the reads of a plan. `TOPO_SEED` repeats a run; `TOPO_LONG=1` runs more rounds.

mod answer;
mod application;
mod argument_table;
mod coverage;
mod generate;
pub(super) mod queues;
mod shrink;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use secrecy::SecretString;
use serde_json::json;
use topo::broker::{BaseUrl, Broker, ConnectionOptions, Snapshot};
use topo::model::{QueueName, VhostName};
use topo::plan::Verdict;

use self::answer::{Reply, fresh_agrees, judge, make, predict, put};
use self::application::{OverAmqp, again, fresh};
use self::argument_table::{Entry, listed};
use self::coverage::Met;
use self::generate::{Family, PAIRS, family};
use self::queues::Live;
use self::shrink::{Pair, scenario, shrink};
use super::differential_report::Wrong;
use crate::support::{Amqp, Node, Options, Random, Vhost, block_on, cases, seed};

/// The number of comparisons in one round.
const PAIRS_OF_A_ROUND: usize = 700;
/// Rounded up to whole families.
const FAMILIES: usize = PAIRS_OF_A_ROUND.div_ceil(PAIRS);
/// The number of rounds in a short run and in a long run.
const ROUNDS: [usize; 2] = [1, 30];
/// The maximum number of additional rounds for rare events.
const FURTHER_ROUNDS: usize = 4;
/// The number of concurrent requests.
const AT_ONCE: usize = 8;
/// Every n-th pair is also redeclared over AMQP, and every n-th desired queue is also declared over AMQP.
const ONE_OVER_AMQP: usize = 16;
const ONE_FRESH_OVER_AMQP: usize = 5;
/// The minimum number of responses of each kind over AMQP.
const ENOUGH_OVER_AMQP: usize = 15;
/// The default queue types of the vhosts of a round. Streams exist from 3.9 on, defaults from 3.10.8 on.
const DEFAULTS: [Option<&str>; 6] = [None, None, None, Some("classic"), Some("quorum"), Some("stream")];

fn broker(node: &Node) -> Broker {
    let url = BaseUrl::parse(&node.url()).unwrap().url;
    Broker::connect(ConnectionOptions::new(url, "guest", SecretString::from("guest"))).unwrap()
}

/// Creates a vhost with a default queue type, if the version supports it.
fn vhost<'node>(node: &'node Node, default: Option<&str>) -> Vhost<'node> {
    let settings = default.map_or_else(
        || json!({}),
        // Also sends the first name of the setting, which 3.10 supports.
        |kind| json!({"default_queue_type": kind, "defaultqueuetype": kind}),
    );
    node.vhost_with("differential", &settings)
}

fn read(node: &Node, vhosts: &[(Option<&str>, Vhost<'_>)]) -> Vec<Snapshot> {
    let names: Vec<VhostName> = vhosts.iter().map(|(_, vhost)| VhostName::from(vhost.name())).collect();
    block_on(broker(node).read(&names)).unwrap()
}

/// Calls a function with every number below the bound, in parallel. Stops at the first error.
fn in_parallel<E: Send>(below: usize, work: impl Fn(usize) -> Result<(), E> + Sync) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= below || failed.lock().unwrap().is_some() {
                        break;
                    }
                    if let Err(error) = work(number) {
                        failed.lock().unwrap().get_or_insert(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap().map_or(Ok(()), Err)
}

/// A round: families of definitions in several vhosts.
struct Round<'node> {
    node: &'node Node,
    vhosts: Vec<(Option<&'static str>, Vhost<'node>)>,
    /// The families, each with the index of its vhost.
    families: Vec<(usize, Family)>,
}

/// A disagreement and the pair that causes it.
type Failed = Box<(Pair, Wrong)>;

impl<'node> Round<'node> {
    fn draw(node: &'node Node, seed: u64, numbers: std::ops::Range<usize>, defaults: &[Option<&'static str>]) -> Self {
        let vhosts: Vec<_> = defaults.iter().map(|default| (*default, vhost(node, *default))).collect();
        let snapshots = read(node, &vhosts);
        let families = numbers.map(|number| {
            let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
            // Chosen at random, so that a repeated argument is in another vhost.
            let place = random.below(vhosts.len());
            (place, family(&mut random, number, &snapshots[place].profile))
        });
        let families = families.collect();
        Self { node, vhosts, families }
    }

    /// Returns a round with all listed arguments, in one vhost without a default.
    fn listed(node: &'node Node, entries: &[Entry]) -> Self {
        let families = entries.iter().map(|entry| (0, entry.family())).collect();
        Self { node, vhosts: vec![(None, vhost(node, None))], families }
    }

    fn name(family: usize, live: usize) -> String {
        format!("live-{family}-{live}")
    }

    /// Declares all current queues. topo must predict every refusal.
    fn make(&self) -> Result<Vec<Vec<bool>>, Failed> {
        let snapshots = read(self.node, &self.vhosts);
        let connections: Vec<Amqp> = self.vhosts.iter().map(|(_, vhost)| vhost.amqp()).collect();
        let made = Mutex::new(vec![Vec::new(); self.families.len()]);
        in_parallel(self.families.len(), |number| {
            let (place, family) = &self.families[number];
            let (default, vhost) = &self.vhosts[*place];
            let http = self.node.http();
            for (index, live) in family.lives.iter().enumerate() {
                let reply = make(&http, &connections[*place], vhost, &Self::name(number, index), live);
                let predicted = predict(&snapshots[*place], "fresh", &live.definition);
                fresh_agrees(predicted.refused.as_deref(), &reply).map_err(|wrong| {
                    let pair = Pair { live: live.clone(), desired: live.definition.clone(), default: *default };
                    Box::new((pair, wrong))
                })?;
                made.lock().unwrap()[number].push(matches!(reply, Reply::Accepted(_)));
            }
            Ok::<(), Failed>(())
        })?;
        Ok(made.into_inner().unwrap())
    }

    /// Sends the declarations of every pair, and compares the responses with the predictions.
    fn ask(&self) -> Result<(Met, OverAmqp), Failed> {
        let made = self.make()?;
        let snapshots = read(self.node, &self.vhosts);
        let connections: Vec<Amqp> = self.vhosts.iter().map(|(_, vhost)| vhost.amqp()).collect();
        let met = Mutex::new((Met::default(), OverAmqp::default()));
        in_parallel(self.families.len(), |number| {
            let (place, family) = &self.families[number];
            let (default, vhost) = &self.vhosts[*place];
            let http = self.node.http();
            for (index, desired) in family.desired.iter().enumerate() {
                let is_new = put(&http, vhost, &format!("fresh-{number}-{index}"), desired);
                if (number + index).is_multiple_of(ONE_FRESH_OVER_AMQP) && !desired.contains_null() {
                    let received =
                        fresh(vhost, &format!("amqp-{number}-{index}"), desired, &is_new).map_err(|wrong| {
                            let live = Live { definition: desired.clone(), widths: None };
                            Box::new((Pair { live, desired: desired.clone(), default: *default }, wrong))
                        })?;
                    met.lock().unwrap().1.fresh.add(received);
                }
                for (other, live) in family.lives.iter().enumerate().filter(|(other, _)| made[number][*other]) {
                    let name = Self::name(number, other);
                    let predicted = predict(&snapshots[*place], &name, desired);
                    let reply = put(&http, vhost, &name, desired);
                    let pair = || Pair { live: live.clone(), desired: desired.clone(), default: *default };
                    let verdict = judge(live, desired, &predicted, (&reply, &is_new))
                        .map_err(|wrong| Box::new((pair(), wrong)))?;
                    let is_sample = (number + index * family.lives.len() + other).is_multiple_of(ONE_OVER_AMQP);
                    let is_sample = is_sample && !desired.contains_null();
                    let mut received = None;
                    if is_sample {
                        let answer = again(&connections[*place], &name, (live, desired), &predicted, &reply);
                        received = Some(answer.map_err(|wrong| Box::new((pair(), wrong)))?);
                    }
                    let (met, over_amqp) = &mut *met.lock().unwrap();
                    met.count(live, desired, verdict, &predicted);
                    received.into_iter().for_each(|received| over_amqp.again.add(received));
                }
            }
            Ok::<(), Failed>(())
        })?;
        let after = read(self.node, &self.vhosts);
        for (number, (place, family)) in self.families.iter().enumerate() {
            for (index, live) in family.lives.iter().enumerate() {
                let name = QueueName::new(Self::name(number, index));
                let (before, after) = (&snapshots[*place].topology.queues, &after[*place].topology.queues);
                assert_eq!(before.get(&name), after.get(&name), "an answer changed {live:?}");
            }
        }
        Ok(met.into_inner().unwrap())
    }
}

/// Runs a round, and reduces a disagreement.
fn agree(round: &Round<'_>, seed: u64) -> (Met, OverAmqp) {
    match round.ask() {
        Ok(met) => met,
        Err(failed) => {
            let (pair, wrong) = *failed;
            println!("{wrong}\n{pair:?}\nmaking it smaller");
            let (pair, wrong) = shrink(round.node, pair, wrong);
            panic!("TOPO_SEED={seed}\n{}", scenario(&pair, wrong));
        }
    }
}

/// Checks that every argument has exactly the listed verdicts for each type on this version.
fn arguments_have_the_listed_verdicts(node: &Node, entries: &[Entry], seed: u64) -> (Met, OverAmqp) {
    let (met, over_amqp) = agree(&Round::listed(node, entries), seed);
    for entry in entries {
        let verdicts: BTreeSet<Verdict> = met.of(entry).into_keys().collect();
        assert_eq!(verdicts, entry.verdicts(), "{entry:?}");
    }
    (met, over_amqp)
}

#[test]
fn verdicts_match_the_broker() {
    let node = Node::shared();
    let seed = seed();
    let rounds = cases(ROUNDS[0], ROUNDS[1]);
    println!("TOPO_SEED={seed}, RabbitMQ {}", node.version());
    let started = Instant::now();
    let entries = listed(node.version().parse().unwrap());
    let (mut met, mut over_amqp) = arguments_have_the_listed_verdicts(node, &entries, seed);
    for round in 0..rounds {
        let round = Round::draw(node, seed, round * FAMILIES..(round + 1) * FAMILIES, &DEFAULTS);
        let (more, received) = agree(&round, seed);
        met.add(more);
        over_amqp.extend(received);
    }
    // Additional rounds for events that occurred too rarely, so that the test does not fail by chance.
    let mut round = rounds * FAMILIES;
    let is_enough =
        |met: &Met, received: &OverAmqp| met.missing(&entries).is_empty() && received.least() >= ENOUGH_OVER_AMQP;
    while !is_enough(&met, &over_amqp) && round < (rounds + FURTHER_ROUNDS) * FAMILIES {
        let (more, received) = agree(&Round::draw(node, seed, round..round + FAMILIES / 4, &DEFAULTS), seed);
        met.add(more);
        over_amqp.extend(received);
        round += FAMILIES / 4;
    }
    println!("{} pairs in {} s; over AMQP, too: {over_amqp}", met.pairs(), started.elapsed().as_secs());
    met.print(&entries);
    assert!(met.pairs() >= rounds * PAIRS_OF_A_ROUND, "TOPO_SEED={seed}: only {} pairs", met.pairs());
    assert!(over_amqp.least() >= ENOUGH_OVER_AMQP, "TOPO_SEED={seed}: over AMQP only {over_amqp}");
    let missing = met.missing(&entries);
    assert!(missing.is_empty(), "TOPO_SEED={seed}: {}", missing.join(", "));
}

/// From 4.0 on, a node has a separate default queue type, which the API shows.
#[test]
fn default_queue_type_of_the_node_is_used() {
    let line = "default_queue_type = quorum";
    if Node::shared().at_least(4, 0) {
        let node = Node::start(Options::default().line(line));
        let seed = seed();
        agree(&Round::draw(&node, seed, 0..6, &[None]), seed);
    } else {
        Node::expect_unknown(line);
    }
}
