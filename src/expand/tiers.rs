//! Creates the tier queues of a retry strategy, one for each retry, and defines the collection of all generated
//! objects.
//!
//! A tier stores a message for the delay of the retry, and then returns the message to the queue. The strategy adds the
//! bindings that route messages to the tiers.

use super::text;
use crate::model::known_arguments::KnownArgument;
use crate::model::naming::{self, TierName};
use crate::model::{
    ArgumentValue, Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName, QueueType,
};
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};

/// The tiers of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The queue whose messages wait in the tiers.
    pub queue: QueueName,
    /// The type of the queue. The tiers have the same type if the broker supports a TTL for this type, and are classic
    /// queues otherwise.
    pub queue_type: QueueType,
    /// True if the queue is durable. Its tiers have the same durability.
    pub durable: bool,
    /// The delay of each retry, in milliseconds.
    pub delays: Vec<i64>,
}

impl Tiers {
    /// The maximum number of tiers. A larger number is probably a mistake.
    pub(super) const MAX: u32 = 100;

    /// Returns the retry number and the name of each tier.
    pub fn names(&self) -> impl Iterator<Item = (u32, QueueName)> + '_ {
        let named = |(number, delay): (u32, &i64)| (number, TierName::new(&self.queue, number, *delay).name());
        (1..).zip(&self.delays).map(named)
    }

    /// Returns the number of the last retry.
    pub fn last(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX)
    }

    /// Adds the retry exchange, its switch exchange, and the exhausted exchange, which receives the messages that
    /// neither of them routes to a tier. Returns the names of the retry exchange and the exhausted exchange. These
    /// exchanges are the same for every strategy, so a change of strategy affects only their bindings.
    pub(super) fn add_entry_exchanges(&self, objects: &mut Objects) -> (ExchangeName, ExchangeName) {
        let (retry, exhausted) = (naming::retry_exchange(&self.queue), naming::exhausted_exchange(&self.queue));
        objects.add_exchange(retry.clone(), "direct", Some(&naming::switch_exchange(&retry)));
        objects.add_exchange(naming::switch_exchange(&retry), "direct", Some(&exhausted));
        objects.add_exchange(exhausted.clone(), "topic", Some(&naming::first_exchange(&self.queue)));
        (retry, exhausted)
    }

    /// Adds the tiers, and the return exchange with its binding to the queue.
    pub(super) fn add_to(&self, objects: &mut Objects, profile: &BrokerProfile) {
        let return_exchange = naming::return_exchange(&self.queue);
        objects.add_exchange(return_exchange.clone(), "fanout", None);
        objects.bindings.insert(Binding {
            source: return_exchange,
            destination: Destination::Queue(self.queue.clone()),
            routing_key: String::new(),
            arguments: Arguments::new(),
        });
        for ((number, name), delay) in self.names().zip(&self.delays) {
            let (arguments, optional) = self.arguments(number, *delay, profile);
            let queue = Queue { durable: self.durable, auto_delete: false, exclusive: false, arguments };
            objects.queues.insert(name.clone(), queue);
            if !optional.is_empty() {
                objects.optional.insert(name, optional);
            }
        }
    }

    /// Returns the arguments of a tier, and the names of its optional arguments. An existing tier that lacks an optional
    /// argument does not cause a conflict.
    fn arguments(&self, number: u32, delay: i64, profile: &BrokerProfile) -> (Arguments, BTreeSet<String>) {
        let supports = |queue_type: QueueType, argument: &str| {
            KnownArgument::named(argument).is_some_and(|known| known.is_accepted(queue_type, profile.version))
        };
        // Quorum queues do not support a TTL before 3.10, so their tiers are classic queues on older brokers.
        let queue_type = if supports(self.queue_type, "x-message-ttl") { self.queue_type } else { QueueType::Classic };
        let mut arguments: Arguments = [
            ("x-queue-type".to_owned(), text(queue_type.as_str())),
            ("x-message-ttl".to_owned(), ArgumentValue::Integer(delay)),
            ("x-dead-letter-exchange".to_owned(), text(naming::return_exchange(&self.queue).as_str())),
            ("x-dead-letter-routing-key".to_owned(), text(&naming::retry_key(&self.queue, number))),
        ]
        .into();
        let mut optional = BTreeSet::new();
        if supports(queue_type, "x-dead-letter-strategy") {
            // These arguments prevent message loss between the tier and the queue. At-least-once dead-lettering
            // requires `reject-publish` (`rabbit_quorum_queue:dlh`).
            for (name, value) in [("x-dead-letter-strategy", "at-least-once"), ("x-overflow", "reject-publish")] {
                arguments.insert(name.to_owned(), text(value));
                optional.insert(name.to_owned());
            }
        }
        (arguments, optional)
    }
}

/// The objects that a retry strategy generates, before topo checks their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// The generated exchanges.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// The generated queues.
    pub queues: BTreeMap<QueueName, Queue>,
    /// The generated bindings.
    pub bindings: BTreeSet<Binding>,
    /// The optional arguments of each queue. An existing queue that lacks an optional argument does not cause a
    /// conflict.
    pub optional: BTreeMap<QueueName, BTreeSet<String>>,
}

impl Objects {
    /// Adds a durable exchange that is not internal. The broker refuses publishes to an internal exchange, and newer
    /// brokers do not include internal exchanges in exported definitions.
    pub(super) fn add_exchange(&mut self, name: ExchangeName, kind: &str, alternate: Option<&ExchangeName>) {
        let alternate = alternate.map(|alternate| ("alternate-exchange".to_owned(), alternate.as_str().into()));
        let exchange = Exchange {
            kind: kind.to_owned(),
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: alternate.into_iter().collect(),
        };
        self.exchanges.insert(name, exchange);
    }

    /// Adds a binding without arguments.
    pub(super) fn bind(&mut self, source: &ExchangeName, routing_key: String, destination: Destination) {
        self.bindings.insert(Binding { source: source.clone(), destination, routing_key, arguments: Arguments::new() });
    }

    /// Returns the IDs of all objects.
    pub fn ids(&self) -> BTreeSet<ObjectId> {
        let exchanges = self.exchanges.keys().cloned().map(ObjectId::Exchange);
        let queues = self.queues.keys().cloned().map(ObjectId::Queue);
        exchanges.chain(queues).chain(self.bindings.iter().cloned().map(ObjectId::Binding)).collect()
    }
}
