//! Defines a case, its spec, and its result in the simulation.

use std::collections::BTreeMap;

use topo::contract::contracts;
use topo::expand::expand;
use topo::model::{ArgumentValue, Arguments, BrokerVersion, ExchangeName, QueueName};
use topo::rabbitmq::BrokerProfile;
use topo::rabbitmq::routing::Routing;
use topo::simulation::{
    Behavior, End, Outcome as Simulated, Publication, PublisherResult, Simulation, Worker as SimulatedWorker,
};
use topo::spec::{SourceFile, Variables, parse};

/// The maximum number of deliveries of a case. After them, a worker acknowledges.
pub(super) const MAX_DELIVERIES: usize = 60;

/// A queue `work.N` with a dead-letter queue, published messages, and the behaviors of the worker of `work.N`.
#[derive(Clone, Debug)]
pub(in crate::live) struct Case {
    /// The keys of `work.N`; `N` is replaced by the number of the case.
    pub(in crate::live) work: String,
    /// The keys of the dead-letter queue `dead.N`.
    pub(in crate::live) dead: String,
    /// The exchange to which the messages are published; empty for the default exchange. `x.N` is a topic exchange with
    /// the alternate exchange `alt.N`, to which `other.N` is bound.
    pub(in crate::live) exchange: &'static str,
    pub(in crate::live) key: &'static str,
    /// A header `CC` or `BCC` with these keys.
    pub(in crate::live) more_keys: Option<(&'static str, &'static str)>,
    pub(in crate::live) count: u64,
    pub(in crate::live) expiration: Option<i64>,
    /// The behaviors at the deliveries; the last one repeats. `None`: no worker.
    pub(in crate::live) behaviors: Option<Vec<Behavior>>,
}

/// The result of a case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Result {
    pub(super) publisher: BTreeMap<PublisherResult, u64>,
    pub(super) deliveries: usize,
    /// The copies that stay in queues: the queue, the reason of the last death, the number of entries of `x-death`, and the
    /// sum of their counts.
    pub(super) ends: BTreeMap<(String, String, usize, u64), usize>,
}

impl Case {
    pub(in crate::live) fn numbered(text: &str, number: usize) -> String {
        text.replace(".N", &format!(".{number}"))
    }

    /// Returns the headers of the messages.
    pub(super) fn headers(&self, number: usize) -> Arguments {
        let header = self
            .more_keys
            .map(|(name, key)| (name.to_owned(), ArgumentValue::List(vec![Self::numbered(key, number).into()])));
        header.into_iter().collect()
    }
}

/// Returns the spec of a batch of cases.
pub(in crate::live) fn spec(batch: &[Case]) -> String {
    let (mut exchanges, mut queues, mut dead) = (String::new(), String::new(), String::new());
    for (number, case) in batch.iter().enumerate() {
        exchanges += "  x.N: {type: topic, alternateExchange: alt.N}\n  alt.N: {type: fanout}\n";
        queues += &format!("  work.N: {{{}}}\n", case.work);
        queues += "  other.N: {type: classic, deadLetter: none, bindings: [{exchange: alt.N}]}\n";
        dead += &format!("  dead.N: {{{}}}\n", case.dead);
        for text in [&mut exchanges, &mut queues, &mut dead] {
            *text = Case::numbered(text, number);
        }
    }
    format!("exchanges:\n{exchanges}queues:\n{queues}deadLetterQueues:\n{dead}")
}

/// Returns the result of a case in the simulation.
pub(super) fn simulated(batch: &[Case], number: usize, version: &str) -> Result {
    let (case, queue) = (&batch[number], QueueName::new(format!("work.{number}")));
    let text = format!("version: 1\nvhost: test\n{}", spec(batch));
    let specs = parse(&[SourceFile { name: "topology.yaml".to_owned(), text }], &Variables::default()).unwrap();
    let (spec, profile) = (&specs.vhosts[0], BrokerProfile::of(version.parse::<BrokerVersion>().unwrap()));
    let expansion = expand(spec, &profile).unwrap();
    let routing = Routing::new(&expansion.topology, [], &expansion.scope.external, &profile);
    let contracts = contracts(spec, &expansion, &profile).queues;
    let worker = case.behaviors.as_ref().map(|behaviors| {
        let last = std::iter::repeat_n(*behaviors.last().unwrap(), MAX_DELIVERIES - behaviors.len());
        let end = std::iter::repeat_n(Behavior::Ack, 100);
        SimulatedWorker::Each(behaviors.iter().copied().chain(last).chain(end).collect())
    });
    let workers: BTreeMap<QueueName, SimulatedWorker> =
        worker.into_iter().map(|worker| (queue.clone(), worker)).collect();
    let publication = Publication {
        exchange: ExchangeName::new(Case::numbered(case.exchange, number)),
        routing_key: Case::numbered(case.key, number),
        headers: case.headers(number),
        expiration: case.expiration,
        count: case.count,
    };
    let outcome: Simulated = Simulation::new(&routing, &contracts, &profile).run(&publication, &workers);
    assert!(outcome.unknown.is_empty(), "{:?}", outcome.unknown);
    let mut ends = BTreeMap::new();
    for copy in &outcome.ends {
        let reason = match copy.end {
            End::Waiting => String::new(),
            End::Dead(reason) => reason.to_string(),
            End::Acked | End::Dropped => continue,
            End::Held | End::Loops => panic!("{copy:?}"),
        };
        let count = copy.deaths.iter().map(|death| death.count).sum();
        *ends.entry((copy.queue.to_string(), reason, copy.deaths.len(), count)).or_default() += 1;
    }
    Result { publisher: outcome.publisher, deliveries: outcome.attempts.get(&queue).map_or(0, Vec::len), ends }
}
