//! Selects the cases to run on a broker, and simulates them with divided times.

use super::observation::Observation;
use super::scale::Scale;
use crate::cases::{Case, Subject, TestFile};
use crate::contract::Contract;
use crate::expand::Expansion;
use crate::model::record_kinds::RecordKind;
use crate::model::units::duration;
use crate::model::{ArgumentValue, Desired, QueueName, QueueType, Topology};
use crate::rabbitmq::BrokerProfile;
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
    /// The cases that do not run on the broker, by their position among the selected cases, with the reason.
    pub not_run: Vec<(usize, String)>,
    /// The topology with divided times.
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
    /// The simulated result, with the times of the spec.
    pub outcome: Outcome,
    pub(super) publication: Publication,
    pub(super) workers: BTreeMap<QueueName, Worker>,
    /// The simulated time of the last event, in milliseconds, with divided times.
    pub(super) ended_at: i64,
    /// The simulated result, with divided times.
    pub(super) simulated: Observation,
}

/// Prepares the cases whose names contain `filter`. The version must be the version of the broker. Without a scale, the
/// largest possible one is used. Cases that would take longer than `time_limit` do not run.
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
    let publications = selected.iter().map(|case| (&case.publication.value, !case.workers.is_empty()));
    let scale = scale.unwrap_or_else(|| Scale::largest(subject.routing(), &workers, publications));
    let scaled = scaled(expansion, scale);
    let scaled_policies = scaled.topology.operator_policies();
    let scaled_subject = Subject::new((spec, &scaled), &scaled_policies, profile);
    let (exact, divided) = (subject.simulation(), scaled_subject.simulation());
    let (mut cases, mut not_run) = (Vec::new(), Vec::new());
    for (index, case) in selected.into_iter().enumerate() {
        if case.only.is_some_and(|only| !only.is_met_by(profile.version)) {
            continue;
        }
        let (publication, workers) = (scale.publication(&case.publication.value), case.workers());
        let expected = exact.run(&case.publication.value, &workers);
        let simulated = divided.run(&publication, &workers);
        let external = (!expansion.scope.external.is_empty())
            .then(|| "the spec uses external objects, which a scratch vhost does not contain".to_owned());
        match external.or_else(|| obstacle(&expected, &simulated, &expansion.topology, time_limit)) {
            Some(reason) => not_run.push((index, reason)),
            None => cases.push(RunnableCase {
                index,
                outcome: expected,
                publication,
                workers,
                ended_at: simulated.ended_at,
                simulated: Observation::of_simulation(&simulated),
            }),
        }
    }
    let contracts = scaled_subject.contracts().clone();
    Preparation { scale, cases, not_run, desired: desired(&scaled), contracts }
}

/// Returns the expansion with divided times.
fn scaled(expansion: &Expansion, scale: Scale) -> Expansion {
    let mut scaled = expansion.clone();
    scale.apply(&mut scaled.topology);
    scaled
}

/// Returns the objects to declare. Limits and the guard of the cluster name concern other vhosts and brokers.
fn desired(scaled: &Expansion) -> Desired {
    let mut desired = scaled.clone().into_desired();
    desired.topology.records.retain(|id, _| id.kind == RecordKind::OperatorPolicy);
    desired.scope = Default::default();
    desired
}

/// Returns the reason why a case does not run on the broker; `None` if it runs.
fn obstacle(expected: &Outcome, simulated: &Outcome, topology: &Topology, time_limit: Duration) -> Option<String> {
    if let Some(reason) = expected.unknown.first() {
        return Some(format!("the simulation does not know the result: {reason}"));
    }
    let has_loops = expected.ends.iter().any(|copy| copy.end == End::Loops);
    if has_loops {
        return Some("a message is delivered indefinitely".to_owned());
    }
    let [mut exact, mut divided] = [expected, simulated].map(Observation::of_simulation);
    for observation in [&mut exact, &mut divided] {
        observation.attempts.values_mut().flatten().for_each(|time| *time = 0);
    }
    if exact != divided {
        return Some("divided times change the result; use --time-scale 1".to_owned());
    }
    // The broker refuses `basic.get` for such a queue.
    let is_unreadable = |name: &QueueName| {
        topology.queues.get(name).is_some_and(|queue| {
            let is_single =
                queue.arguments.get("x-single-active-consumer").is_some_and(|it| *it == ArgumentValue::Boolean(true));
            is_single && queue.queue_type() == Some(QueueType::Quorum)
        })
    };
    if let Some(queue) = divided.ready().keys().find(|name| is_unreadable(name)) {
        return Some(format!("topo cannot read messages from {queue}, a quorum queue with a single active consumer"));
    }
    let limit = i64::try_from(time_limit.as_millis()).unwrap_or(i64::MAX);
    let time = |milliseconds| duration(milliseconds).unwrap_or_else(|| "0s".to_owned());
    (simulated.ended_at > limit)
        .then(|| format!("it takes {}; the limit is {} (--time-limit)", time(simulated.ended_at), time(limit)))
}
