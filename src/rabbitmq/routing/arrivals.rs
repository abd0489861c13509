//! Determines the routing keys with which messages reach each queue, from the bindings that lead to it, and the fate of
//! the messages that a queue then dead-letters: they arrive in queues, or the broker drops them. `lint`, `explain`,
//! `contract` and `graph` all use this simulation.

use super::keys::Certainty;
use super::message::Message;
use super::outgoing::Kind;
use super::{DeadLettering, Keys, Reason, Route, Routing};
use crate::model::{
    Binding, BrokerVersion, Destination, ExchangeName, Family, ObjectId, QueueName, Reach, Strategy, naming,
};
use std::collections::{BTreeMap, BTreeSet};

/// The routing keys with which messages reach the queues of one [`Routing`].
pub struct Arrivals {
    queues: BTreeMap<QueueName, BTreeSet<Keys>>,
    /// The queues with a retry ladder, with the number of the last retry.
    ladders: BTreeMap<QueueName, u32>,
}

static NONE: BTreeSet<Keys> = BTreeSet::new();

impl Arrivals {
    /// Computes the routing keys.
    ///
    /// Publishers use every exchange with any key, except internal exchanges and those of retries. Only the queues and the
    /// exchanges of a family, and workers with the keys of that family, publish to the exchanges of retries.
    pub fn new(routing: &Routing<'_>, families: &[Family]) -> Self {
        let topology = routing.topology;
        let internal =
            topology.exchanges.iter().filter(|(_, exchange)| exchange.internal).map(|(name, _)| name.clone());
        let generated: BTreeSet<&ObjectId> = families.iter().flat_map(|family| &family.members).collect();
        let of_retries = generated.iter().filter_map(|id| match id {
            ObjectId::Exchange(name) => Some(name.clone()),
            ObjectId::Vhost | ObjectId::Queue(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
                None
            }
        });
        let closed = of_retries.chain(internal).map(|name| (name, BTreeSet::new())).collect();
        let mut found = Propagation { routing, closed, queues: BTreeMap::new(), todo: Vec::new() };
        let sources = routing.by_source.keys().copied().chain(topology.exchanges.keys());
        for open in sources.collect::<BTreeSet<_>>() {
            if !found.closed.contains_key(open) {
                found.todo.push((open.clone(), Keys::any()));
            }
        }
        let mut named = BTreeSet::new();
        for queue in topology.queues.keys() {
            for to in routing.dead_lettering(queue).iter().flatten() {
                match &to.routing_key {
                    Some(key) if to.exchange.as_str().is_empty() => drop(named.insert(QueueName::new(key.as_str()))),
                    Some(key) => found.at_exchange(&to.exchange, Keys::One(key.clone())),
                    None => {}
                }
            }
        }
        for queue in topology.queues.keys() {
            // A queue without bindings gets messages through the default exchange with its name. Queues with bindings are
            // assumed not to be used in this way. The bindings of retries do not count: they only return messages.
            let is_of_retries = |id: ObjectId| generated.contains(&id);
            let mut bindings = routing.bindings_to(&Destination::Queue(queue.clone())).iter();
            let is_bound = is_of_retries(ObjectId::Queue(queue.clone()))
                || bindings.any(|binding| !is_of_retries(ObjectId::Exchange(binding.source.clone())));
            if !is_bound || named.contains(queue) {
                found.at_queue(queue, Keys::One(queue.as_str().to_owned()));
            }
        }
        // Without delays, a worker publishes the copy to the queue itself.
        let to_the_back = |family: &&Family| family.strategy == Strategy::Republish && family.members.is_empty();
        for queue in families.iter().filter(to_the_back).map(|family| &family.queue) {
            found.at_queue(queue, Keys::One(queue.as_str().to_owned()));
        }
        while let Some((exchange, keys)) = found.todo.pop() {
            found.propagate(&exchange, &keys);
        }
        let ladders = families.iter().filter(|family| family.strategy == Strategy::Ladder);
        let ladders = ladders.map(|family| (family.queue.clone(), family.retries)).collect();
        Self { queues: found.queues, ladders }
    }

    /// Returns the routing keys with which messages reach a queue.
    pub fn at_queue(&self, queue: &QueueName) -> &BTreeSet<Keys> {
        self.queues.get(queue).unwrap_or(&NONE)
    }

    /// Returns the routing keys of the messages that a queue dead-letters. If the queue sets a dead-letter routing key, the key
    /// of the message does not matter. A queue without bindings gets its messages from the default exchange.
    pub fn dead_lettered(&self, queue: &QueueName, to: &DeadLettering) -> BTreeSet<Keys> {
        match (self.at_queue(queue), &to.routing_key) {
            (keys, _) if !keys.is_empty() => keys.clone(),
            (_, Some(_)) => [Keys::any()].into(),
            (_, None) => [Keys::One(queue.as_str().to_owned())].into(),
        }
    }

    /// Returns the routing keys of messages that leave the queue and its retries for a reason. On a ladder, a rejected message
    /// leaves with the key of the last retry, or with the key to give up. From 3.13 on, a message that is dead-lettered for
    /// another reason leaves immediately.
    pub(super) fn leaving(
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
            (Some(_) | None, _) => self.dead_lettered(queue, to),
        }
    }
}

/// The state of the propagation of routing keys. It only grows, and the number of bindings and settings limits the keys.
struct Propagation<'r, 'a> {
    routing: &'r Routing<'a>,
    /// Exchanges that only other exchanges and queues publish to, with the keys that reach them.
    closed: BTreeMap<ExchangeName, BTreeSet<Keys>>,
    queues: BTreeMap<QueueName, BTreeSet<Keys>>,
    /// Keys that have reached an exchange but are not propagated yet.
    todo: Vec<(ExchangeName, Keys)>,
}

impl Propagation<'_, '_> {
    /// Adds keys to a closed exchange. Any key reaches the other exchanges.
    fn at_exchange(&mut self, exchange: &ExchangeName, keys: Keys) {
        if self.closed.get_mut(exchange).is_some_and(|known| known.insert(keys.clone())) {
            self.todo.push((exchange.clone(), keys));
        }
    }

    /// Adds keys to a queue, and to its dead-letter exchanges.
    fn at_queue(&mut self, queue: &QueueName, keys: Keys) {
        if !self.queues.entry(queue.clone()).or_default().insert(keys.clone()) {
            return;
        }
        let routing = self.routing;
        for to in routing.dead_lettering(queue).iter().flatten().filter(|to| to.routing_key.is_none()) {
            self.at_exchange(&to.exchange, keys.clone());
        }
    }

    /// Propagates keys from an exchange to its destinations.
    fn propagate(&mut self, exchange: &ExchangeName, keys: &Keys) {
        let routing = self.routing;
        for (alternate, _) in routing.alternates(exchange) {
            self.at_exchange(&alternate, keys.clone());
        }
        let Some(kind) = routing.kind(exchange) else { return };
        for binding in routing.candidates(exchange, kind, keys) {
            let Some(keys) = through(kind, binding, keys) else { continue };
            match &binding.destination {
                Destination::Exchange(next) => self.at_exchange(next, keys),
                Destination::Queue(queue) => self.at_queue(queue, keys),
            }
        }
    }
}

/// Returns the keys that match a binding.
fn through(kind: Kind, binding: &Binding, keys: &Keys) -> Option<Keys> {
    let certainty = match kind {
        Kind::Direct => keys.are(&binding.routing_key),
        Kind::Topic => keys.match_topic(&binding.routing_key),
        Kind::Default | Kind::Fanout | Kind::Headers | Kind::OneOf | Kind::Unknown => Certainty::Always,
    };
    match certainty {
        Certainty::Never => None,
        Certainty::Always => Some(keys.clone()),
        Certainty::Perhaps => Some(Keys::of_topic(&binding.routing_key)),
    }
}

/// The queues in which the dead-lettered messages of a queue arrive. Messages that are dead-lettered again are not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The certainty that they arrive in any queue.
    pub reach: Reach,
    /// The queues that get all of them.
    pub queues: BTreeSet<QueueName>,
    /// Other queues, which get some of them or none.
    pub possible: BTreeSet<QueueName>,
    /// The routing keys with which the broker drops a message, regardless of the reason.
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
    /// Returns the fate of the messages that a queue and its retries dead-letter; `None` if the queue has no dead-letter exchange.
    pub fn fate(&self, queue: &QueueName, arrivals: &Arrivals) -> Option<Fate> {
        let has_any = self.dead_lettering(queue).iter().any(Option::is_some);
        let version = self.profile.version;
        has_any.then(|| self.fate_with(queue, |to, reason| arrivals.leaving(queue, to, reason, version)))
    }

    /// Returns the fate of the messages that a queue dead-letters with other routing keys.
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

/// Removes a queue from the route of its own dead-lettered message: the broker drops a message that returns, unless a consumer
/// rejected it.
fn drop_cycle(route: &mut Route, queue: &QueueName) {
    if !route.certain_queues.remove(queue) && !route.possible_queues.remove(queue) {
        return;
    }
    route.reaches = match (route.certain_queues.is_empty(), route.possible_queues.is_empty() && route.unclear.is_none())
    {
        (false, _) => route.reaches,
        (true, true) => Certainty::Never,
        (true, false) => Certainty::Perhaps,
    };
}
