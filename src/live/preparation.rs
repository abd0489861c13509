//! Selects the cases to run on a broker, and simulates them with scaled times.

use super::observation::{Compared, Observation};
use super::scale::Scale;
use crate::cases::{Case, Subject, TestFile};
use crate::contract::Contract;
use crate::expand::Expansion;
use crate::model::message_headers::{ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, RETRY_COUNT};
use crate::model::record_kinds::RecordKind;
use crate::model::units::duration;
use crate::model::{Desired, ObjectId, QueueName, QueueType, Topology};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use crate::simulation::{End, Outcome, Publication, Worker};
use crate::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The cases of a file that can run on a broker.
pub struct Preparation {
    /// The number by which times are divided.
    pub scale: Scale,
    /// The cases to run.
    pub cases: Vec<RunnableCase>,
    /// The cases that do not run on the broker, each with its position among the selected cases and the reason.
    pub not_run: Vec<(usize, String)>,
    /// The topology with scaled times.
    pub(super) desired: Desired,
    /// The contracts of the queues.
    pub(super) contracts: BTreeMap<QueueName, Contract>,
}

impl Preparation {
    /// Returns the default queue type of the vhost; `None` if the spec sets none.
    pub fn default_queue_type(&self) -> Option<String> {
        self.desired.topology.settings.as_ref()?.default_queue_type.clone()
    }
}

/// A case to run on a broker.
pub struct RunnableCase {
    /// The position among the selected cases.
    pub index: usize,
    /// The simulated result, based on the times in the spec.
    pub outcome: Outcome,
    pub(super) publication: Publication,
    pub(super) workers: BTreeMap<QueueName, Worker>,
    /// The time of the last event in the simulation with scaled times, in milliseconds.
    pub(super) ended_at: i64,
    /// The time of the first event after the publish in the simulation with scaled times, in milliseconds; `None` if
    /// there is no such event.
    pub(super) first_event: Option<i64>,
    /// The components of messages to compare.
    pub(super) compared: Compared,
    /// The simulated result, based on scaled times.
    pub(super) simulated: Observation,
}

/// Prepares the cases whose names contain `filter`. The version of `profile` must be the version of the broker. If the
/// scale is `None`, topo uses the largest reliable scale. Cases that would take longer than `time_limit` do not run.
pub fn prepare(
    file: &TestFile,
    filter: &str,
    (spec, expansion): (&Spec, &Expansion),
    profile: &BrokerProfile,
    (scale, time_limit): (Option<Scale>, Duration),
) -> Preparation {
    let operator_policies = expansion.topology.operator_policies();
    let subject = Subject::new((spec, expansion), &operator_policies, profile);
    let selected: Vec<&Case> = file.cases.iter().filter(|case| case.name.contains(filter)).collect();
    let workers: BTreeSet<&QueueName> = selected.iter().flat_map(|case| case.workers.keys()).collect();
    let exact = subject.simulation();
    let outcomes: Vec<Outcome> =
        selected.iter().map(|case| exact.run(&case.publication.value, &case.workers())).collect();
    let mut counts: BTreeMap<QueueName, u64> = BTreeMap::new();
    for (case, outcome) in selected.iter().zip(&outcomes) {
        for queue in &outcome.reached {
            let count = counts.entry(queue.clone()).or_default();
            *count = case.publication.value.count.max(*count);
        }
    }
    let publications = selected.iter().map(|case| (&case.publication.value, !case.workers.is_empty()));
    let scale = scale.unwrap_or_else(|| Scale::largest(subject.routing(), &workers, &counts, publications));
    let scaled = scaled(expansion, scale);
    let scaled_policies = scaled.topology.operator_policies();
    let scaled_subject = Subject::new((spec, &scaled), &scaled_policies, profile);
    let divided = scaled_subject.simulation();
    let (mut cases, mut not_run) = (Vec::new(), Vec::new());
    for (index, (case, expected)) in selected.into_iter().zip(outcomes).enumerate() {
        if case.only.is_some_and(|only| !only.is_met_by(profile.version)) {
            continue;
        }
        let (publication, workers) = (scale.publication(&case.publication.value), case.workers());
        let simulated = divided.run(&publication, &workers);
        let is_predeclared = |id: &ObjectId| matches!(id, ObjectId::Exchange(name) if name.is_predeclared());
        let external = (!expansion.scope.external.iter().all(is_predeclared))
            .then(|| "at least one external object has no stand-in; add it to `standIns` in the test file".to_owned());
        let depends_on_speed = || {
            depends_on_speed(&publication, &workers, scaled_subject.routing())
                .then(|| "its result depends on the speed of the worker".to_owned())
        };
        let reason = external.or_else(depends_on_speed);
        match reason.or_else(|| reason_not_run(&expected, &simulated, &expansion.topology, time_limit)) {
            Some(reason) => not_run.push((index, reason)),
            None => {
                let set = [RETRY_COUNT, ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY].map(str::to_owned);
                let headers = publication.headers.keys().cloned().chain(set).collect();
                let compared = Compared { headers, numbers: publication.count > 1 && workers.is_empty() };
                cases.push(RunnableCase {
                    index,
                    outcome: expected,
                    ended_at: simulated.ended_at,
                    first_event: simulated.events.iter().map(|event| event.at).find(|at| *at > 0),
                    simulated: Observation::of_simulation(&simulated, &compared),
                    publication,
                    workers,
                    compared,
                });
            }
        }
    }
    let contracts = scaled_subject.contracts().clone();
    Preparation { scale, cases, not_run, desired: desired(&scaled), contracts }
}

/// Returns the expansion with scaled times.
fn scaled(expansion: &Expansion, scale: Scale) -> Expansion {
    let mut scaled = expansion.clone();
    scale.apply(&mut scaled.topology);
    scaled
}

/// Returns true if the result depends on whether a worker replies before the next message is published. If a case
/// publishes several messages to a slow worker, messages can overflow or expire, or the worker can receive them in a
/// different order.
fn depends_on_speed(publication: &Publication, workers: &BTreeMap<QueueName, Worker>, routing: &Routing<'_>) -> bool {
    let is_sensitive = |(name, worker): (&QueueName, &Worker)| {
        let queue = routing.topology().queues.get(name);
        let settings = queue.map(|queue| routing.settings_of(name, queue));
        let is_limited = settings.is_some_and(|settings| settings.has("max-length") || settings.has("message-ttl"));
        let is_uniform = match worker {
            Worker::Always(_) => true,
            Worker::Each(behaviors) => behaviors.windows(2).all(|pair| pair.first() == pair.last()),
        };
        is_limited || publication.expiration.is_some() || !is_uniform
    };
    publication.count > 1 && workers.iter().any(is_sensitive)
}

/// Returns the objects to declare. Removes the scope, and all records except operator policies. For example, vhost
/// limits and the cluster name apply only to the spec's vhost and broker.
fn desired(scaled: &Expansion) -> Desired {
    let mut desired = scaled.clone().into_desired();
    desired.topology.records.retain(|id, _| id.kind == RecordKind::OperatorPolicy);
    desired.scope = Default::default();
    desired
}

/// Returns the reason why a case does not run on the broker; `None` if it runs.
fn reason_not_run(
    expected: &Outcome,
    simulated: &Outcome,
    topology: &Topology,
    time_limit: Duration,
) -> Option<String> {
    if let Some(reason) = expected.unknown.first() {
        return Some(format!("topo cannot determine the result: {reason}"));
    }
    let has_loops = expected.ends.iter().any(|copy| copy.end == End::Loops);
    if has_loops {
        return Some("a message loops indefinitely".to_owned());
    }
    let compared = Compared::default();
    let [mut exact, mut divided] = [expected, simulated].map(|outcome| Observation::of_simulation(outcome, &compared));
    for observation in [&mut exact, &mut divided] {
        observation.attempts.values_mut().flatten().for_each(|time| *time = 0);
    }
    if exact != divided {
        return Some("shorter times change the result; use --time-scale 1".to_owned());
    }
    // The broker refuses `basic.get` on a quorum queue with a single active consumer.
    let is_unreadable = |name: &QueueName| {
        let queue = topology.queues.get(name);
        queue.is_some_and(|it| it.has_single_active_consumer() && it.queue_type() == Some(QueueType::Quorum))
    };
    if let Some(queue) = divided.ready().keys().find(|name| is_unreadable(name)) {
        return Some(format!("topo cannot read messages from {queue}, a quorum queue with a single active consumer"));
    }
    let limit = i64::try_from(time_limit.as_millis()).unwrap_or(i64::MAX);
    let time = |milliseconds| duration(milliseconds).unwrap_or_else(|| "0s".to_owned());
    (simulated.ended_at > limit)
        .then(|| format!("the case takes {}; --time-limit is {}", time(simulated.ended_at), time(limit)))
}
