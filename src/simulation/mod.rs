//! Simulates messages in a topology: the queues that they reach, the times of their deliveries, and their final states.
//!
//! The simulation has its own clock, and workers process messages instantly. It follows each copy of a message from
//! publication until the copy stays in a queue, a worker acknowledges it, or the broker drops it. Routing,
//! dead-lettering and effective settings come from [`rabbitmq`](crate::rabbitmq). The methods that workers call come
//! from their contracts.
//!
//! | file | topic |
//! |---|---|
//! | [`publication`] | the published messages, and the behavior of workers |
//! | [`outcome`] | the result: attempts, ends, and the events in order |
//! | [`copy`] | a copy of a message with its headers and deaths |
//! | [`part`] | the parts of a topology that route messages |
//! | [`topology`] | the topology, with the settings of its queues |
//! | [`run`] | the clock, and the queues |
//! | [`arrival`] | messages that arrive in a queue: overflow and expiry |
//! | [`delivery`] | deliveries, and the methods of workers |
//! | [`death`] | dead-lettering |

mod arrival;
mod copy;
mod death;
mod delivery;
mod outcome;
mod part;
mod publication;
mod run;
#[cfg(test)]
mod tests;
mod topology;

pub use copy::DeathEntry;
pub use outcome::{End, EndedCopy, Event, EventKind, Outcome, PublisherResult};
pub use part::RoutingPart;
pub use publication::{Behavior, Publication, Worker};

use crate::contract::Contract;
use crate::model::QueueName;
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::{Reason, Routing};
use std::collections::BTreeMap;
use topology::SimulatedTopology;

/// The simulation of a topology on a broker.
pub struct Simulation<'r, 'a>(SimulatedTopology<'r, 'a>);

impl<'r, 'a> Simulation<'r, 'a> {
    /// Creates the simulation of a topology. [`Behavior::Fail`] and [`Behavior::GiveUp`] follow the contracts.
    pub fn new(
        routing: &'r Routing<'a>,
        contracts: &'r BTreeMap<QueueName, Contract>,
        profile: &'r BrokerProfile,
    ) -> Self {
        Self(SimulatedTopology::new(routing, contracts, profile))
    }

    /// Returns a simulation whose outcomes contain the parts of the topology that routed the messages.
    pub fn recording(self) -> Self {
        let mut topology = self.0;
        topology.is_recording = true;
        Self(topology)
    }

    /// Returns the same simulation with different routing. The queues and policies must be the same.
    pub fn with_routing<'s, 'b>(&self, routing: &'s Routing<'b>) -> Simulation<'s, 'b>
    where
        'r: 's,
        'a: 'b,
    {
        Simulation(self.0.with_routing(routing))
    }

    /// Returns the same simulation, except that `queue` drops the messages that it would dead-letter for `reason`.
    pub fn without_dead_lettering(&self, queue: &QueueName, reason: Reason) -> Self {
        let mut topology = self.0.clone();
        topology.dropped = Some((queue.clone(), reason));
        Self(topology)
    }

    /// Publishes messages in order, and simulates them until no change is pending.
    pub fn run(&self, publication: &Publication, workers: &BTreeMap<QueueName, Worker>) -> Outcome {
        run::Run::new(&self.0, workers).run(publication)
    }
}
