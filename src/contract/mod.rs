//! Computes contracts, which specify what the workers of a queue must do. A contract defines the number of deliveries
//! and their delays, the AMQP methods to call, the exchanges to publish to, and where dead-lettered messages go.
//!
//! A contract is computed from the spec and its expansion. A live test runs workers that use only the values of a
//! contract.

mod client_queues;
mod context;
mod declaration;
mod document;
pub mod lifecycle;
mod reaction;
mod replay;
pub mod schema;
mod terms;
#[cfg(test)]
mod tests;
mod thresholds;
mod variables;
mod warnings;

pub use client_queues::{ClientQueue, ClientVhost, OnFailure, PublishRoute, client_vhost};
pub(crate) use context::Context;
pub(crate) use context::EffectiveQueue;
pub use declaration::Declaration;
pub use document::{
    Answer, Arrival, Contract, Contracts, Counter, DeadLetterHeader, DeadLetteredMessage, DeadLetters, FORMAT_VERSION,
    GrowthThreshold, Method, Original, Participant, Publish, QueueThresholds, Replay, SeverityLevels, VhostContracts,
    Wait,
};
pub use reaction::Reaction;
pub(crate) use terms::contract_of;
pub use variables::{NameConflict, variables};

use crate::expand::Expansion;
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::spec::Spec;

/// Returns the contracts for all queues in a vhost that retry, dead-letter, or drop failed messages on purpose.
pub fn contracts(spec: &Spec, expansion: &Expansion, profile: &BrokerProfile) -> VhostContracts {
    let operator_policies = expansion.topology.operator_policies();
    let context = Context::new((spec, expansion), &operator_policies, profile);
    let names = spec.queues.keys().chain(spec.dead_letter_queues.keys());
    let all = names.filter_map(|name| Some((name.clone(), of_queue(name, &context)?)));
    VhostContracts {
        queues: all.filter(|(_, contract)| contract.has_duties()).collect(),
        thresholds: thresholds(spec).collect(),
    }
}

/// Returns the thresholds of the queues and dead-letter queues that have thresholds.
pub fn thresholds(spec: &Spec) -> impl Iterator<Item = (QueueName, QueueThresholds)> {
    spec.thresholds().into_iter().filter_map(|(name, it)| Some((name, QueueThresholds::of(&it)?)))
}

/// Returns the contract of one queue; `None` for unknown and external queues, for streams, which do not retry, and for
/// queues whose type a plugin provides.
pub fn contract(name: &QueueName, spec: &Spec, expansion: &Expansion, profile: &BrokerProfile) -> Option<Contract> {
    let operator_policies = expansion.topology.operator_policies();
    of_queue(name, &Context::new((spec, expansion), &operator_policies, profile))
}

/// Returns the contract of a queue from an existing context.
fn of_queue(name: &QueueName, context: &Context<'_>) -> Option<Contract> {
    let queue = EffectiveQueue::of(name, context)?;
    (queue.queue_type != QueueType::Stream).then(|| contract_of(&queue))
}
