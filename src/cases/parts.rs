//! The parts of the routing of a topology, and the deaths by which messages take the parts that topo generates.

use super::subject::Subject;
use crate::contract::Method;
use crate::expand::CreatedFor;
use crate::model::{Arguments, ExchangeName, ObjectId, QueueName, QueueType};
use crate::rabbitmq::EffectiveSettings;
use crate::rabbitmq::routing::Reason;
use crate::simulation::{Behavior, Outcome, Publication, RoutingPart, Worker};
use std::collections::{BTreeMap, BTreeSet};

/// The largest `max-length` for which a death fills a queue.
const MAX_FILLED: i64 = 1_000;
/// The per-message TTL of a death in a queue without a TTL, in milliseconds.
const EXPIRATION: i64 = 1_000;

/// Returns all parts of a topology: the bindings, the alternate exchanges that arguments set, and the reasons for which
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

/// Returns the reasons for which a queue dead-letters messages. Only queues with workers reject messages and reach a
/// delivery limit, and in these queues also messages with a TTL of their own expire.
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

/// Returns the parts that topo generates for retries and dead letters, and that no message takes with the current settings:
/// for example, the binding for messages that a full queue dead-letters, if the queue has no maximum length.
pub(super) fn unreachable(subject: &Subject<'_>, parts: &[RoutingPart]) -> BTreeSet<RoutingPart> {
    let is_generated = |part: &&RoutingPart| {
        let origin = subject.expansion.origins.get(&object_of(part));
        !matches!(part, RoutingPart::DeadLettering(..)) && origin.is_some_and(|it| it.because != CreatedFor::Declared)
    };
    let mut unreachable: BTreeSet<RoutingPart> = parts.iter().filter(is_generated).cloned().collect();
    for part in parts {
        if unreachable.is_empty() {
            break;
        }
        if let RoutingPart::DeadLettering(queue, reason) = part
            && let Some(death) = Death::of(subject, queue, *reason)
        {
            let taken = death.run(subject).taken;
            unreachable.retain(|part| !taken.contains(part));
        }
    }
    unreachable
}

/// Messages that a queue dead-letters for a reason.
pub(super) struct Death<'q> {
    queue: &'q QueueName,
    /// The behavior of the worker; `None` if the queue has no worker.
    pub(super) behavior: Option<Behavior>,
    /// The number of messages.
    pub(super) count: u64,
    /// The per-message TTL in milliseconds.
    pub(super) expiration: Option<i64>,
}

impl<'q> Death<'q> {
    /// Returns the messages; `None` if filling the queue needs too many.
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

    /// Returns the result in the simulation, with the parts that the messages take.
    pub(super) fn run(&self, subject: &Subject<'_>) -> Outcome {
        let publication = Publication {
            exchange: ExchangeName::new(""),
            routing_key: self.queue.as_str().to_owned(),
            headers: Arguments::new(),
            expiration: self.expiration,
            count: self.count,
        };
        let worker = self.behavior.map(|behavior| (self.queue.clone(), Worker::Always(behavior)));
        let workers: BTreeMap<QueueName, Worker> = worker.into_iter().collect();
        subject.simulation().recording().run(&publication, &workers)
    }
}
