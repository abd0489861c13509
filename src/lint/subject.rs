//! What rules look at.

use super::place::{self, Place};
use crate::behaviour::{Dialect, Ends};
use crate::expand::Expansion;
use crate::model::{Binding, Destination, Object, ObjectId, Queue, QueueName, QueueType};
use crate::spec::{PolicySpec, Spec};

/// The spec of one vhost, what it stands for, and the broker that it is for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What was written.
    pub spec: &'a Spec,
    /// What that stands for.
    pub expansion: &'a Expansion,
    /// How the broker behaves: the one that was asked, or one of the assumed version.
    pub dialect: &'a Dialect,
}

impl<'a> Subject<'a> {
    /// All that would be declared, generated objects among them.
    pub(super) fn objects(&self) -> Vec<Object> {
        let topology = &self.expansion.topology;
        let vhost = topology.settings.iter().map(|settings| Object::Vhost(settings.clone()));
        let exchanges = topology.exchanges.iter().map(|(name, it)| Object::Exchange(name.clone(), it.clone()));
        let policies = topology.policies.iter().map(|(name, it)| Object::Policy(name.clone(), it.clone()));
        let queues = topology.queues.iter().map(|(name, it)| Object::Queue(name.clone(), it.clone()));
        let bindings = topology.bindings.iter().map(|it| Object::Binding(it.clone()));
        vhost.chain(exchanges).chain(policies).chain(queues).chain(bindings).collect()
    }

    /// What the spec says of both ends of a binding; of external ones it says nothing.
    pub(super) fn ends(&self, binding: &Binding) -> Ends<'a> {
        let topology = &self.expansion.topology;
        let queue = match &binding.destination {
            Destination::Queue(name) => topology.queues.get(name),
            Destination::Exchange(_) => None,
        };
        let source = topology.exchanges.get(&binding.source);
        Ends { source: source.map(|exchange| exchange.kind.as_str()), queue }
    }

    /// The queues that would be declared, dead-letter queues among them.
    pub(super) fn queues(&self) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        let by_id = |(name, queue): (&QueueName, &'a Queue)| (ObjectId::Queue(name.clone()), queue);
        self.expansion.topology.queues.iter().map(by_id)
    }

    /// Those of one type.
    pub(super) fn queues_of(&self, queue_type: QueueType) -> impl Iterator<Item = (ObjectId, &'a Queue)> {
        self.queues().filter(move |(_, queue)| queue.queue_type() == Some(queue_type))
    }

    /// The policies that are written in the spec; those of dead-letter wiring only repeat them.
    pub(super) fn policies(&self) -> impl Iterator<Item = (ObjectId, &'a PolicySpec)> {
        self.spec.policies.iter().map(|(name, policy)| (ObjectId::Policy(name.clone()), policy))
    }

    /// Whether the broker is of that version or a later one.
    pub(super) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.dialect.version.is_at_least(major, minor)
    }

    /// Where a setting of an object is written.
    pub(super) fn place(&self, object: &ObjectId, setting: &str) -> Place {
        place::place(self, object, setting)
    }
}
