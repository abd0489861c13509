//! Computes the route of a message. As on the broker, a message passes through each exchange at most once.

use super::exchange::{Hop, Unclear};
use super::keys::Certainty;
use super::message::Message;
use super::{Kind, Routing};
use crate::model::{Binding, Destination, ExchangeName, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// The route of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The queues that certainly receive the message.
    pub certain_queues: BTreeSet<QueueName>,
    /// The queues that may receive the message.
    pub possible_queues: BTreeSet<QueueName>,
    /// How certain it is that at least one queue receives the message.
    pub reaches: Certainty,
    /// The reason why the route is uncertain; `None` if the route is certain.
    pub unclear: Option<Unclear>,
    /// True if additional queues may receive the message, because an exchange may have unknown bindings.
    pub is_open: bool,
}

/// The bindings and alternate exchanges on the route of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken<'a> {
    /// The bindings that match or may match the message.
    pub bindings: Vec<&'a Binding>,
    /// The exchanges whose alternate exchange receives or may receive the message.
    pub alternates: BTreeSet<ExchangeName>,
}

/// The outcome of routing a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteOutcome {
    /// These queues certainly receive the message. Empty if the message certainly reaches a queue, but topo cannot
    /// predict which queue.
    Reaches(BTreeSet<QueueName>),
    /// No queue receives the message.
    ReachesNothing,
    /// It is uncertain whether a queue receives the message.
    Uncertain(Unclear),
}

impl Route {
    /// Returns whether a queue receives the message.
    pub fn outcome(&self) -> RouteOutcome {
        match (self.reaches, &self.unclear) {
            (Certainty::Always, _) => RouteOutcome::Reaches(self.certain_queues.clone()),
            (Certainty::Never, _) | (Certainty::Perhaps, None) => RouteOutcome::ReachesNothing,
            (Certainty::Perhaps, Some(unclear)) => RouteOutcome::Uncertain(unclear.clone()),
        }
    }
}

/// The hops of one message.
struct Hops {
    /// The exchanges that the message can reach, each with its certainty and its destinations.
    hops: BTreeMap<ExchangeName, (Certainty, Hop)>,
}

impl<'a> Routing<'a> {
    /// Returns the bindings and alternate exchanges that are certainly or possibly on the route of a message.
    pub fn taken(&self, exchange: &ExchangeName, message: &Message) -> Taken<'a> {
        let mut taken = Taken::default();
        for (name, (_, hop)) in self.hops(exchange, message).hops {
            let Some(kind) = self.kind(&name) else { continue };
            let matches = |binding: &&Binding| self.matches(kind, binding, message) > Certainty::Never;
            taken.bindings.extend(self.candidates_for(&name, kind, message).into_iter().filter(matches));
            if !hop.alternates.is_empty() && hop.match_certainty().not() > Certainty::Never {
                taken.alternates.insert(name);
            }
        }
        taken
    }

    /// Returns the route of a message that is published to an exchange; empty if the exchange does not exist.
    pub fn route(&self, exchange: &ExchangeName, message: &Message) -> Route {
        let hops = self.hops(exchange, message);
        let mut found: BTreeMap<QueueName, Certainty> = BTreeMap::new();
        for (arrives, hop) in hops.hops.values() {
            for (destination, matches) in &hop.destinations {
                if let Destination::Queue(queue) = destination {
                    let certainty = found.entry(queue.clone()).or_insert(Certainty::Never);
                    *certainty = (*certainty).max(*arrives.min(matches));
                }
            }
        }
        let of = |desired| {
            found.iter().filter(move |(_, certainty)| **certainty == desired).map(|(queue, _)| queue.clone()).collect()
        };
        let unclear = hops.hops.values().find_map(|(_, hop)| hop.unclear.clone());
        let is_open = hops.hops.values().any(|(_, hop)| hop.is_open);
        let reaches = if hops.certain().contains(exchange) {
            Certainty::Always
        } else if found.is_empty() && !is_open {
            Certainty::Never
        } else {
            Certainty::Perhaps
        };
        // If there are several reasons, the route contains only the first. An uncertain route always has a reason.
        let unclear = unclear.or_else(|| (reaches == Certainty::Perhaps).then(|| Unclear::Policy(exchange.clone())));
        Route {
            certain_queues: of(Certainty::Always),
            possible_queues: of(Certainty::Perhaps),
            reaches,
            unclear,
            is_open,
        }
    }

    /// Returns true if the bindings of an exchange certainly route the message, so the alternate exchange does not
    /// receive it.
    pub fn routes_all(&self, exchange: &ExchangeName, message: &Message) -> bool {
        self.hop(exchange, message).is_some_and(|hop| hop.match_certainty() == Certainty::Always)
    }

    /// Returns the queues to which an exchange can route messages; `None` means any queue.
    pub fn reachable(&self, exchange: &ExchangeName) -> Option<BTreeSet<QueueName>> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut todo = vec![exchange.clone()];
        while let Some(name) = todo.pop() {
            if self.kind(&name) == Some(Kind::Default) {
                return None;
            }
            for binding in self.bindings_of(&name) {
                match &binding.destination {
                    Destination::Queue(queue) => {
                        found.insert(queue.clone());
                    }
                    Destination::Exchange(next) if seen.contains(next) => {}
                    Destination::Exchange(next) => todo.push(next.clone()),
                }
            }
            found.extend(self.external_bindings.get(&name).into_iter().flatten().copied().cloned());
            todo.extend(self.alternates(&name).into_iter().map(|(next, _)| next).filter(|next| !seen.contains(next)));
            seen.insert(name);
        }
        Some(found)
    }

    fn hops(&self, exchange: &ExchangeName, message: &Message) -> Hops {
        let mut hops: BTreeMap<ExchangeName, (Certainty, Hop)> = BTreeMap::new();
        let mut todo = vec![(exchange.clone(), Certainty::Always)];
        while let Some((name, arrives)) = todo.pop() {
            if hops.get(&name).is_some_and(|(known, _)| *known >= arrives) {
                continue;
            }
            let Some(hop) = self.hop(&name, message) else { continue };
            for (destination, matches) in &hop.destinations {
                if let Destination::Exchange(next) = destination {
                    todo.push((next.clone(), arrives.min(*matches)));
                }
            }
            let is_unrouted = hop.match_certainty().not();
            for (next, certainty) in hop.alternates.iter().filter(|_| is_unrouted > Certainty::Never) {
                todo.push((next.clone(), arrives.min(*certainty).min(is_unrouted)));
            }
            hops.insert(name, (arrives, hop));
        }
        Hops { hops }
    }
}

impl Hops {
    /// Returns the exchanges from which the message certainly reaches a queue. A cycle of exchanges does not reach a
    /// queue, so the computation starts with the exchanges that route directly to queues.
    fn certain(&self) -> BTreeSet<&ExchangeName> {
        let mut certain: BTreeSet<&ExchangeName> = BTreeSet::new();
        loop {
            let more = self.hops.iter().filter(|(name, (_, hop))| !certain.contains(name) && is_certain(hop, &certain));
            let more: Vec<&ExchangeName> = more.map(|(name, _)| name).collect();
            if more.is_empty() {
                return certain;
            }
            certain.extend(more);
        }
    }
}

/// Returns true if a hop certainly leads to a queue. `certain` contains the exchanges that certainly lead to a queue.
fn is_certain(hop: &Hop, certain: &BTreeSet<&ExchangeName>) -> bool {
    let arrives = |to: &Destination| match to {
        Destination::Queue(_) => true,
        Destination::Exchange(next) => certain.contains(next),
    };
    if hop.destinations.iter().any(|(to, matches)| *matches == Certainty::Always && arrives(to)) {
        return true;
    }
    // Otherwise, every destination must lead to a queue. If no binding certainly matches, the alternate exchange must
    // also lead to a queue.
    let is_covered = match &hop.alternates[..] {
        [(next, Certainty::Always)] => certain.contains(next),
        _ => false,
    };
    !hop.is_open
        && hop.destinations.iter().all(|(to, _)| arrives(to))
        && (is_covered || !hop.destinations.is_empty() && hop.match_certainty() == Certainty::Always)
}
