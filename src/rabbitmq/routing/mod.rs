//! Where a message goes: through exchanges, bindings between them and alternates, to queues. As far as that follows from
//! what is known of the message and of the topology; what does not is said to be unclear, and why.
//!
//! `rabbit_exchange:route`, 3.8.9 to 4.3.5. Copies by `CC` and `BCC` are not looked at.

mod arrivals;
mod dead_letters;
mod exchange;
mod fate;
mod headers;
mod keys;
mod outgoing;
mod route;
mod topic_index;

pub use arrivals::Arrivals;
pub use dead_letters::{DeadLettering, Deaths, Reason};
pub use exchange::Kind;
pub use fate::Fate;
pub use headers::Headers;
pub use keys::Keys;
pub use route::{Answer, Route, Unclear};
pub use topic_index::TopicIndex;

use super::{BrokerProfile, Policies};
use crate::model::{Binding, Destination, ExchangeName, ObjectId, Policy, PolicyName, QueueName, Topology};
use outgoing::Outgoing;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Of how many of the messages that are meant something is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Of none.
    Never,
    /// Of some, or nobody knows.
    Perhaps,
    /// Of all.
    Always,
}

impl Certainty {
    pub(super) fn of(is_true: bool) -> Self {
        if is_true { Self::Always } else { Self::Never }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::Never => Self::Always,
            Self::Perhaps => Self::Perhaps,
            Self::Always => Self::Never,
        }
    }
}

/// A message, or all messages of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Its key.
    pub keys: Keys,
    /// Its headers.
    pub headers: Headers,
}

impl Message {
    /// With one of these keys, and any headers.
    pub fn with(keys: Keys) -> Self {
        Self { keys, headers: Headers::any() }
    }
}

/// The ways of one vhost.
pub struct Routing<'a> {
    topology: &'a Topology,
    profile: &'a BrokerProfile,
    external: &'a BTreeSet<ObjectId>,
    policies: Policies<'a>,
    operator_policies: Policies<'a>,
    by_source: BTreeMap<&'a ExchangeName, Outgoing<'a>>,
    by_destination: BTreeMap<&'a Destination, Vec<&'a Binding>>,
    /// Queues that others have bound to an exchange, with a key that is not known.
    bound_by_others: BTreeMap<&'a ExchangeName, BTreeSet<&'a QueueName>>,
    /// Those of all queues, made when the first is asked for: whoever follows messages asks again and again.
    dead_letterings: OnceCell<BTreeMap<&'a QueueName, Vec<Option<DeadLettering>>>>,
}

impl<'a> Routing<'a> {
    /// Of a topology, on a broker of that kind. What is `external` is there, and others may have bound it.
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
            bound_by_others: BTreeMap::new(),
            dead_letterings: OnceCell::new(),
        }
    }

    /// With queues that others have bound to an exchange.
    pub fn with_bound_by_others(mut self, queues: &'a BTreeMap<QueueName, ExchangeName>) -> Self {
        for (queue, exchange) in queues {
            self.bound_by_others.entry(exchange).or_default().insert(queue);
        }
        self
    }

    /// All that is there.
    pub fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// The policies of the topology.
    pub fn policies(&self) -> &Policies<'a> {
        &self.policies
    }

    fn bindings_of(&self, exchange: &ExchangeName) -> &[&'a Binding] {
        self.by_source.get(exchange).map_or(&[], Outgoing::all)
    }

    fn candidates(&self, exchange: &ExchangeName, kind: Kind, keys: &Keys) -> Vec<&'a Binding> {
        self.by_source.get(exchange).map_or(Vec::new(), |outgoing| outgoing.candidates(kind, keys))
    }

    /// The bindings that lead to a queue or an exchange.
    pub fn bindings_to(&self, destination: &Destination) -> &[&'a Binding] {
        self.by_destination.get(destination).map_or(&[], Vec::as_slice)
    }

    fn has_queue(&self, name: &QueueName) -> bool {
        self.topology.queues.contains_key(name) || self.external.contains(&ObjectId::Queue(name.clone()))
    }
}
