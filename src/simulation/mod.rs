//! Simulates messages in a topology: which queues they reach, how often workers receive them, when, and where they end.
//!
//! The simulation has a clock of its own, and workers take no time. It follows each copy of a message from its publish to
//! the queue in which it stays, or until a worker acknowledges it or the broker drops it. Routing, dead-lettering and
//! effective settings come from [`rabbitmq`](crate::rabbitmq), and the methods of workers from their contracts.
//!
//! | file | topic |
//! |---|---|
//! | [`publication`] | the published messages, and the behavior of workers |
//! | [`outcome`] | the result: attempts, ends, and the events in their order |
//! | [`copy`] | a copy of a message with its headers and deaths |
//! | [`run`] | the clock, and the queues |
//! | [`arrival`] | messages that arrive in a queue: overflow and expiry |
//! | [`delivery`] | deliveries, and the methods of workers |
//! | [`death`] | dead-lettering |

mod arrival;
mod copy;
mod death;
mod delivery;
mod outcome;
mod publication;
mod run;
#[cfg(test)]
mod tests;

pub use copy::DeathEntry;
pub use outcome::{End, EndedCopy, Event, EventKind, Outcome, PublisherResult};
pub use publication::{Behavior, Publication, Worker};

use crate::contract::Contract;
use crate::model::{Queue, QueueName};
use crate::rabbitmq::routing::Routing;
use crate::rabbitmq::{BrokerProfile, EffectiveSettings};
use std::collections::{BTreeMap, BTreeSet};

/// The simulation of a topology on a broker.
pub struct Simulation<'r, 'a> {
    routing: &'r Routing<'a>,
    /// The contracts of the queues for [`Behavior::Fail`] and [`Behavior::GiveUp`].
    contracts: &'r BTreeMap<QueueName, Contract>,
    profile: &'r BrokerProfile,
    settings: BTreeMap<&'a QueueName, EffectiveSettings>,
    /// The queues to which different policies may apply.
    uncertain: BTreeSet<&'a QueueName>,
}

impl<'r, 'a> Simulation<'r, 'a> {
    /// Creates the simulation of a topology.
    pub fn new(
        routing: &'r Routing<'a>,
        contracts: &'r BTreeMap<QueueName, Contract>,
        profile: &'r BrokerProfile,
    ) -> Self {
        let settings = |(name, queue): (&'a QueueName, &'a Queue)| (name, routing.settings_of(name, queue));
        let settings = routing.topology().queues.iter().map(settings).collect();
        let is_uncertain = |(name, queue): &(&'a QueueName, &'a Queue)| routing.has_uncertain_settings(name, queue);
        let uncertain = routing.topology().queues.iter().filter(is_uncertain).map(|(name, _)| name).collect();
        Self { uncertain, routing, contracts, profile, settings }
    }

    /// Returns true if different policies may apply to the queue.
    fn has_uncertain_settings(&self, queue: &QueueName) -> bool {
        self.uncertain.contains(queue)
    }

    /// Publishes messages one after another, and follows them until nothing moves any more.
    pub fn run(&self, publication: &Publication, workers: &BTreeMap<QueueName, Worker>) -> Outcome {
        run::Run::new(self, workers).run(publication)
    }
}
