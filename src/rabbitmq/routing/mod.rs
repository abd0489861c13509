//! Routes messages through exchanges, exchange-to-exchange bindings and alternate exchanges to queues. The message and
//! the topology can be partly unknown. An uncertain result contains the reason for the uncertainty.
//!
//! The simulation follows `rabbit_exchange:route` in RabbitMQ 3.8.9 to 4.3.5.

mod arrivals;
mod dead_letter_queues;
mod dead_letters;
pub mod difference;
mod exchange;
mod keys;
mod message;
mod outgoing;
mod route;
mod sender_selected;
mod topic_index;

pub use super::wiring::DeadLettering;
pub use arrivals::Arrivals;
pub use arrivals::Fate;
pub use dead_letters::{DeathHistory, Reason};
pub use exchange::Unclear;
pub use keys::{Certainty, Keys};
pub use message::{Headers, Message};
pub use outgoing::Kind;
pub use route::{Route, RouteOutcome, Taken};
pub use sender_selected::{SenderSelected, invalid_header};
pub use topic_index::TopicIndex;

use super::effective::{ActivePolicies, EffectiveSettings};
use super::governing::Policies;
use super::profile::BrokerProfile;
use crate::model::{Binding, Destination, ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, Topology};
use outgoing::Outgoing;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The routing of one vhost.
pub struct Routing<'a> {
    topology: &'a Topology,
    profile: &'a BrokerProfile,
    /// The objects that exist although the topology does not contain them.
    external: &'a BTreeSet<ObjectId>,
    policies: Policies<'a>,
    operator_policies: Policies<'a>,
    by_source: BTreeMap<&'a ExchangeName, Outgoing<'a>>,
    by_destination: BTreeMap<&'a Destination, Vec<&'a Binding>>,
    /// The queues that are bound to each exchange by bindings that the topology does not contain. The routing keys of
    /// these bindings are unknown.
    external_bindings: BTreeMap<&'a ExchangeName, BTreeSet<&'a QueueName>>,
    /// True if the topology contains all bindings of predeclared exchanges.
    is_complete: bool,
    /// The dead-letter targets of all queues, computed on first use and cached, because simulations read them
    /// repeatedly.
    dead_letterings: OnceCell<BTreeMap<&'a QueueName, Vec<Option<DeadLettering>>>>,
}

impl<'a> Routing<'a> {
    /// Creates the routing of a topology on a broker. The objects in `external` exist although the topology does not
    /// contain them, and may have unknown bindings.
    pub fn new(
        topology: &'a Topology,
        operator_policies: impl IntoIterator<Item = (&'a PolicyName, &'a Policy)>,
        external: &'a BTreeSet<ObjectId>,
        profile: &'a BrokerProfile,
    ) -> Self {
        let mut by_source: BTreeMap<_, Outgoing<'_>> = BTreeMap::new();
        let mut by_destination: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for binding in &topology.bindings {
            by_source.entry(&binding.source).or_default().add(binding);
            by_destination.entry(&binding.destination).or_default().push(binding);
        }
        by_source.values_mut().for_each(Outgoing::sort);
        Self {
            topology,
            profile,
            external,
            policies: Policies::new(&topology.policies, profile.version),
            operator_policies: Policies::new(operator_policies, profile.version),
            by_source,
            by_destination,
            external_bindings: BTreeMap::new(),
            is_complete: false,
            dead_letterings: OnceCell::new(),
        }
    }

    /// Adds bindings that the topology does not contain. Each queue is bound to its exchange with unknown keys.
    pub fn with_external_bindings(mut self, queues: &'a BTreeMap<QueueName, ExchangeName>) -> Self {
        for (queue, exchange) in queues {
            self.external_bindings.entry(exchange).or_default().insert(queue);
        }
        self
    }

    /// Declares that the topology contains all bindings of predeclared exchanges, because it was read from a broker.
    pub fn complete(mut self) -> Self {
        self.is_complete = true;
        self
    }

    /// Returns the topology.
    pub fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Returns the policies of the topology.
    pub fn policies(&self) -> &Policies<'a> {
        &self.policies
    }

    /// Returns the effective settings of a queue under the policies that most likely govern it.
    pub fn settings_of(&self, name: &QueueName, queue: &Queue) -> EffectiveSettings {
        let active = ActivePolicies::of(&self.policies, self.profile).with_operators(&self.operator_policies);
        active.likely(name, queue)
    }

    /// Returns true if topo cannot determine which policies govern a queue, and the possible policies result in
    /// different settings.
    pub fn has_uncertain_settings(&self, name: &QueueName, queue: &Queue) -> bool {
        let active = ActivePolicies::of(&self.policies, self.profile).with_operators(&self.operator_policies);
        let possible = active.possible(name, queue);
        let mut all = possible.iter().map(|(_, settings)| settings);
        let Some(first) = all.next() else { return false };
        all.any(|settings| settings != first)
    }

    fn bindings_of(&self, exchange: &ExchangeName) -> &[&'a Binding] {
        self.by_source.get(exchange).map_or(&[], Outgoing::all)
    }

    fn candidates(&self, exchange: &ExchangeName, kind: Kind, keys: &Keys) -> Vec<&'a Binding> {
        self.by_source.get(exchange).map_or(Vec::new(), |outgoing| outgoing.candidates(kind, keys))
    }

    /// Returns the bindings that can match a message by any of its keys.
    fn candidates_for(&self, exchange: &ExchangeName, kind: Kind, message: &Message) -> Vec<&'a Binding> {
        let mut found = self.candidates(exchange, kind, &message.keys);
        if matches!(kind, Kind::Direct | Kind::Topic) && !message.more_keys.is_empty() {
            for key in message.more_keys.keys() {
                found.extend(self.candidates(exchange, kind, &Keys::One(key.to_owned())));
            }
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    /// Returns the bindings to a destination.
    pub fn bindings_to(&self, destination: &Destination) -> &[&'a Binding] {
        self.by_destination.get(destination).map_or(&[], Vec::as_slice)
    }

    /// Returns true if the exchange has bindings that [`Routing::with_external_bindings`] added.
    fn has_external_bindings(&self, exchange: &ExchangeName) -> bool {
        self.external_bindings.contains_key(exchange)
    }

    /// Returns true if the queue exists, in the topology or as an external queue.
    pub fn has_queue(&self, name: &QueueName) -> bool {
        self.topology.queues.contains_key(name) || self.external.contains(&ObjectId::Queue(name.clone()))
    }
}
