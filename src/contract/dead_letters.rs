//! Determines the destination of dead-lettered messages of a queue: the routing simulation decides, for every key with
//! which messages arrive.

use super::context::Context;
use super::document::DeadLetters;
use crate::expand::Retry;
use crate::model::{ExchangeName, ObjectId, QueueName, Reach};
use crate::rabbitmq::EffectiveSettings;
use crate::rabbitmq::routing::{Answer, DeadLettering, Fate, Keys, Message, Unclear};
use crate::spec::{DeadLetter, QueueSpec};

/// This many keys that the broker drops are listed.
const MOST_KEYS: usize = 20;

impl Context<'_> {
    /// `None` where the queue has no dead-letter exchange.
    pub(super) fn dead_letters(
        &self,
        queue: &QueueName,
        written: &QueueSpec,
        holds: &EffectiveSettings,
    ) -> Option<DeadLetters> {
        let retry = self.expansion.retries.get(queue);
        let to = self.target(queue, retry, holds)?;
        let fate = self.routing.fate(queue, &self.arrivals)?;
        Some(self.described(written, to, fate))
    }

    /// The exchange where dead-lettered messages leave the queue and its retries, and the key that they get.
    fn target(&self, queue: &QueueName, retry: Option<&Retry>, holds: &EffectiveSettings) -> Option<DeadLettering> {
        if let Some(Retry::Ladder(ladder)) = retry {
            // The ladder's own keys lead to the exchange, and stay.
            return Some(DeadLettering { exchange: ladder.end.exchange.clone(), routing_key: None });
        }
        // Another policy may be the one that governs the queue.
        let possible = || self.routing.dead_lettering(queue).iter().flatten().next().cloned();
        holds.dead_lettering().or_else(possible)
    }

    fn described(&self, written: &QueueSpec, to: DeadLettering, fate: Fate) -> DeadLetters {
        let Fate { reach, queues, possible, lost } = fate;
        let named = match written.dead_letter.as_ref().map(|it| &it.value) {
            Some(DeadLetter::Queue { name, .. }) => Some(name),
            Some(DeadLetter::Nowhere | DeadLetter::Exchange { .. }) | None => None,
        };
        // The spec itself says what is bound to the exchange of an external dead-letter queue.
        let is_external = |name: &&QueueName| {
            let id = ObjectId::Queue((*name).clone());
            reach == Reach::Maybe && self.expansion.scope.external.contains(&id)
        };
        let queue = match named.filter(|name| queues.contains(*name) || is_external(name)) {
            Some(name) => Some(name.clone()),
            None if queues.len() == 1 && possible.is_empty() => queues.first().cloned(),
            None => None,
        };
        let dropped_keys = lost.into_iter().take(MOST_KEYS).map(|keys| match keys {
            Keys::One(key) | Keys::Like(key) => key,
        });
        DeadLetters {
            queue,
            exchange: to.exchange,
            routing_key: to.routing_key,
            reach,
            queues,
            possible_queues: possible,
            dropped_keys: dropped_keys.collect(),
        }
    }

    /// Whether a worker may publish there and acknowledge: the message arrives, or the spec leaves it to others what is
    /// bound.
    pub(super) fn takes(&self, exchange: &ExchangeName, key: &str) -> bool {
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
