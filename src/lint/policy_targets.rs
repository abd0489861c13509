//! Matches the policies of a spec with its queues and exchanges. Policies of dead-letter wiring are left out, because they
//! copy the keys of a declared policy.

use super::Subject;
use crate::model::{Exchange, ObjectId, PolicyName, Queue, QueueName};
use crate::rabbitmq::governing::chosen;
use crate::rabbitmq::{Effective, EffectiveSettings, Fit, Governed, Source};

/// A queue or an exchange, with the policies that match it, the highest priority first.
pub(super) struct PolicyTarget<'a> {
    pub(super) id: ObjectId,
    pub(super) name: &'a str,
    pub(super) kind: Kind<'a>,
    /// The queue for whose retries it is generated, if it is generated.
    pub(super) retries_of: Option<&'a QueueName>,
    pub(super) fits: Vec<Fit<'a>>,
}

/// The kind of a policy target, with its declaration.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Queue(&'a Queue),
    Exchange(&'a Exchange),
}

impl<'a> PolicyTarget<'a> {
    /// Returns the policy that applies to it, if that is certain.
    pub(super) fn governing(&self) -> Option<&'a PolicyName> {
        Some(chosen(&self.fits).certain()??.name)
    }

    /// Returns the effective settings of a queue from its arguments and the policy that applies to it.
    pub(super) fn effective(&self, queue: &Queue, subject: &Subject<'_>) -> EffectiveSettings {
        EffectiveSettings::of(queue, chosen(&self.fits).likely(), None, subject.profile)
    }
}

/// Returns every queue and exchange with the declared policies that match it.
pub(super) fn policy_targets<'a>(subject: &Subject<'a>) -> Vec<PolicyTarget<'a>> {
    let topology = &subject.expansion.topology;
    let target = |id: ObjectId, name: &'a str, kind: Kind<'a>, governed: Governed| {
        let mut fits = subject.routing().policies().fitting(name, governed);
        fits.retain(|fit| subject.spec.policies.contains_key(fit.named.name));
        PolicyTarget { retries_of: subject.retries_of(&id), id, name, kind, fits }
    };
    let queues = topology.queues.iter().map(|(name, queue)| {
        target(ObjectId::Queue(name.clone()), name.as_str(), Kind::Queue(queue), Governed::from(queue))
    });
    let exchanges = topology.exchanges.iter().map(|(name, exchange)| {
        target(ObjectId::Exchange(name.clone()), name.as_str(), Kind::Exchange(exchange), Governed::Exchange)
    });
    queues.chain(exchanges).collect()
}

/// Returns true if an argument of the object sets the value.
pub(super) fn is_own(effective: &Effective) -> bool {
    match effective.source {
        Source::Argument => true,
        Source::Default | Source::Policy(_) | Source::OperatorPolicy(_) => false,
    }
}

/// Formats the first of several names and the number of the others: `` `a` and 2 more``.
pub(super) fn first_of<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names[..] {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [first, second] => format!("`{first}` and `{second}`"),
        [first, .., _] => format!("`{first}` and {} more", names.len() - 1),
    }
}
