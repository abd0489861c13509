//! With which keys messages come to a queue: those of the bindings that lead to it.

use super::exchange::Kind;
use super::{Certainty, Keys, Routing};
use crate::model::{Binding, Destination, ExchangeName, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the keys of messages beside the bindings. It goes with one [`Routing`].
pub struct Arrivals {
    /// Exchanges to which only other exchanges and queues send, with the keys that come to them.
    closed: BTreeMap<ExchangeName, BTreeSet<Keys>>,
    /// Queues to which dead letters go by their names.
    named: BTreeSet<QueueName>,
}

/// What comes to an exchange without a binding.
#[derive(Default)]
struct LeftOver<'n> {
    /// From exchanges that have it as their alternate.
    alternate_of: Vec<&'n ExchangeName>,
    /// Dead letters, with the key that they get.
    dead_letters_of: Vec<(&'n QueueName, Option<&'n str>)>,
}

impl Arrivals {
    /// Anybody publishes to every exchange with any key, but for internal ones and for those that are `closed`.
    pub fn new(routing: &Routing<'_>, closed: BTreeSet<ExchangeName>) -> Self {
        let topology = routing.topology;
        let internal =
            topology.exchanges.iter().filter(|(_, exchange)| exchange.internal).map(|(name, _)| name.clone());
        let names: BTreeSet<ExchangeName> = closed.into_iter().chain(internal).collect();
        let mut left_over: BTreeMap<ExchangeName, LeftOver<'_>> = BTreeMap::new();
        let mut named = BTreeSet::new();
        for source in topology.exchanges.keys() {
            for (name, _) in routing.alternates(source) {
                left_over.entry(name).or_default().alternate_of.push(source);
            }
        }
        for queue in topology.queues.keys() {
            for to in routing.dead_lettering(queue).iter().flatten() {
                let key = to.routing_key.as_deref();
                if let Some(key) = key.filter(|_| to.exchange.as_str().is_empty()) {
                    named.insert(QueueName::new(key));
                }
                // What comes to the others is whatever anybody publishes.
                if names.contains(&to.exchange) {
                    left_over.entry(to.exchange.clone()).or_default().dead_letters_of.push((queue, key));
                }
            }
        }
        let closed = names.into_iter().map(|name| (name, BTreeSet::new())).collect();
        let mut arrivals = Self { closed, named };
        // Each round can only add, and there are no more keys than bindings and settings say.
        let names: Vec<ExchangeName> = arrivals.closed.keys().cloned().collect();
        loop {
            let mut has_changed = false;
            for name in &names {
                let keys = arrivals.at_closed(routing, name, left_over.get(name));
                let known = arrivals.closed.entry(name.clone()).or_default();
                has_changed |= known.len() < keys.len();
                *known = keys;
            }
            if !has_changed {
                return arrivals;
            }
        }
    }

    /// With which keys messages come to a queue.
    ///
    /// To one that no binding leads to, they come through the default exchange with its name: where there are bindings
    /// nobody means that way.
    pub fn at_queue(&self, routing: &Routing<'_>, queue: &QueueName) -> BTreeSet<Keys> {
        let destination = Destination::Queue(queue.clone());
        let mut keys = self.by_bindings(routing, &destination);
        if routing.bindings_to(&destination).is_empty() || self.named.contains(queue) {
            keys.insert(Keys::One(queue.as_str().to_owned()));
        }
        keys
    }

    fn at_exchange(&self, exchange: &ExchangeName) -> BTreeSet<Keys> {
        self.closed.get(exchange).cloned().unwrap_or_else(|| [Keys::any()].into())
    }

    fn at_closed(
        &self,
        routing: &Routing<'_>,
        exchange: &ExchangeName,
        left_over: Option<&LeftOver<'_>>,
    ) -> BTreeSet<Keys> {
        let mut keys = self.by_bindings(routing, &Destination::Exchange(exchange.clone()));
        let Some(left_over) = left_over else { return keys };
        keys.extend(left_over.alternate_of.iter().flat_map(|source| self.at_exchange(source)));
        for (queue, key) in &left_over.dead_letters_of {
            match key {
                Some(key) => keys.extend([Keys::One((*key).to_owned())]),
                None => keys.extend(self.at_queue(routing, queue)),
            }
        }
        keys
    }

    fn by_bindings(&self, routing: &Routing<'_>, destination: &Destination) -> BTreeSet<Keys> {
        let bindings = routing.bindings_to(destination).iter();
        let come = bindings.flat_map(|binding| {
            self.at_exchange(&binding.source).into_iter().filter_map(|keys| through(routing, binding, &keys))
        });
        come.collect()
    }
}

/// Those of the keys that a binding takes.
fn through(routing: &Routing<'_>, binding: &Binding, keys: &Keys) -> Option<Keys> {
    let taken = match routing.kind(&binding.source)? {
        Kind::Direct => keys.are(&binding.routing_key),
        Kind::Topic => keys.match_topic(&binding.routing_key),
        Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => Certainty::Always,
    };
    match taken {
        Certainty::Never => None,
        Certainty::Always => Some(keys.clone()),
        Certainty::Perhaps => Some(Keys::of_topic(&binding.routing_key)),
    }
}
