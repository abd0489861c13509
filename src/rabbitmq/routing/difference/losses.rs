//! Finds messages that reach a queue in one topology but not in another, grouped by the change that causes the
//! difference.

use super::budget::{Budget, TooComplex};
use super::demand::{Bundle, Demand, ExampleMessage};
use super::graph::{Graph, Hop, Via};
use super::paths::{TooManyPaths, paths_through, paths_to};
use super::search::{NotCompared, Search, demand_of};
use crate::model::{Binding, BrokerVersion, ExchangeName, QueueName, Topology};
use crate::rabbitmq::profile::predeclared_in_every_vhost;
use crate::rabbitmq::routing::{Keys, Kind, Routing};
use std::collections::{BTreeMap, BTreeSet};

/// The change that causes a difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A binding that only one of the topologies contains.
    Binding(Binding),
    /// A different alternate exchange for this exchange.
    Alternate(ExchangeName),
    /// A different type for this exchange, or different arguments of a plugin type.
    Type(ExchangeName),
}

/// The exchange to which a message is published, and the change that causes a difference.
pub type EntryAndCause = (ExchangeName, Cause);

/// The messages that reach queues in one topology but not in another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The queues that messages no longer reach, each with an example.
    pub queues: BTreeMap<EntryAndCause, BTreeMap<QueueName, Loss>>,
    /// An example of a message that reaches a queue in one topology but no queue in the other, for each entry and
    /// cause.
    pub complete: BTreeMap<EntryAndCause, ExampleMessage>,
    /// The causes whose effects topo could not compare, each with the reason.
    pub not_compared: BTreeMap<EntryAndCause, NotCompared>,
}

/// A queue that messages no longer reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// One of the messages.
    pub example: ExampleMessage,
    /// The extent of the loss.
    pub extent: Extent,
}

/// The extent of a loss: whether all messages to which the cause applies are lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// All messages are lost.
    All,
    /// Not all messages are lost. This message reaches the queue in both topologies.
    Except(ExampleMessage),
    /// The extent is unknown, because there are too many cases or a route is uncertain.
    Unknown,
}

/// A changed hop in the first topology.
struct Changed<'a> {
    cause: Cause,
    hop: Hop<'a>,
    /// Bindings in the second topology that the message must also match.
    extra: Option<Bundle<'a>>,
}

impl Changed<'_> {
    /// Returns the keys of the messages that the change affects, and possibly additional keys.
    fn keys(&self, one: &Graph<'_, '_>) -> Keys {
        let of = |kind, binding: &Binding| match kind {
            Kind::Topic => Keys::of_topic(&binding.routing_key),
            Kind::Direct => Keys::One(binding.routing_key.clone()),
            Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => Keys::any(),
        };
        match (&self.hop.via, &self.extra) {
            (Via::Binding(binding), _) => one.kind(&self.hop.from).map_or_else(Keys::any, |kind| of(kind, binding)),
            (_, Some(extra)) => extra.bindings.first().map_or_else(Keys::any, |binding| of(extra.kind, binding)),
            (Via::Bindings | Via::Alternate, None) => Keys::any(),
        }
    }
}

/// Returns the messages that reach a queue in `one`, but not the same queue in `other`, when they are published to an
/// exchange in `entries`.
pub fn losses<'a>(one: &Routing<'a>, other: &Routing<'a>, entries: &BTreeSet<ExchangeName>) -> Losses {
    let version = one.profile.version;
    let (one, other) = (Graph::new(one), Graph::new(other));
    let mut losses = Losses::default();
    let budget = Budget::new();
    for changed in changes(&one, &other) {
        budget.start_cause();
        let keys = changed.keys(&one);
        let Changed { cause, hop, extra } = changed;
        let paths = match paths_through(&one, &hop, entries) {
            Ok(paths) => paths,
            Err(TooManyPaths { entries }) => {
                let demand = demand_of(&one, std::slice::from_ref(&hop), extra, &keys);
                let example = demand.message(version, &budget).ok().flatten();
                for entry in entries {
                    let key = (entry, cause.clone());
                    // A single example can still show that messages become unroutable.
                    let reaches =
                        |graph: &Graph<'_, '_>, example| graph.path(&key.0, None, example).map(|it| it.is_some());
                    if let Some(example) = &example
                        && reaches(&one, example) == Ok(true)
                        && reaches(&other, example) == Ok(false)
                    {
                        losses.complete.insert(key.clone(), example.clone());
                    }
                    losses.not_compared.insert(key, NotCompared::TooComplex);
                }
                continue;
            }
        };
        for (entry, queue, path) in paths {
            let key = (entry, cause.clone());
            let is_known = losses.queues.get(&key).is_some_and(|queues| queues.contains_key(&queue));
            let unclear = |hop: &Hop<'_>| one.unclear(&hop.from).or_else(|| other.unclear_alternate(&hop.from));
            if let Some(unclear) = path.iter().find_map(unclear) {
                losses.not_compared.entry(key).or_insert(NotCompared::Unclear(unclear));
                continue;
            }
            let demand = demand_of(&one, &path, extra.clone(), &keys);
            let path_extent = || extent(&other, (&key.0, &queue), &demand, (version, &keys, &budget));
            if let Some(known) = losses.queues.get_mut(&key).and_then(|queues| queues.get_mut(&queue))
                && known.extent == Extent::All
            {
                known.extent = path_extent();
            }
            if is_known && losses.complete.contains_key(&key) {
                continue;
            }
            let search =
                |queue| Search::new(&other, &key.0, queue, (version, &keys, &budget)).readable_example(&demand);
            // A message that reaches no queue in `other` is also an example for this queue.
            let complete = if losses.complete.contains_key(&key) { Ok(None) } else { search(None) };
            let found = match &complete {
                Ok(Some(example)) if !is_known => Ok(Some(example.clone())),
                Ok(_) if is_known => Ok(None),
                Ok(_) | Err(_) => search(Some(&queue)),
            };
            for reason in [complete.as_ref().err(), found.as_ref().err()].into_iter().flatten() {
                losses.not_compared.entry(key.clone()).or_insert_with(|| reason.clone());
            }
            if let Ok(Some(example)) = complete {
                losses.complete.insert(key.clone(), example);
            }
            if let Ok(Some(example)) = found {
                let extent = path_extent();
                losses.queues.entry(key).or_default().insert(queue, Loss { example, extent });
            }
        }
    }
    losses
}

/// The maximum number of paths to a queue. If there are more paths, topo does not search for a message that still
/// reaches the queue.
const MAX_REMAINING_PATHS: usize = 20;

/// Determines the extent of a loss: searches for a message that meets the demand and reaches the queue in the other
/// topology.
fn extent(
    other: &Graph<'_, '_>,
    (entry, queue): (&ExchangeName, &QueueName),
    demand: &Demand<'_>,
    (version, keys, budget): (BrokerVersion, &Keys, &Budget),
) -> Extent {
    let Some(paths) = paths_to(other, entry, queue).filter(|paths| paths.len() <= MAX_REMAINING_PATHS) else {
        return Extent::Unknown;
    };
    for path in paths {
        let path_demand = demand_of(other, &path, None, keys);
        let mut both = demand.clone();
        both.wanted.extend(path_demand.wanted);
        both.unwanted.extend(path_demand.unwanted);
        let is_clear = path.iter().all(|hop| other.unclear(&hop.from).is_none());
        both.has_longer_keys = true;
        let longer = both.message(version, budget);
        both.has_longer_keys = false;
        match longer.ok().flatten().map_or_else(|| both.message(version, budget), |found| Ok(Some(found))) {
            Ok(Some(message)) if is_clear => return Extent::Except(message),
            Ok(None) => {}
            Ok(Some(_)) | Err(TooComplex) => return Extent::Unknown,
        }
    }
    Extent::All
}

/// Returns the hops in `one` that messages might no longer take in `other`.
fn changes<'a>(one: &Graph<'_, 'a>, other: &Graph<'_, 'a>) -> Vec<Changed<'a>> {
    let (old, new) = (one.routing.topology(), other.routing.topology());
    let (removed, added) = (by_source(old, new), by_source(new, old));
    let of = |bindings: &BTreeMap<&ExchangeName, Vec<&'a Binding>>, exchange| {
        bindings.get(exchange).cloned().unwrap_or_default()
    };
    let predeclared: Vec<ExchangeName> = predeclared_in_every_vhost().collect();
    let declared = old.exchanges.keys().chain(one.routing.by_source.keys().copied());
    let exchanges: BTreeSet<&ExchangeName> = declared.chain(&predeclared).collect();
    let mut changes = Vec::new();
    for exchange in exchanges {
        let kinds = (one.kind(exchange), other.kind(exchange));
        // The arguments of an exchange can affect routing if a plugin provides the exchange type.
        let is_from_plugin = matches!(kinds.0, Some(Kind::OneOf | Kind::Unknown));
        let settings = |of: &'a Topology| of.exchanges.get(exchange).map(|it| (&it.kind, &it.arguments));
        let is_different = is_from_plugin && settings(old) != settings(new);
        if kinds.1.is_some() && (kinds.0 != kinds.1 || is_different) {
            let cause = || Cause::Type(exchange.clone());
            changes.extend(one.hops_from(exchange).into_iter().map(|hop| Changed { cause: cause(), hop, extra: None }));
            continue;
        }
        for binding in of(&removed, exchange) {
            let hop = Hop { from: exchange.clone(), to: binding.destination.clone(), via: Via::Binding(binding) };
            changes.push(Changed { cause: Cause::Binding(binding.clone()), hop, extra: None });
        }
        // A plugin exchange can route messages through a new binding instead of the existing bindings. It is
        // enough to name one new binding as the cause.
        if let Some(binding) = of(&added, exchange).first().filter(|_| is_from_plugin) {
            let cause = || Cause::Binding((*binding).clone());
            changes.extend(one.hops_from(exchange).into_iter().map(|hop| Changed { cause: cause(), hop, extra: None }));
        }
        let Some(hop) = one.alternate_hop(exchange) else { continue };
        // A change to an uncertain alternate exchange is reported as not compared.
        if one.routing.alternates(exchange) != other.routing.alternates(exchange) {
            let cause = Cause::Alternate(exchange.clone());
            changes.push(Changed { cause, hop: hop.clone(), extra: None });
        }
        for binding in of(&added, exchange) {
            let extra = Some(other.bundle(exchange, vec![binding]));
            changes.push(Changed { cause: Cause::Binding(binding.clone()), hop: hop.clone(), extra });
        }
    }
    changes
}

/// Returns the bindings that only the first topology contains, by source.
fn by_source<'a>(one: &'a Topology, other: &'a Topology) -> BTreeMap<&'a ExchangeName, Vec<&'a Binding>> {
    let mut bindings: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for binding in one.bindings.difference(&other.bindings) {
        bindings.entry(&binding.source).or_default().push(binding);
    }
    bindings
}
