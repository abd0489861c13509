//! A graph of the possible hops of messages between exchanges and to queues in one topology.

use super::demand::{Bundle, ExampleMessage};
use crate::model::{Binding, Destination, ExchangeName, QueueName};
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use crate::rabbitmq::routing::exchange::Unclear;
use crate::rabbitmq::routing::{Certainty, Keys, Kind, Routing};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A hop from an exchange.
#[derive(Clone, Debug)]
pub(super) struct Hop<'a> {
    pub(super) from: ExchangeName,
    pub(super) to: Destination,
    pub(super) via: Via<'a>,
}

/// The condition of a hop.
#[derive(Clone, Debug)]
pub(super) enum Via<'a> {
    /// One of the bindings to the destination matches the message.
    Bindings,
    /// This binding matches the message.
    Binding(&'a Binding),
    /// No binding of the exchange matches the message.
    Alternate,
}

/// The hops of a topology.
pub(super) struct Graph<'r, 'a> {
    pub(super) routing: &'r Routing<'a>,
    /// The exchanges whose alternate exchange is the key.
    alternate_of: BTreeMap<ExchangeName, Vec<ExchangeName>>,
    /// The source exchanges of the bindings to each destination.
    sources: BTreeMap<&'a Destination, BTreeSet<&'a ExchangeName>>,
}

impl<'r, 'a> Graph<'r, 'a> {
    pub(super) fn new(routing: &'r Routing<'a>) -> Self {
        let mut alternate_of: BTreeMap<ExchangeName, Vec<ExchangeName>> = BTreeMap::new();
        let predeclared: Vec<ExchangeName> = predeclared_in_every_vhost().collect();
        for exchange in routing.topology().exchanges.keys().chain(&predeclared) {
            for (alternate, _) in routing.alternates(exchange) {
                alternate_of.entry(alternate).or_default().push(exchange.clone());
            }
        }
        let mut sources: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for binding in &routing.topology().bindings {
            sources.entry(&binding.destination).or_default().insert(&binding.source);
        }
        Self { routing, alternate_of, sources }
    }

    pub(super) fn kind(&self, exchange: &ExchangeName) -> Option<Kind> {
        self.routing.kind(exchange)
    }

    /// Returns the reason why topo cannot compare the hops from an exchange; `None` if topo can compare them.
    pub(super) fn unclear(&self, exchange: &ExchangeName) -> Option<Unclear> {
        match self.kind(exchange) {
            Some(Kind::OneOf | Kind::Unknown) => Some(Unclear::Type(exchange.clone())),
            _ if self.routing.is_open(exchange) || self.routing.has_external_bindings(exchange) => {
                Some(Unclear::UnknownBindings(exchange.clone()))
            }
            Some(Kind::Default | Kind::Direct | Kind::Fanout | Kind::Topic | Kind::Headers) | None => {
                self.unclear_alternate(exchange)
            }
        }
    }

    /// Returns a reason if the alternate exchange is uncertain.
    pub(super) fn unclear_alternate(&self, exchange: &ExchangeName) -> Option<Unclear> {
        let mut alternates = self.routing.alternates(exchange).into_iter();
        alternates.any(|(_, certainty)| certainty != Certainty::Always).then(|| Unclear::Policy(exchange.clone()))
    }

    /// Returns the bindings of an exchange that can match a message with these keys, and possibly a few bindings that
    /// cannot.
    pub(super) fn bindings_of(&self, exchange: &ExchangeName, keys: &Keys) -> Bundle<'a> {
        let kind = self.kind(exchange).unwrap_or(Kind::Unknown);
        self.bundle(exchange, self.routing.candidates(exchange, kind, keys))
    }

    /// Returns a superset of the bindings through which a message with one of these keys can take the hop; `None` for a
    /// hop to an alternate exchange.
    pub(super) fn bindings_of_hop(&self, hop: &Hop<'a>, keys: &Keys) -> Option<Bundle<'a>> {
        match hop.via {
            Via::Alternate => None,
            Via::Binding(binding) => Some(self.bundle(&hop.from, vec![binding])),
            Via::Bindings if *keys == Keys::any() => {
                let bindings = self.routing.bindings_to(&hop.to).iter().copied();
                Some(self.bundle(&hop.from, bindings.filter(|binding| binding.source == hop.from).collect()))
            }
            Via::Bindings => {
                let mut bundle = self.bindings_of(&hop.from, keys);
                bundle.bindings.retain(|binding| binding.destination == hop.to);
                Some(bundle)
            }
        }
    }

    pub(super) fn bundle(&self, exchange: &ExchangeName, bindings: Vec<&'a Binding>) -> Bundle<'a> {
        Bundle { kind: self.kind(exchange).unwrap_or(Kind::Unknown), bindings }
    }

    /// Returns the first possible alternate exchange; `None` if there is none.
    pub(super) fn alternate(&self, exchange: &ExchangeName) -> Option<ExchangeName> {
        self.routing.alternates(exchange).into_iter().next().map(|(alternate, _)| alternate)
    }

    /// Returns the hops from an exchange.
    pub(super) fn hops_from(&self, exchange: &ExchangeName) -> Vec<Hop<'a>> {
        let bound: BTreeSet<&Destination> =
            self.routing.bindings_of(exchange).iter().map(|binding| &binding.destination).collect();
        bound.into_iter().map(|to| bound_hop(exchange, to)).chain(self.alternate_hop(exchange)).collect()
    }

    pub(super) fn alternate_hop(&self, exchange: &ExchangeName) -> Option<Hop<'a>> {
        let alternate = self.alternate(exchange)?;
        Some(Hop { from: exchange.clone(), to: Destination::Exchange(alternate), via: Via::Alternate })
    }

    /// Returns the hops to a destination.
    pub(super) fn hops_to(&self, destination: &Destination) -> Vec<Hop<'a>> {
        let sources = self.sources.get(destination).into_iter().flatten();
        let bound = sources.map(|from| bound_hop(from, destination));
        let alternate = match destination {
            Destination::Exchange(exchange) => self.alternate_of.get(exchange),
            Destination::Queue(_) => None,
        };
        let alternate = alternate.into_iter().flatten();
        bound.chain(alternate.filter_map(|from| self.alternate_hop(from))).collect()
    }

    /// Returns a shortest path for a message from `entry` to `queue`, or to any queue if `queue` is `None`. Returns
    /// `None` if the message does not reach such a queue.
    ///
    /// # Errors
    /// Returns the reason if the route is uncertain.
    pub(super) fn path(
        &self,
        entry: &ExchangeName,
        queue: Option<&QueueName>,
        example: &ExampleMessage,
    ) -> Result<Option<Vec<Hop<'a>>>, Unclear> {
        let message = example.message();
        let is_target = |to: &Destination| match (to, queue) {
            (Destination::Queue(reached), Some(queue)) => reached == queue,
            (Destination::Queue(_), None) => true,
            (Destination::Exchange(_), _) => false,
        };
        let mut target = None;
        let mut before: BTreeMap<Destination, Hop<'a>> = BTreeMap::new();
        let mut seen = BTreeSet::from([entry.clone()]);
        let mut todo = VecDeque::from([entry.clone()]);
        while let Some(exchange) = todo.pop_front() {
            let Some(hop) = self.routing.hop(&exchange, &message) else { continue };
            if let Some(unclear) = hop.unclear {
                return Err(unclear);
            }
            let mut next: Vec<Hop<'a>> = Vec::new();
            for (destination, _) in &hop.destinations {
                next.push(bound_hop(&exchange, destination));
            }
            if hop.destinations.is_empty() {
                if hop.alternates.iter().any(|(_, certainty)| *certainty != Certainty::Always) {
                    return Err(Unclear::Policy(exchange));
                }
                next.extend(self.alternate_hop(&exchange));
            }
            for hop in next {
                let to = hop.to.clone();
                target = target.or_else(|| is_target(&to).then(|| to.clone()));
                before.entry(to.clone()).or_insert(hop);
                match to {
                    Destination::Exchange(next) if seen.insert(next.clone()) => todo.push_back(next),
                    Destination::Exchange(_) | Destination::Queue(_) => {}
                }
            }
            if target.is_some() {
                break;
            }
        }
        let Some(target) = target else { return Ok(None) };
        let mut path = Vec::new();
        let mut at = target;
        // A hop back to the entry is not part of the path.
        while let Some(hop) = before.get(&at) {
            path.push(hop.clone());
            if hop.from == *entry {
                path.reverse();
                return Ok(Some(path));
            }
            at = Destination::Exchange(hop.from.clone());
        }
        Ok(None)
    }
}

/// Creates the hop through the bindings between an exchange and a destination.
fn bound_hop<'a>(from: &ExchangeName, to: &Destination) -> Hop<'a> {
    Hop { from: from.clone(), to: to.clone(), via: Via::Bindings }
}
