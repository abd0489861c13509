//! Finds the parts of a topology's routing, and defines the scenarios in which queues dead-letter messages.

use super::subject::Subject;
use crate::contract::Method;
use crate::expand::CreatedFor;
use crate::model::{Arguments, ExchangeName, ObjectId, QueueName, QueueType};
use crate::rabbitmq::EffectiveSettings;
use crate::rabbitmq::routing::difference::{RoutingDifference, routing_changes};
use crate::rabbitmq::routing::{Kind, Reason};
use crate::simulation::{Behavior, Outcome, Publication, RoutingPart, Simulation, Worker};
use std::collections::{BTreeMap, BTreeSet};

/// The largest `max-length` for which a scenario fills a queue.
const MAX_FILLED: i64 = 1_000;
/// The per-message TTL that a scenario uses for a queue without a TTL, in milliseconds.
const EXPIRATION: i64 = 1_000;

/// Returns all parts of a topology: the bindings, the alternate exchanges that arguments set, and the reasons why
/// queues dead-letter messages.
pub(super) fn parts(subject: &Subject<'_>) -> Vec<RoutingPart> {
    let topology = subject.routing.topology();
    let bindings = topology.bindings.iter().cloned().map(RoutingPart::Binding);
    let has_alternate = |name: &&ExchangeName| {
        topology.exchanges.get(*name).is_some_and(|it| it.arguments.contains_key(RoutingPart::ALTERNATE))
    };
    let alternates = topology.exchanges.keys().filter(has_alternate).cloned().map(RoutingPart::Alternate);
    let dead_letterings = topology.queues.iter().flat_map(|(name, queue)| {
        let settings = subject.routing.settings_of(name, queue);
        let reasons = reasons(subject, name, &settings);
        reasons.into_iter().map(|reason| RoutingPart::DeadLettering(name.clone(), reason))
    });
    bindings.chain(alternates).chain(dead_letterings).collect()
}

/// Returns the reasons why a queue dead-letters messages. In scenarios, only queues with a contract have workers, so
/// only these queues dead-letter rejected messages and messages at the delivery limit. In these queues, messages with a
/// per-message TTL can also expire.
fn reasons(subject: &Subject<'_>, name: &QueueName, settings: &EffectiveSettings) -> BTreeSet<Reason> {
    if settings.dead_lettering().is_none() {
        return BTreeSet::new();
    }
    let own = Reason::without_rejection(settings);
    if !subject.contracts.contains_key(name) {
        return own.filter(|reason| *reason != Reason::DeliveryLimit).collect();
    }
    let supports_ttl = settings.kind() != Some(QueueType::Quorum) || settings.version().is_at_least(3, 10);
    own.chain([Reason::Rejected]).chain(supports_ttl.then_some(Reason::Expired)).collect()
}

/// Returns the object that contains a part.
pub(super) fn object_of(part: &RoutingPart) -> ObjectId {
    match part {
        RoutingPart::Binding(binding) => ObjectId::Binding(binding.clone()),
        RoutingPart::Alternate(exchange) => ObjectId::Exchange(exchange.clone()),
        RoutingPart::DeadLettering(queue, _) => ObjectId::Queue(queue.clone()),
    }
}

/// Returns the parts that topo generates for retries and dead-lettering, but that no message uses with the current
/// settings. For example, if a queue has no maximum length, no message uses the binding for messages that overflow it.
/// `simulation` must record the parts that are used.
pub(super) fn unreachable(
    subject: &Subject<'_>,
    simulation: &Simulation<'_, '_>,
    parts: &[RoutingPart],
) -> BTreeSet<RoutingPart> {
    let is_generated = |part: &&RoutingPart| {
        let origin = subject.expansion.origins.get(&object_of(part));
        !matches!(part, RoutingPart::DeadLettering(..)) && origin.is_some_and(|it| it.because != CreatedFor::Declared)
    };
    let mut unreachable: BTreeSet<RoutingPart> = parts.iter().filter(is_generated).cloned().collect();
    for part in parts {
        let RoutingPart::DeadLettering(queue, reason) = part else { continue };
        let outcome = Scenario::of(subject, queue, *reason).map(|scenario| scenario.run(simulation));
        match outcome.filter(|outcome| outcome.unknown.is_empty()) {
            Some(outcome) => unreachable.retain(|part| !outcome.taken.contains(part)),
            // The outcome is unknown, so messages may use any part that was generated for this queue.
            None => {
                let families = subject.expansion.scope.families.iter().filter(|family| family.queue == *queue);
                let members: BTreeSet<&ObjectId> = families.flat_map(|family| &family.members).collect();
                unreachable.retain(|part| !members.contains(&object_of(part)));
            }
        }
    }
    unreachable
}

/// A scenario in which a queue dead-letters messages for a reason: the messages, and the behavior of the worker.
pub(super) struct Scenario<'q> {
    queue: &'q QueueName,
    /// The behavior of the worker; `None` if the queue has no worker.
    pub(super) behavior: Option<Behavior>,
    /// The number of messages.
    pub(super) count: u64,
    /// The per-message TTL in milliseconds.
    pub(super) expiration: Option<i64>,
}

impl<'q> Scenario<'q> {
    /// Creates the scenario for a reason. Returns `None` if the queue does not exist. For the reason `maxlen`, also
    /// returns `None` if the queue has no maximum length, or one that is too large to fill.
    pub(super) fn of(subject: &Subject<'_>, queue: &'q QueueName, reason: Reason) -> Option<Self> {
        let settings = subject.routing.settings_of(queue, subject.routing.topology().queues.get(queue)?);
        let (mut count, mut expiration) = (1, None);
        let behavior = match reason {
            Reason::Rejected => {
                let rejects = subject.contracts.get(queue).is_some_and(|contract| {
                    let answer = &contract.on_failure;
                    answer.requeue != Some(true) && (answer.method != Method::Ack || answer.publish.is_some())
                });
                Some(if rejects { Behavior::Fail } else { Behavior::GiveUp })
            }
            Reason::DeliveryLimit => Some(Behavior::Requeue),
            Reason::Expired => {
                expiration = (!settings.has("message-ttl")).then_some(EXPIRATION);
                None
            }
            Reason::Maxlen => {
                let limit = settings.integer("max-length").filter(|limit| *limit <= MAX_FILLED)?;
                count = u64::try_from(limit).ok()? + 1;
                None
            }
        };
        Some(Self { queue, behavior, count, expiration })
    }

    /// Runs the scenario, and returns its result.
    pub(super) fn run(&self, simulation: &Simulation<'_, '_>) -> Outcome {
        let publication = Publication {
            exchange: ExchangeName::new(""),
            routing_key: self.queue.as_str().to_owned(),
            headers: Arguments::new(),
            expiration: self.expiration,
            count: self.count,
        };
        let worker = self.behavior.map(|behavior| (self.queue.clone(), Worker::Always(behavior)));
        let workers: BTreeMap<QueueName, Worker> = worker.into_iter().collect();
        simulation.run(&publication, &workers)
    }
}

/// Returns how removing a binding or an alternate exchange changes the routing of messages that are published to one of
/// the `entries`.
pub(super) fn changes_without(
    subject: &Subject<'_>,
    part: &RoutingPart,
    entries: &BTreeSet<ExchangeName>,
) -> RoutingDifference {
    let mut topology = subject.routing.topology().clone();
    part.remove_from(&mut topology);
    // A second routing of the same topology is needed because both routings must have the same lifetime.
    let with = subject.routing_of(subject.routing.topology());
    routing_changes(&with, &subject.routing_of(&topology), &relevant_entries(subject, part, entries))
}

/// Returns the entries that can show the effect of removing a part. If clients can publish to the part's exchange, this
/// exchange is sufficient, because it routes messages from other exchanges in the same way.
fn relevant_entries(
    subject: &Subject<'_>,
    part: &RoutingPart,
    entries: &BTreeSet<ExchangeName>,
) -> BTreeSet<ExchangeName> {
    let own = match part {
        RoutingPart::Binding(binding) => Some(&binding.source),
        RoutingPart::Alternate(exchange) => Some(exchange),
        RoutingPart::DeadLettering(..) => None,
    };
    let is_internal =
        |name: &&ExchangeName| subject.routing.topology().exchanges.get(*name).is_some_and(|it| it.internal);
    match own.filter(|own| entries.contains(*own) && !is_internal(own)) {
        Some(own) => BTreeSet::from([own.clone()]),
        None => entries.clone(),
    }
}

/// Returns true if topo cannot simulate a binding, because the topology does not contain its exchange, or because the
/// exchange type selects bindings in its own way. Returns false for other parts.
pub(super) fn is_unknown(subject: &Subject<'_>, part: &RoutingPart) -> bool {
    let RoutingPart::Binding(binding) = part else { return false };
    let kind = subject.routing.kind(&binding.source);
    !subject.routing.topology().exchanges.contains_key(&binding.source)
        || matches!(kind, None | Some(Kind::OneOf | Kind::Unknown))
}
