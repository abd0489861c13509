//! The topology of a simulation, with the effective settings of its queues.

use crate::contract::Contract;
use crate::model::{Queue, QueueName};
use crate::rabbitmq::routing::Routing;
use crate::rabbitmq::{BrokerProfile, EffectiveSettings};
use std::collections::{BTreeMap, BTreeSet};

/// A topology with the effective settings of its queues.
pub(super) struct SimulatedTopology<'r, 'a> {
    pub(super) routing: &'r Routing<'a>,
    pub(super) contracts: &'r BTreeMap<QueueName, Contract>,
    pub(super) profile: &'r BrokerProfile,
    pub(super) settings: BTreeMap<&'a QueueName, EffectiveSettings>,
    /// The queues to which different policies may apply.
    uncertain: BTreeSet<&'a QueueName>,
}

impl<'r, 'a> SimulatedTopology<'r, 'a> {
    pub(super) fn new(
        routing: &'r Routing<'a>,
        contracts: &'r BTreeMap<QueueName, Contract>,
        profile: &'r BrokerProfile,
    ) -> Self {
        let queues = &routing.topology().queues;
        let settings = |(name, queue): (&'a QueueName, &'a Queue)| (name, routing.settings_of(name, queue));
        let is_uncertain = |(name, queue): &(&'a QueueName, &'a Queue)| routing.has_uncertain_settings(name, queue);
        let uncertain = queues.iter().filter(is_uncertain).map(|(name, _)| name).collect();
        Self { routing, contracts, profile, settings: queues.iter().map(settings).collect(), uncertain }
    }

    /// Returns true if different policies may apply to the queue.
    pub(super) fn has_uncertain_settings(&self, queue: &QueueName) -> bool {
        self.uncertain.contains(queue)
    }
}
