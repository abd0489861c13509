//! Determines the destination of dead-lettered messages of a queue, by simulating the routing for every key that
//! messages can have.

use super::document::DeadLetters;
use super::terms::Context;
use crate::expand::Retry;
use crate::model::{ExchangeName, ObjectId, QueueName, Reach};
use crate::rabbitmq::EffectiveSettings;
use crate::rabbitmq::routing::{Answer, DeadLettering, Fate, Keys, Message, Unclear};
use crate::spec::{DeadLetter, QueueSpec};

/// The maximum number of listed keys with which the broker drops messages.
const MOST_KEYS: usize = 20;

impl Context<'_> {
    /// Returns the destination, or `None` if the queue has no dead-letter exchange.
    pub(super) fn dead_letters(
        &self,
        queue: &QueueName,
        written: &QueueSpec,
        effective: &EffectiveSettings,
    ) -> Option<DeadLetters> {
        let retry = self.expansion.retries.get(queue);
        let to = self.target(queue, retry, effective)?;
        let fate = self.routing.fate(queue, &self.arrivals)?;
        Some(self.describe(written, to, fate))
    }

    /// Returns the exchange and the routing key with which dead-lettered messages leave the queue and its retries.
    fn target(&self, queue: &QueueName, retry: Option<&Retry>, effective: &EffectiveSettings) -> Option<DeadLettering> {
        if let Some(Retry::Ladder(ladder)) = retry {
            // The routing keys of the ladder lead to the exchange, and the message keeps them.
            return Some(DeadLettering { exchange: ladder.end.exchange.clone(), routing_key: None });
        }
        // A policy of the broker may govern the queue instead.
        let possible = || self.routing.dead_lettering(queue).iter().flatten().next().cloned();
        effective.dead_lettering().or_else(possible)
    }

    fn describe(&self, written: &QueueSpec, to: DeadLettering, fate: Fate) -> DeadLetters {
        let Fate { reach, queues, possible, lost } = fate;
        let named = match written.dead_letter.as_ref().map(|it| &it.value) {
            Some(DeadLetter::Queue { name, .. }) => Some(name),
            Some(DeadLetter::Nowhere | DeadLetter::Exchange { .. }) | None => None,
        };
        // For an external dead-letter queue, the spec itself declares the binding to the exchange.
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
            // A key that looks like a pattern would read as one.
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
            dropped_keys: dropped_keys.take(MOST_KEYS).collect(),
        }
    }

    /// Returns true if a worker can publish to the exchange and acknowledge: the message reaches a queue, or the
    /// bindings are declared outside of the spec.
    pub(super) fn is_routable(&self, exchange: &ExchangeName, key: &str) -> bool {
        let is_left_to_others = |of: &ExchangeName| {
            of == exchange || self.expansion.scope.external.contains(&ObjectId::Exchange(of.clone()))
        };
        match self.routing.route(exchange, &Message::with(Keys::One(key.to_owned()))).answer() {
            Answer::Reaches(_) => true,
            Answer::CannotTell(Unclear::Type(of) | Unclear::Foreign(of)) => is_left_to_others(&of),
            Answer::ReachesNothing | Answer::CannotTell(Unclear::Key(_) | Unclear::Headers(_) | Unclear::Policy(_)) => {
                false
            }
        }
    }
}
