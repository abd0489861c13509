//! Collects the inputs for contracts: the simulated routing of a vhost, and the effective settings of each queue.
//!
//! A queue's dead-letter destination is computed from the routes for all routing keys that its messages can have.

use super::document::DeadLetters;
use crate::expand::{Expansion, Retry};
use crate::model::{ExchangeName, ObjectId, Policy, PolicyName, Queue, QueueName, QueueType, Reach};
use crate::rabbitmq::routing::{Arrivals, DeadLettering, Fate, Keys, Message, RouteOutcome, Routing, Unclear};
use crate::rabbitmq::{BrokerProfile, EffectiveSettings, OverflowBehavior};
use crate::spec::{DeadLetter, QueueSpec, Spec};
use std::collections::BTreeMap;

/// The spec of one vhost, its topology, and the routing of its messages.
pub(crate) struct Context<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) expansion: &'a Expansion,
    pub(crate) profile: &'a BrokerProfile,
    pub(super) routing: Routing<'a>,
    pub(super) arrivals: Arrivals,
}

impl<'a> Context<'a> {
    /// Creates the context for a vhost and simulates the routing of its messages. `operator_policies` contains the
    /// operator policies from the expansion.
    pub(crate) fn new(
        (spec, expansion): (&'a Spec, &'a Expansion),
        operator_policies: &'a BTreeMap<PolicyName, Policy>,
        profile: &'a BrokerProfile,
    ) -> Self {
        let scope = &expansion.scope;
        let routing = Routing::new(&expansion.topology, operator_policies, &scope.external, profile)
            .with_external_bindings(&scope.external_dead_letter_queues);
        let arrivals = Arrivals::new(&routing, &expansion.scope.families);
        Self { spec, expansion, profile, routing, arrivals }
    }
}

/// A declared queue or dead-letter queue with its effective settings.
pub(crate) struct EffectiveQueue<'c, 'a> {
    pub(crate) name: &'c QueueName,
    pub(crate) declaration: &'c QueueSpec,
    /// The queue as topo declares it.
    pub(super) queue: &'c Queue,
    pub(crate) queue_type: QueueType,
    /// The retries of the queue; `None` if the queue has no retries.
    pub(crate) retry: Option<&'c Retry>,
    /// The effective settings of the queue, by policy key.
    pub(crate) effective: EffectiveSettings,
    /// The destination of dead-lettered messages; `None` if the queue has no dead-letter exchange.
    pub(crate) dead_letters: Option<DeadLetters>,
    /// True if the dead-letter exchange is internal, which means that clients cannot publish to it.
    pub(crate) is_dead_letter_exchange_internal: bool,
    pub(crate) profile: &'c BrokerProfile,
    pub(super) context: &'c Context<'a>,
}

impl<'c, 'a> EffectiveQueue<'c, 'a> {
    /// Returns a declared queue with its effective settings; `None` if the queue is unknown or external, or if a plugin
    /// provides its type.
    pub(crate) fn of(name: &'c QueueName, context: &'c Context<'a>) -> Option<Self> {
        let Context { spec, expansion, profile, routing, .. } = context;
        let dead_letter_queue = || spec.dead_letter_queues.get(name).map(|it| &it.queue);
        let declaration = spec.queues.get(name).or_else(dead_letter_queue)?;
        let queue: &Queue = expansion.topology.queues.get(name)?;
        let queue_type = queue.queue_type()?;
        let effective = routing.settings_of(name, queue);
        let dead_letters = context.dead_letters(name, declaration, &effective);
        let exchange = dead_letters.as_ref().and_then(|it| expansion.topology.exchanges.get(&it.exchange));
        let is_dead_letter_exchange_internal = exchange.is_some_and(|exchange| exchange.internal);
        let retry = expansion.retries.get(name);
        Some(Self {
            name,
            declaration,
            queue,
            queue_type,
            retry,
            effective,
            dead_letters,
            is_dead_letter_exchange_internal,
            profile,
            context,
        })
    }

    /// Returns the destination of dead-lettered messages; `None` if no dead-lettered message reaches a queue.
    pub(crate) fn reachable_dead_letters(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_ref().filter(|it| it.reach != Reach::Never)
    }

    /// Returns true if dead-lettered messages can reach a queue through a routing key in the `CC` or `BCC` header that
    /// their publisher set. Always false for a queue whose retries change the routing keys of messages.
    pub(crate) fn can_route_by_cc(&self) -> bool {
        let key = self.dead_letters.as_ref().and_then(|it| it.routing_key.as_deref());
        !matches!(self.retry, Some(Retry::Ladder(_) | Retry::Republish(_)))
            && self.context.routing.can_route_by_cc(self.name, key)
    }

    /// Returns true if the queue keeps unroutable dead-lettered messages instead of dropping them.
    pub(crate) fn keeps_unroutable_messages(&self) -> bool {
        self.effective.is_at_least_once()
    }

    /// Returns the number of retries after the first attempt. If the queue counts the attempts itself, a policy
    /// can lower this number with a lower delivery limit.
    pub(crate) fn retries(&self) -> u32 {
        let declared = self.retry.map_or(0, Retry::retries);
        match self.retry {
            Some(Retry::Redeliver(_) | Retry::Delayed(_)) => {
                let limit = self.delivery_limit().and_then(|limit| u32::try_from(limit).ok());
                limit.map_or(declared, |limit| limit.min(declared))
            }
            Some(Retry::Ladder(_) | Retry::Republish(_)) | None => declared,
        }
    }

    /// Returns the effective value of a policy key; `None` if the value is unset or not an integer.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.effective.integer(key)
    }

    /// Returns the effective delivery limit of a quorum queue; `None` if the number of deliveries is unlimited.
    pub(crate) fn delivery_limit(&self) -> Option<i64> {
        self.effective.delivery_limit()
    }

    /// Returns true if the spec sets `deadLetter: none` and no policy sets a dead-letter exchange.
    pub(crate) fn is_drop_intended(&self) -> bool {
        let declared = self.declaration.dead_letter.as_ref().map(|it| &it.value);
        self.dead_letters.is_none() && declared == Some(&DeadLetter::Nowhere)
    }

    /// Returns the behavior of the queue when it is full.
    pub(crate) fn overflow_behavior(&self) -> OverflowBehavior {
        self.effective.overflow_behavior()
    }
}

/// The maximum number of routing keys of dropped messages that a contract lists.
const MAX_KEYS: usize = 20;

impl Context<'_> {
    /// Returns the destination of a queue's dead-lettered messages; `None` if the queue has no dead-letter exchange.
    pub(super) fn dead_letters(
        &self,
        queue: &QueueName,
        declaration: &QueueSpec,
        effective: &EffectiveSettings,
    ) -> Option<DeadLetters> {
        let retry = self.expansion.retries.get(queue);
        let to = self.target(queue, retry, effective)?;
        let fate = self.routing.fate(queue, &self.arrivals)?;
        Some(self.describe(declaration, to, fate))
    }

    /// Returns the dead-letter exchange and routing key of a message that has no retries left; `None` if the queue
    /// is known to have no dead-letter exchange.
    fn target(&self, queue: &QueueName, retry: Option<&Retry>, effective: &EffectiveSettings) -> Option<DeadLettering> {
        if let Some(Retry::Ladder(ladder)) = retry {
            // The bindings of the ladder route the message to this exchange, and the message keeps its routing key.
            return Some(DeadLettering { exchange: ladder.end.exchange.clone(), routing_key: None });
        }
        // If the likely policy sets no dead-letter exchange, another possible policy may set one.
        let possible = || self.routing.dead_lettering(queue).iter().flatten().next().cloned();
        effective.dead_lettering().or_else(possible)
    }

    fn describe(&self, declaration: &QueueSpec, to: DeadLettering, fate: Fate) -> DeadLetters {
        let Fate { reach, queues, possible, lost } = fate;
        let named = match declaration.dead_letter.as_ref().map(|it| &it.value) {
            Some(DeadLetter::Queue { name, .. }) => Some(name),
            Some(DeadLetter::Nowhere | DeadLetter::Exchange { .. }) | None => None,
        };
        // An external dead-letter queue is assumed to be bound to the exchange that the spec specifies.
        let is_external = |name: &&QueueName| {
            let id = ObjectId::Queue((*name).clone());
            reach == Reach::Maybe && self.expansion.scope.external.contains(&id)
        };
        let queue = match named.filter(|name| queues.contains(*name) || is_external(name)) {
            Some(name) => Some(name.clone()),
            None if queues.len() == 1 && possible.is_empty() => queues.first().cloned(),
            None => None,
        };
        let dropped_keys = lost.into_iter().filter_map(|keys| match keys {
            // A literal key with a wildcard would look like a pattern.
            Keys::One(key) if Keys::is_pattern(&key) => None,
            Keys::One(key) | Keys::Like(key) => Some(key),
        });
        DeadLetters {
            queue,
            exchange: to.exchange,
            routing_key: to.routing_key,
            reach,
            queues,
            possible_queues: possible,
            dropped_keys: dropped_keys.take(MAX_KEYS).collect(),
        }
    }

    /// Returns true if a worker can safely publish a message to an exchange and acknowledge the original.
    ///
    /// This is safe if the message reaches a queue. It is also safe if the route is uncertain only because of this
    /// exchange or an external exchange. topo trusts these exchanges to route the message.
    pub(super) fn is_routable(&self, exchange: &ExchangeName, key: &str) -> bool {
        let is_trusted = |of: &ExchangeName| {
            of == exchange || self.expansion.scope.external.contains(&ObjectId::Exchange(of.clone()))
        };
        match self.routing.route(exchange, &Message::with(Keys::One(key.to_owned()))).outcome() {
            RouteOutcome::Reaches(_) => true,
            RouteOutcome::Uncertain(Unclear::Type(of) | Unclear::UnknownBindings(of)) => is_trusted(&of),
            RouteOutcome::ReachesNothing
            | RouteOutcome::Uncertain(Unclear::Key(_) | Unclear::Headers(_) | Unclear::Policy(_)) => false,
        }
    }
}
