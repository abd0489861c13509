//! Finds an example of a message that reaches a queue in one topology but not in another.

use super::budget::{Budget, TooComplex};
use super::demand::{Bundle, Demand, ExampleMessage};
use super::graph::{Graph, Hop};
use crate::model::{BrokerVersion, ExchangeName, QueueName};
use crate::rabbitmq::routing::Keys;
use crate::rabbitmq::routing::exchange::Unclear;
use std::fmt;

/// The maximum number of demands that one call to [`Search::example`] tries, including its nested calls.
const MAX_SEARCHES: usize = 500;

/// The reason why the effect of a cause is unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotCompared {
    /// A route is uncertain.
    Unclear(Unclear),
    /// The comparison has too many cases, or involves a header value that topo cannot compare.
    TooComplex,
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclear(unclear) => unclear.fmt(f),
            Self::TooComplex => {
                f.write_str("the comparison has too many cases or involves a header value that topo cannot compare")
            }
        }
    }
}

impl From<TooComplex> for NotCompared {
    fn from(_: TooComplex) -> Self {
        Self::TooComplex
    }
}

/// A search for a message that does not reach a queue. If no queue is given, the message must reach no queue at all.
pub(super) struct Search<'s, 'r, 'a> {
    /// The topology in which the message must not reach the queue.
    pub(super) other: &'s Graph<'r, 'a>,
    pub(super) entry: &'s ExchangeName,
    /// The queue that the message must not reach; `None` if it must reach no queue.
    pub(super) queue: Option<&'s QueueName>,
    pub(super) version: BrokerVersion,
    /// The keys of all messages that meet the demand, and possibly additional keys.
    keys: &'s Keys,
    searches: usize,
    budget: &'s Budget,
}

impl<'s, 'r, 'a> Search<'s, 'r, 'a> {
    pub(super) fn new(
        other: &'s Graph<'r, 'a>,
        entry: &'s ExchangeName,
        queue: Option<&'s QueueName>,
        (version, keys, budget): (BrokerVersion, &'s Keys, &'s Budget),
    ) -> Self {
        Self { other, entry, queue, version, keys, searches: 0, budget }
    }

    /// Returns a message that meets the demand and does not reach the queue. If possible, the key contains a word for
    /// each `#`.
    pub(super) fn readable_example(mut self, demand: &Demand<'a>) -> Result<Option<ExampleMessage>, NotCompared> {
        let longer = Demand { has_longer_keys: true, ..demand.clone() };
        if let Ok(Some(found)) = self.example(&longer) {
            return Ok(Some(found));
        }
        self.searches = 0;
        self.example(demand)
    }

    /// Returns a message that meets the demand and does not reach the queue; `None` if no such message exists.
    ///
    /// If a candidate message reaches the queue, the search blocks one hop of its path at a time. To block a hop
    /// through bindings, it requires that none of the bindings match. To block a hop to an alternate exchange, it
    /// requires that at least one binding of the exchange before the hop match.
    fn example(&mut self, demand: &Demand<'a>) -> Result<Option<ExampleMessage>, NotCompared> {
        self.searches += 1;
        if self.searches > MAX_SEARCHES {
            return Err(NotCompared::TooComplex);
        }
        self.budget.take(5)?;
        let Some(message) = demand.message(self.version, self.budget)? else { return Ok(None) };
        let path = self.other.path(self.entry, self.queue, &message).map_err(NotCompared::Unclear)?;
        let Some(path) = path else { return Ok(Some(message)) };
        for hop in path {
            let mut next = demand.clone();
            match self.other.bindings_of_hop(&hop, self.keys) {
                Some(bundle) => next.unwanted.push(bundle),
                None => next.wanted.push(self.other.bindings_of(&hop.from, self.keys)),
            }
            if let Some(found) = self.example(&next)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the demand for a message with these keys that takes a path. `extra` contains additional wanted bindings.
pub(super) fn demand_of<'a>(
    graph: &Graph<'_, 'a>,
    path: &[Hop<'a>],
    extra: Option<Bundle<'a>>,
    keys: &Keys,
) -> Demand<'a> {
    let mut demand = Demand::default();
    demand.wanted.extend(extra);
    for hop in path {
        match graph.bindings_of_hop(hop, keys) {
            Some(bundle) => demand.wanted.push(bundle),
            None => demand.unwanted.push(graph.bindings_of(&hop.from, keys)),
        }
    }
    demand
}
