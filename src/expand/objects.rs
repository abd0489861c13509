//! The objects that a retry strategy needs on the broker, before their names are checked.

use crate::model::{Arguments, Binding, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// Generated objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Exchanges.
    pub exchanges: BTreeMap<ExchangeName, Exchange>,
    /// Queues.
    pub queues: BTreeMap<QueueName, Queue>,
    /// Bindings.
    pub bindings: BTreeSet<Binding>,
    /// Optional arguments of the queues: a current queue can lack them without a conflict.
    pub optional: BTreeMap<QueueName, BTreeSet<String>>,
}

impl Objects {
    /// Adds an exchange. It is not internal: the broker would refuse applications that declare it, and newer brokers do not
    /// export internal exchanges to definitions.
    pub(super) fn exchange(&mut self, name: ExchangeName, kind: &str, alternate: Option<&ExchangeName>) {
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
