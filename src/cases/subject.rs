//! The topology that a test file tests, with the routing and the contracts of its queues.

use crate::contract::{Contract, contracts};
use crate::expand::Expansion;
use crate::model::{ObjectId, QueueName};
use crate::rabbitmq::BrokerProfile;
use crate::rabbitmq::routing::Routing;
use crate::spec::{Location, Spec};
use std::collections::BTreeMap;

/// The topology that is tested.
pub struct Subject<'a> {
    /// The spec.
    pub spec: &'a Spec,
    pub(super) expansion: &'a Expansion,
    pub(super) profile: &'a BrokerProfile,
    pub(super) routing: Routing<'a>,
    pub(super) contracts: BTreeMap<QueueName, Contract>,
}

impl<'a> Subject<'a> {
    /// Creates the subject from a spec and its expansion.
    pub fn new(spec: &'a Spec, expansion: &'a Expansion, profile: &'a BrokerProfile) -> Self {
        let scope = &expansion.scope;
        let routing = Routing::new(&expansion.topology, [], &scope.external, profile)
            .with_external_bindings(&scope.external_dead_letter_queues);
        let contracts = contracts(spec, expansion, profile).queues;
        Self { spec, expansion, profile, routing, contracts }
    }

    pub(super) fn is_external_queue(&self, queue: &QueueName) -> bool {
        self.expansion.scope.external.contains(&ObjectId::Queue(queue.clone()))
    }

    /// Returns the position of the queue, or of its retries.
    pub(super) fn position(&self, queue: &QueueName, of_retries: bool) -> Option<Location> {
        let dead_letter_queue = || self.spec.dead_letter_queues.get(queue).map(|it| &it.queue);
        let declared = self.spec.queues.get(queue).or_else(dead_letter_queue)?;
        let retries = declared.retry.as_ref().filter(|_| of_retries).map(|it| it.max_retries.at);
        Some(retries.unwrap_or(declared.at))
    }
}
