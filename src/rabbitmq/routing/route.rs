//! The whole way of a message: hop by hop, each exchange once, as the broker does it.

use super::exchange::Hop;
use super::{Certainty, Kind, Message, Routing};
use crate::model::{Destination, ExchangeName, QueueName};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The queues that surely get it.
    pub surely: BTreeSet<QueueName>,
    /// Others that may.
    pub perhaps: BTreeSet<QueueName>,
    /// Whether any queue gets it.
    pub reaches: Certainty,
    /// Why not all of it is certain.
    pub unclear: Option<Unclear>,
}

/// The answer to the question whether a message gets anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These queues surely get it; none of them where it surely gets to one, but not known which.
    Reaches(BTreeSet<QueueName>),
    /// No queue gets it.
    ReachesNothing,
    /// It cannot be told.
    CannotTell(Unclear),
}

/// Why it cannot be told, with the exchange where it begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unclear {
    /// It depends on the key.
    Key(ExchangeName),
    /// It depends on the headers.
    Headers(ExchangeName),
    /// The type of the exchange is a plugin's.
    Type(ExchangeName),
    /// The exchange is somebody else's, who may have bound it.
    Foreign(ExchangeName),
    /// Which policy says the alternate exchange is not known.
    Policy(ExchangeName),
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(exchange) => write!(f, "it depends on the routing key at exchange `{exchange}`"),
            Self::Headers(exchange) => write!(f, "it depends on the headers at exchange `{exchange}`"),
            Self::Type(exchange) => write!(f, "it depends on the plugin that exchange `{exchange}` is of"),
            Self::Foreign(exchange) => write!(f, "others may have bound exchange `{exchange}`"),
            Self::Policy(exchange) => write!(f, "it is not clear which policy governs exchange `{exchange}`"),
        }
    }
}

impl Route {
    /// In one of three words.
    pub fn answer(&self) -> Answer {
        match (self.reaches, &self.unclear) {
            (Certainty::Always, _) => Answer::Reaches(self.surely.clone()),
            (Certainty::Never, _) | (Certainty::Perhaps, None) => Answer::ReachesNothing,
            (Certainty::Perhaps, Some(unclear)) => Answer::CannotTell(unclear.clone()),
        }
    }
}

/// The hops of one message.
struct Hops {
    /// Each exchange that it may come to, and whether it surely does.
    hops: BTreeMap<ExchangeName, (Certainty, Hop)>,
}

impl Routing<'_> {
    /// Where a message goes that is published to an exchange; nowhere, if there is none of that name.
    pub fn route(&self, exchange: &ExchangeName, message: &Message) -> Route {
        let hops = self.hops(exchange, message);
        let mut found: BTreeMap<QueueName, Certainty> = BTreeMap::new();
        for (comes, hop) in hops.hops.values() {
            for (destination, goes) in &hop.own {
                if let Destination::Queue(queue) = destination {
                    let certainty = found.entry(queue.clone()).or_insert(Certainty::Never);
                    *certainty = (*certainty).max(*comes.min(goes));
                }
            }
        }
        let of = |desired| {
            found.iter().filter(move |(_, certainty)| **certainty == desired).map(|(queue, _)| queue.clone()).collect()
        };
        let unclear = hops.hops.values().find_map(|(_, hop)| hop.unclear.clone());
        let reaches = if hops.sure().contains(exchange) {
            Certainty::Always
        } else if found.is_empty() && !hops.hops.values().any(|(_, hop)| hop.is_open) {
            Certainty::Never
        } else {
            Certainty::Perhaps
        };
        // Only the order of several doubts decides which is told; there is one where anything is in doubt.
        let unclear = unclear.or_else(|| (reaches == Certainty::Perhaps).then(|| Unclear::Policy(exchange.clone())));
        Route { surely: of(Certainty::Always), perhaps: of(Certainty::Perhaps), reaches, unclear }
    }

    /// Whether an exchange surely has a place for such a message by its own bindings: then none is left for its alternate.
    pub fn routes_all(&self, exchange: &ExchangeName, message: &Message) -> bool {
        self.hop(exchange, message).is_some_and(|hop| hop.is_sent() == Certainty::Always)
    }

    /// The queues to which an exchange may send anything, whatever it is; `None` is any queue.
    pub fn within_reach(&self, exchange: &ExchangeName) -> Option<BTreeSet<QueueName>> {
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
            found.extend(self.bound_by_others.get(&name).into_iter().flatten().copied().cloned());
            todo.extend(self.alternates(&name).into_iter().map(|(next, _)| next).filter(|next| !seen.contains(next)));
            seen.insert(name);
        }
        Some(found)
    }

    fn hops(&self, exchange: &ExchangeName, message: &Message) -> Hops {
        let mut hops: BTreeMap<ExchangeName, (Certainty, Hop)> = BTreeMap::new();
        let mut todo = vec![(exchange.clone(), Certainty::Always)];
        while let Some((name, comes)) = todo.pop() {
            if hops.get(&name).is_some_and(|(known, _)| *known >= comes) {
                continue;
            }
            let Some(hop) = self.hop(&name, message) else { continue };
            for (destination, goes) in &hop.own {
                if let Destination::Exchange(next) = destination {
                    todo.push((next.clone(), comes.min(*goes)));
                }
            }
            let is_left = hop.is_sent().not();
            for (next, goes) in hop.alternates.iter().filter(|_| is_left > Certainty::Never) {
                todo.push((next.clone(), comes.min(*goes).min(is_left)));
            }
            hops.insert(name, (comes, hop));
        }
        Hops { hops }
    }
}

impl Hops {
    /// The exchanges from which a message surely gets to a queue, whichever way it takes. Around a circle it does not, so
    /// the set is built up from those that lead to queues.
    fn sure(&self) -> BTreeSet<&ExchangeName> {
        let mut sure: BTreeSet<&ExchangeName> = BTreeSet::new();
        loop {
            let more = self.hops.iter().filter(|(name, (_, hop))| !sure.contains(name) && is_sure(hop, &sure));
            let more: Vec<&ExchangeName> = more.map(|(name, _)| name).collect();
            if more.is_empty() {
                return sure;
            }
            sure.extend(more);
        }
    }
}

fn is_sure(hop: &Hop, sure: &BTreeSet<&ExchangeName>) -> bool {
    let arrives = |to: &Destination| match to {
        Destination::Queue(_) => true,
        Destination::Exchange(next) => sure.contains(next),
    };
    if hop.own.iter().any(|(to, goes)| *goes == Certainty::Always && arrives(to)) {
        return true;
    }
    // Else whichever of its own is taken must do, or the alternate where none is.
    let is_covered = match &hop.alternates[..] {
        [(next, Certainty::Always)] => sure.contains(next),
        _ => false,
    };
    !hop.is_open
        && hop.own.iter().all(|(to, _)| arrives(to))
        && (is_covered || !hop.own.is_empty() && hop.is_sent() == Certainty::Always)
}
