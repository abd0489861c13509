//! What a spec promises to the workers of a queue, and asks of them: how often and how late a message comes, what to call
//! on a failure, where to publish, where dead letters go. A finished value, from the spec and what it stands for.
//!
//! It is a promise about the broker: a test drives workers by nothing but these values.

mod context;
mod dead_letters;
mod document;
mod in_force;
pub mod lifecycle;
pub mod schema;
mod terms;
#[cfg(test)]
mod tests;
mod variables;
mod warnings;

pub(crate) use context::Context;
pub use document::{
    Answer, Arrival, AttemptCounter, Contract, Contracts, Counter, DeadLetterHeader, DeadLetteredMessage, DeadLetters,
    FORMAT_VERSION, Method, Original, Publish, VhostContracts, Wait,
};
pub(crate) use in_force::InForce;
pub(crate) use terms::{contract_of, wait};
pub use variables::{Clash, variables};

use crate::expand::Expansion;
use crate::model::{QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use crate::spec::Spec;

/// The contracts of all queues of a vhost that retry, have dead letters, or mean to drop what fails.
pub fn contracts(spec: &Spec, expansion: &Expansion, profile: &BrokerProfile) -> VhostContracts {
    let context = Context::new(spec, expansion, profile);
    let names = spec.queues.keys().chain(spec.dead_letter_queues.keys());
    let all = names.filter_map(|name| Some((name.clone(), of_queue(name, &context)?)));
    let says_something =
        |contract: &Contract| contract.max_retries > 0 || contract.dead_letters.is_some() || contract.is_drop_intended;
    VhostContracts { queues: all.filter(|(_, contract)| says_something(contract)).collect() }
}

/// The contract of one queue; `None` where nothing is known of it, and for streams, which retry nothing.
pub fn contract(name: &QueueName, spec: &Spec, expansion: &Expansion, profile: &BrokerProfile) -> Option<Contract> {
    of_queue(name, &Context::new(spec, expansion, profile))
}

fn of_queue(name: &QueueName, context: &Context<'_>) -> Option<Contract> {
    let in_force = InForce::of(name, context)?;
    (in_force.queue_type != QueueType::Stream).then(|| contract_of(&in_force))
}
