//! The topology of a simulation, with the effective settings of its queues.

use crate::contract::Contract;
use crate::model::{Queue, QueueName};
use crate::rabbitmq::routing::{Reason, Routing};
use crate::rabbitmq::{BrokerProfile, EffectiveSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A topology with the effective settings of its queues.
#[derive(Clone)]
pub(super) struct SimulatedTopology<'r, 'a> {
    pub(super) routing: &'r Routing<'a>,
    pub(super) contracts: &'r BTreeMap<QueueName, Contract>,
    pub(super) profile: &'r BrokerProfile,
    pub(super) settings: Rc<BTreeMap<&'a QueueName, EffectiveSettings>>,
    /// The queues whose effective settings are uncertain, because topo cannot determine the governing policy.
    uncertain: Rc<BTreeSet<&'a QueueName>>,
    /// The queue, if any, that drops the messages that it would otherwise dead-letter for the given reason.
    pub(super) dropped: Option<(QueueName, Reason)>,
    /// True if the outcomes contain the parts of the topology that routed the messages.
    pub(super) is_recording: bool,
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
        Self {
            routing,
            contracts,
            profile,
            settings: Rc::new(queues.iter().map(settings).collect()),
            uncertain: Rc::new(uncertain),
            dropped: None,
            is_recording: false,
        }
    }

    /// Returns the same topology with different routing for the same queues and policies.
    pub(super) fn with_routing<'s, 'b>(&self, routing: &'s Routing<'b>) -> SimulatedTopology<'s, 'b>
    where
        'r: 's,
        'a: 'b,
    {
        SimulatedTopology {
            routing,
            contracts: self.contracts,
            profile: self.profile,
            settings: Rc::clone(&self.settings) as Rc<BTreeMap<&'b QueueName, EffectiveSettings>>,
            uncertain: Rc::clone(&self.uncertain) as Rc<BTreeSet<&'b QueueName>>,
            dropped: self.dropped.clone(),
            is_recording: self.is_recording,
        }
    }

    /// Returns true if topo cannot determine the effective settings of the queue.
    pub(super) fn has_uncertain_settings(&self, queue: &QueueName) -> bool {
        self.uncertain.contains(queue)
    }

    /// Returns true if the queue drops the messages that it would dead-letter for this reason.
    pub(super) fn drops(&self, queue: &QueueName, reason: Reason) -> bool {
        self.dropped.as_ref().is_some_and(|(of, why)| of == queue && *why == reason)
    }
}
