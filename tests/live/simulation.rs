//! Compares the simulation of `topo test` with brokers: the queues that a message reaches, the deliveries to a worker, and
//! the ends. Workers follow their contracts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lapin::protocol::basic::AMQPProperties;
use serde_json::Value;

use crate::support::worker::{as_text, header};
use crate::support::{Message, Node, Outcome, Topo, Vhost, Worker};
use topo::contract::contracts;
use topo::expand::expand;
use topo::model::{BrokerVersion, ExchangeName, QueueName};
use topo::rabbitmq::BrokerProfile;
use topo::rabbitmq::routing::Routing;
use topo::simulation::{Behavior, End, Outcome as Simulated, Publication, Simulation, Worker as SimulatedWorker};
use topo::spec::{SourceFile, Variables, parse};

/// The time without a delivery after which nothing moves any more. The delays of the specs are shorter.
const QUIET: Duration = Duration::from_millis(1_500);

/// A spec, a published message, and the behaviors of the worker of `work`; the last behavior repeats.
struct Case {
    spec: &'static str,
    exchange: &'static str,
    key: &'static str,
    behaviors: Option<&'static [Behavior]>,
}

/// The result on a broker or in the simulation.
#[derive(Debug, PartialEq, Eq)]
struct Result {
    routed: bool,
    /// The routing keys of the deliveries to the worker.
    deliveries: usize,
    /// The queues in which copies stay, with the reason of the last death and the number of entries of `x-death`.
    ends: BTreeSet<(String, String, usize)>,
}

fn simulated(case: &Case, version: &str) -> Result {
    let text = format!("version: 1\nvhost: test\n{}", case.spec);
    let specs = parse(&[SourceFile { name: "topology.yaml".to_owned(), text }], &Variables::default()).unwrap();
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(version.parse::<BrokerVersion>().unwrap()));
    let expansion = expand(spec, &profile).unwrap();
    let routing = Routing::new(&expansion.topology, [], &expansion.scope.external, &profile);
    let contracts = contracts(spec, &expansion, &profile).queues;
    let worker = case.behaviors.map(|behaviors| {
        let last = *behaviors.last().unwrap();
        let more = std::iter::repeat_n(last, 50);
        SimulatedWorker::Each(behaviors.iter().copied().chain(more).collect())
    });
    let workers: BTreeMap<QueueName, SimulatedWorker> =
        worker.into_iter().map(|worker| (QueueName::new("work"), worker)).collect();
    let publication = Publication {
        exchange: ExchangeName::new(case.exchange),
        routing_key: case.key.to_owned(),
        headers: BTreeMap::new(),
        expiration: None,
        count: 1,
    };
    let outcome: Simulated = Simulation::new(&routing, &contracts, &profile).run(&publication, &workers);
    assert!(outcome.unknown.is_empty(), "{:?}", outcome.unknown);
    let ends = outcome.ends.iter().filter_map(|copy| {
        let reason = match copy.end {
            End::Waiting => String::new(),
            End::Dead(reason) => reason.to_string(),
            End::Acked | End::Dropped => return None,
            End::Held | End::Loops => panic!("{copy:?}"),
        };
        Some((copy.queue.to_string(), reason, copy.deaths.len()))
    });
    Result {
        routed: !outcome.routed_to.is_empty(),
        deliveries: outcome.attempts.get(&QueueName::new("work")).map_or(0, Vec::len),
        ends: ends.collect(),
    }
}

fn live(case: &Case, vhost: &Vhost<'_>) -> Result {
    let topo = Topo::new(vhost).spec(case.spec);
    topo.run(["apply", "topology.yaml", "--yes", "--quiet"]).expect_code(0);
    let version = vhost.node().version();
    let contract = topo.run(["contract", "topology.yaml", "--format", "json", "--broker-version", version]);
    let contract = contract.expect_code(0).json()["vhosts"][vhost.name()]["queues"]["work"].clone();
    let amqp = vhost.amqp();
    let properties = AMQPProperties::default().with_delivery_mode(2);
    let published = amqp.publish_with(case.exchange, case.key, "1", properties);
    let deliveries = case.behaviors.map_or(0, |behaviors| work(&amqp, &contract, behaviors));
    if case.behaviors.is_none() {
        // Nothing moves any more when the longest time to live of the specs is over.
        std::thread::sleep(QUIET);
    }
    let names = vhost.names("queues");
    let ends = names.iter().filter(|name| *name != "topo.lock").flat_map(|name| {
        let mut found = Vec::new();
        while let Some(message) = amqp.get(name) {
            found.push((name.clone(), reason(&message), deaths(&message)));
        }
        found
    });
    Result { routed: published == Outcome::Routed, deliveries, ends: ends.collect() }
}

/// Receives the deliveries of `work`, and reacts. Returns the number of deliveries.
fn work(amqp: &crate::support::Amqp, contract: &Value, behaviors: &[Behavior]) -> usize {
    let mut worker = Worker::of(amqp, "work", contract);
    let (mut deliveries, mut last) = (0, Instant::now());
    while last.elapsed() < QUIET {
        let Some(work) = worker.next(Duration::from_millis(100)) else { continue };
        let behavior = behaviors.get(deliveries).or(behaviors.last()).unwrap();
        deliveries += 1;
        last = Instant::now();
        match behavior {
            Behavior::Fail => worker.fail(work),
            Behavior::GiveUp => worker.give_up(work),
            Behavior::Ack => worker.acknowledge(&work),
            other => panic!("{other:?}"),
        }
    }
    deliveries
}

fn reason(message: &Message) -> String {
    let deaths = header(&message.properties, "x-death").and_then(|it| it.as_array().cloned());
    let newest = deaths.and_then(|deaths| deaths.as_slice().first().and_then(|it| it.as_field_table().cloned()));
    let reason = newest.and_then(|death| death.inner().get("reason").and_then(as_text));
    reason.unwrap_or_default()
}

fn deaths(message: &Message) -> usize {
    let deaths = header(&message.properties, "x-death").and_then(|it| it.as_array().cloned());
    deaths.map_or(0, |deaths| deaths.as_slice().len())
}

const DEAD: &str = "deadLetterQueues: {dead: {type: classic}}\n";

#[test]
fn simulation_agrees_with_brokers() {
    let node = Node::shared();
    let fail: Option<&[Behavior]> = Some(&[Behavior::Fail]);
    let give_up: Option<&[Behavior]> = Some(&[Behavior::GiveUp]);
    let second: Option<&[Behavior]> = Some(&[Behavior::Fail, Behavior::Ack]);
    let mut cases = Vec::new();
    for spec in [
        "queues: {work: {type: classic, deadLetter: dead, retry: {delays: [100ms, 300ms]}}}\n",
        "queues: {work: {type: quorum, deadLetter: dead, retry: {delays: [100ms, 300ms]}}}\n",
        "queues: {work: {type: classic, deadLetter: dead, retry: {strategy: republish, delays: [100ms, 200ms]}}}\n",
        "queues: {work: {type: quorum, deadLetter: dead, maxRetries: 2, retry: {strategy: republish}}}\n",
        "queues: {work: {type: quorum, deadLetter: dead, maxRetries: 2, retry: {strategy: redeliver}}}\n",
        "queues: {work: {type: classic, deadLetter: dead}}\n",
    ] {
        for behaviors in [fail, give_up, second] {
            cases.push((spec, "", "work", behaviors));
        }
    }
    let routes = "exchanges: {x: {type: topic, alternateExchange: alt}, alt: {type: fanout}}\n\
                  queues:\n  work: {type: classic, messageTtl: 200ms, deadLetter: dead, bindings: [{exchange: x, routingKey: \
                  'a.#'}]}\n  other: {type: classic, deadLetter: none, bindings: [{exchange: alt}]}\n";
    cases.extend([(routes, "x", "a.b", None), (routes, "x", "b", None), (routes, "alt", "", None)]);
    let cycle = "queues:\n  work: {type: classic, messageTtl: 100ms, deadLetter: {exchange: '', routingKey: wait}}\n  \
                 wait: {type: classic, messageTtl: 100ms, deadLetter: {exchange: '', routingKey: work}}\n";
    cases.push((cycle, "", "work", None));
    for (spec, exchange, key, behaviors) in cases {
        let spec: &'static str = Box::leak(format!("{spec}{DEAD}").into_boxed_str());
        let case = Case { spec, exchange, key, behaviors };
        let vhost = node.vhost("simulation");
        assert_eq!(live(&case, &vhost), simulated(&case, node.version()), "{spec} {behaviors:?}");
    }
}
