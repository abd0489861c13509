//! Determines the routing keys of the messages that reach each queue, and the fate of the messages that a queue
//! dead-letters: the queues that receive them, and the messages that the broker drops. `topo lint`, `explain`,
//! `contract` and `graph` use this simulation.

use super::keys::Certainty;
use super::message::Message;
use super::outgoing::Kind;
use super::{DeadLettering, Keys, Reason, Route, Routing};
use crate::model::{
    Binding, BrokerVersion, Destination, ExchangeName, Family, ObjectId, QueueName, Reach, Strategy, naming,
};
use std::collections::{BTreeMap, BTreeSet};

/// The routing keys of the messages that reach the queues of one [`Routing`].
pub struct Arrivals {
    queues: BTreeMap<QueueName, BTreeSet<Keys>>,
    /// The number of retries of each queue with a retry ladder.
    ladders: BTreeMap<QueueName, u32>,
}

static NO_KEYS: BTreeSet<Keys> = BTreeSet::new();

impl Arrivals {
    /// Computes the routing keys of the messages that reach each queue.
    ///
    /// Assumes that applications publish with any key to every exchange, except internal exchanges and generated retry
    /// exchanges. Only the queues, exchanges and workers of a retry family publish to the exchanges of that family.
    pub fn new(routing: &Routing<'_>, families: &[Family]) -> Self {
        let topology = routing.topology;
        let internal =
            topology.exchanges.iter().filter(|(_, exchange)| exchange.internal).map(|(name, _)| name.clone());
        let generated: BTreeSet<&ObjectId> = families.iter().flat_map(|family| &family.members).collect();
        let retry_exchanges = generated.iter().filter_map(|id| match id {
            ObjectId::Exchange(name) => Some(name.clone()),
            ObjectId::Vhost | ObjectId::Queue(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
                None
            }
        });
        let closed = retry_exchanges.chain(internal).map(|name| (name, BTreeSet::new())).collect();
        let mut found = Propagation { routing, closed, queues: BTreeMap::new(), todo: Vec::new() };
        let sources = routing.by_source.keys().copied().chain(topology.exchanges.keys());
        for open in sources.collect::<BTreeSet<_>>() {
            if !found.closed.contains_key(open) {
                found.todo.push((open.clone(), Keys::any()));
            }
        }
        let mut addressed = BTreeSet::new();
        for queue in topology.queues.keys() {
            for to in routing.dead_lettering(queue).iter().flatten() {
                match &to.routing_key {
                    Some(key) if to.exchange.as_str().is_empty() => {
                        addressed.insert(QueueName::new(key.as_str()));
                    }
                    Some(key) => found.add_to_exchange(&to.exchange, Keys::One(key.clone())),
                    None => {}
                }
            }
        }
        for queue in topology.queues.keys() {
            // A queue without bindings receives messages through the default exchange, with its name as the routing
            // key. If a queue has bindings, topo assumes that applications do not publish to it through the default
            // exchange. Generated retry bindings do not count, because they only return messages.
            let is_generated = |id: ObjectId| generated.contains(&id);
            let mut bindings = routing.bindings_to(&Destination::Queue(queue.clone())).iter();
            let is_bound = is_generated(ObjectId::Queue(queue.clone()))
                || bindings.any(|binding| !is_generated(ObjectId::Exchange(binding.source.clone())));
            if !is_bound || addressed.contains(queue) {
                found.add_to_queue(queue, Keys::One(queue.as_str().to_owned()));
            }
        }
        // With `republish` and without delays, a worker publishes the copy directly to the queue.
        let is_republished_to_queue =
            |family: &&Family| family.strategy == Strategy::Republish && family.members.is_empty();
        for queue in families.iter().filter(is_republished_to_queue).map(|family| &family.queue) {
            found.add_to_queue(queue, Keys::One(queue.as_str().to_owned()));
        }
        while let Some((exchange, keys)) = found.todo.pop() {
            found.propagate(&exchange, &keys);
        }
        let ladders = families.iter().filter(|family| family.strategy == Strategy::Ladder);
        let ladders = ladders.map(|family| (family.queue.clone(), family.retries)).collect();
        Self { queues: found.queues, ladders }
    }

    /// Returns the routing keys of the messages that reach a queue; empty if no messages are known to reach it.
    pub fn keys_at_queue(&self, queue: &QueueName) -> &BTreeSet<Keys> {
        self.queues.get(queue).unwrap_or(&NO_KEYS)
    }

    /// Returns the routing keys of the messages that a queue dead-letters, before the broker replaces the keys with a
    /// dead-letter routing key. If no key is known, but a dead-letter routing key is set, returns all possible keys. If
    /// neither is known, returns the name of the queue, because topo assumes that the queue receives messages through
    /// the default exchange.
    pub fn dead_lettered_keys(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        match (self.keys_at_queue(queue), &to.routing_key) {
            (keys, _) if !keys.is_empty() => keys.clone(),
            (_, Some(_)) => [Keys::any()].into(),
            (_, None) => [Keys::One(queue.as_str().to_owned())].into(),
        }
    }

    /// Returns the routing keys of the messages that leave a queue and its retries for a dead-lettering reason.
    ///
    /// A rejected message leaves a ladder with the key of the last retry, or with the key for giving up. On 3.13 and
    /// later, a message that is dead-lettered for a different reason leaves the ladder immediately. Earlier versions
    /// drop the message.
    pub(super) fn final_keys(
        &self,
        queue: &QueueName,
        to: &DeadLettering,
        reason: Reason,
        version: BrokerVersion,
    ) -> BTreeSet<Keys> {
        match (self.ladders.get(queue), reason) {
            (Some(last), Reason::Rejected) => {
                [naming::retry_key(queue, *last), naming::give_up_key(queue)].map(Keys::One).into()
            }
            (Some(_), _) if !version.is_at_least(3, 13) => BTreeSet::new(),
            (Some(_) | None, _) => self.dead_lettered_keys(queue, to),
        }
    }
}

/// The state of routing key propagation. The propagation terminates, because it only adds keys, and the number of
/// possible keys is limited by the number of bindings and settings.
struct Propagation<'r, 'a> {
    routing: &'r Routing<'a>,
    /// The exchanges to which applications do not publish, each with the keys that arrive from other exchanges and from
    /// queues.
    closed: BTreeMap<ExchangeName, BTreeSet<Keys>>,
    queues: BTreeMap<QueueName, BTreeSet<Keys>>,
    /// Keys that have reached an exchange but have not been propagated yet.
    todo: Vec<(ExchangeName, Keys)>,
}

impl Propagation<'_, '_> {
    /// Adds keys to a closed exchange. Does nothing for other exchanges, because messages with any key reach them.
    fn add_to_exchange(&mut self, exchange: &ExchangeName, keys: Keys) {
        if self.closed.get_mut(exchange).is_some_and(|known| known.insert(keys.clone())) {
            self.todo.push((exchange.clone(), keys));
        }
    }

    /// Adds keys to a queue, and to the dead-letter exchanges to which the queue sends messages with unchanged keys.
    fn add_to_queue(&mut self, queue: &QueueName, keys: Keys) {
        if !self.queues.entry(queue.clone()).or_default().insert(keys.clone()) {
            return;
        }
        let routing = self.routing;
        for to in routing.dead_lettering(queue).iter().flatten().filter(|to| to.routing_key.is_none()) {
            self.add_to_exchange(&to.exchange, keys.clone());
        }
    }

    /// Propagates keys from an exchange to its destinations.
    fn propagate(&mut self, exchange: &ExchangeName, keys: &Keys) {
        let routing = self.routing;
        for (alternate, _) in routing.alternates(exchange) {
            self.add_to_exchange(&alternate, keys.clone());
        }
        let Some(kind) = routing.kind(exchange) else { return };
        for binding in routing.candidates(exchange, kind, keys) {
            let Some(keys) = through(kind, binding, keys) else { continue };
            match &binding.destination {
                Destination::Exchange(next) => self.add_to_exchange(next, keys),
                Destination::Queue(queue) => self.add_to_queue(queue, keys),
            }
        }
    }
}

/// Returns the keys of the messages that a binding routes; `None` if the binding matches none of `keys`. If the binding
/// matches only some of `keys`, returns all keys that its own routing key matches.
fn through(kind: Kind, binding: &Binding, keys: &Keys) -> Option<Keys> {
    let certainty = match kind {
        Kind::Direct => keys.match_key(&binding.routing_key),
        Kind::Topic => keys.match_topic(&binding.routing_key),
        Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => Certainty::Always,
    };
    match certainty {
        Certainty::Never => None,
        Certainty::Always => Some(keys.clone()),
        Certainty::Perhaps => Some(Keys::of_topic(&binding.routing_key)),
    }
}

/// The queues that receive the dead-lettered messages of a queue. The simulation does not follow messages that are
/// dead-lettered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The certainty that the messages reach a queue.
    pub reach: Reach,
    /// The queues that receive all dead-lettered messages.
    pub queues: BTreeSet<QueueName>,
    /// The queues that receive only some dead-lettered messages, or that may receive dead-lettered messages.
    pub possible: BTreeSet<QueueName>,
    /// The routing keys of messages that reach no queue, whatever the dead-letter target and the dead-lettering reason.
    pub lost: Vec<Keys>,
}

/// The combined fate of several messages.
#[derive(Default)]
struct Sum {
    queues: Option<BTreeSet<QueueName>>,
    possible: BTreeSet<QueueName>,
    reach: Option<Reach>,
}

impl Sum {
    fn add(&mut self, reach: Certainty, certain_queues: BTreeSet<QueueName>, possible_queues: BTreeSet<QueueName>) {
        let reach = match reach {
            Certainty::Always => Reach::Always,
            Certainty::Perhaps => Reach::Maybe,
            Certainty::Never => Reach::Never,
        };
        self.reach = Some(match self.reach {
            Some(known) if known != reach => Reach::Maybe,
            Some(_) | None => reach,
        });
        self.possible.extend(certain_queues.iter().cloned().chain(possible_queues));
        self.queues = Some(match self.queues.take() {
            Some(known) => known.intersection(&certain_queues).cloned().collect(),
            None => certain_queues,
        });
    }
}

impl Routing<'_> {
    /// Returns the fate of the messages that a queue and its retries dead-letter; `None` if the queue certainly has no
    /// dead-letter exchange.
    pub fn fate(&self, queue: &QueueName, arrivals: &Arrivals) -> Option<Fate> {
        let has_any = self.dead_lettering(queue).iter().any(Option::is_some);
        let version = self.profile.version;
        has_any.then(|| self.fate_with(queue, |to, reason| arrivals.final_keys(queue, to, reason, version)))
    }

    /// Returns true if messages that `queue` dead-letters can reach a queue through a routing key in the CC or BCC
    /// header that the publisher set. `to_key` is the dead-letter routing key. If the key is set, the broker ignores
    /// these headers.
    pub fn can_route_by_cc(&self, queue: &QueueName, to_key: Option<&str>) -> bool {
        to_key.is_none() && self.fate_with(queue, |_, _| BTreeSet::from([Keys::any()])).reach != Reach::Never
    }

    /// Returns the fate of the messages that a queue dead-letters. `keys` returns the routing keys of the messages
    /// for a dead-letter target and a dead-lettering reason.
    pub fn fate_with(&self, queue: &QueueName, keys: impl Fn(&DeadLettering, Reason) -> BTreeSet<Keys>) -> Fate {
        let mut sum = Sum::default();
        let (mut lost, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for target in self.dead_lettering(queue) {
            let Some(to) = target else {
                sum.add(Certainty::Never, BTreeSet::new(), BTreeSet::new());
                continue;
            };
            for reason in Reason::ALL {
                for keys in keys(to, reason) {
                    let message = self.to_dead_lettered(&Message::with(keys.clone()), queue, reason, to);
                    let mut route = self.route(&to.exchange, &message);
                    if route.reaches == Certainty::Never { &mut lost } else { &mut kept }.insert(keys);
                    if reason != Reason::Rejected {
                        drop_cycle(&mut route, queue);
                    }
                    sum.add(route.reaches, route.certain_queues, route.possible_queues);
                }
            }
        }
        let queues = sum.queues.unwrap_or_default();
        let possible = sum.possible.difference(&queues).cloned().collect();
        let lost = lost.difference(&kept).cloned().collect();
        Fate { reach: sum.reach.unwrap_or(Reach::Never), queues, possible, lost }
    }
}

/// Removes a queue from the route of a message that the queue itself dead-letters. The broker drops a message that
/// would return to the queue, unless a consumer rejected the message.
fn drop_cycle(route: &mut Route, queue: &QueueName) {
    if !route.certain_queues.remove(queue) && !route.possible_queues.remove(queue) {
        return;
    }
    route.reaches = match (route.certain_queues.is_empty(), route.possible_queues.is_empty() && !route.is_open) {
        (false, _) => route.reaches,
        (true, true) => Certainty::Never,
        (true, false) => Certainty::Perhaps,
    };
}
