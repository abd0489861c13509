//! What is in force for one queue, once arguments, policies and retries are put together as the broker would.

use super::document::DeadLetters;
use crate::behaviour::{Dialect, Effective, Governed, Policies, effective};
use crate::expand::{Because, Expansion, Retry};
use crate::model::{Binding, Destination, ExchangeName, ObjectId, Queue, QueueName, QueueType};
use crate::spec::{DeadLetter, QueueSpec, Spec};
use std::collections::BTreeMap;

/// A declared queue that is worked off, or that keeps dead letters.
#[derive(Debug)]
pub(crate) struct InForce<'a> {
    pub(crate) name: &'a QueueName,
    pub(crate) written: &'a QueueSpec,
    pub(crate) queue_type: QueueType,
    /// How it retries, if it does.
    pub(crate) retry: Option<&'a Retry>,
    /// What holds, by policy key.
    pub(crate) holds: BTreeMap<String, Effective>,
    /// Where its dead letters go in the end, if they go anywhere.
    pub(crate) dead_letters: Option<DeadLetters>,
    /// Whether a client cannot publish to the exchange of the dead letters.
    pub(crate) is_internal: bool,
    pub(crate) dialect: &'a Dialect,
}

impl<'a> InForce<'a> {
    /// Of a queue that the spec declares; `None` for others, and for queues of which the spec says nothing more.
    pub(crate) fn of(
        name: &'a QueueName,
        spec: &'a Spec,
        expansion: &'a Expansion,
        dialect: &'a Dialect,
    ) -> Option<Self> {
        let of_dead_letters = || spec.dead_letter_queues.get(name).map(|it| &it.queue);
        let written = spec.queues.get(name).or_else(of_dead_letters)?;
        let queue: &Queue = expansion.topology.queues.get(name)?;
        let queue_type = queue.queue_type()?;
        let policies = Policies::new(&expansion.topology.policies, dialect.version);
        let governing = policies.governing(name.as_str(), Governed::from(queue));
        let holds = effective(queue, governing.likely(), None, dialect);
        let retry = expansion.retries.get(name);
        let dead_letters = dead_letters(written, expansion, retry, &holds);
        let exchange = dead_letters.as_ref().and_then(|it| expansion.topology.exchanges.get(&it.exchange));
        let is_internal = exchange.is_some_and(|exchange| exchange.internal);
        Some(Self { name, written, queue_type, retry, holds, dead_letters, is_internal, dialect })
    }

    /// How often a message is tried again after the first attempt.
    pub(crate) fn retries(&self) -> u32 {
        self.retry.map_or(0, Retry::retries)
    }

    /// A number that holds, by policy key.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.holds.get(key).and_then(|it| it.value.as_integer())
    }

    /// How many redeliveries a quorum queue allows; `None`: any number.
    pub(crate) fn delivery_limit(&self) -> Option<i64> {
        let limit = self.number("delivery-limit").filter(|_| self.queue_type == QueueType::Quorum)?;
        // Before 4.0, a negative limit means one delivery.
        match (limit < 0, self.dialect.version.is_at_least(4, 0)) {
            (true, true) => None,
            (true, false) => Some(0),
            (false, _) => Some(limit),
        }
    }

    /// Whether the spec says that what dies here is dropped, and nothing else takes it.
    pub(crate) fn is_drop_meant(&self) -> bool {
        let said = self.written.dead_letter.as_ref().map(|it| &it.value);
        self.dead_letters.is_none() && said == Some(&DeadLetter::Nowhere)
    }

    /// Whether a full queue refuses messages instead of dropping its oldest.
    pub(crate) fn rejects_when_full(&self) -> bool {
        let overflow = self.holds.get("overflow").and_then(|it| it.value.as_text());
        overflow.is_some_and(|overflow| overflow.starts_with("reject-publish"))
    }
}

fn dead_letters(
    written: &QueueSpec,
    expansion: &Expansion,
    retry: Option<&Retry>,
    holds: &BTreeMap<String, Effective>,
) -> Option<DeadLetters> {
    let text = |key: &str| holds.get(key).and_then(|it| it.value.as_text());
    let (exchange, routing_key) = match retry.and_then(|retry| retry.end().zip(Some(retry))) {
        // The ladder's own keys lead to the exchange, and stay.
        Some((end, Retry::Ladder(_))) => (end.exchange.clone(), None),
        Some((end, Retry::Republish(_) | Retry::Redeliver(_) | Retry::Delayed(_))) => {
            (end.exchange.clone(), end.routing_key.clone())
        }
        None => {
            let exchange = ExchangeName::new(text("dead-letter-exchange")?);
            (exchange, text("dead-letter-routing-key").map(str::to_owned))
        }
    };
    let named = match written.dead_letter.as_ref().map(|it| &it.value) {
        Some(DeadLetter::Queue { name, .. }) => Some(name.clone()),
        Some(DeadLetter::Nowhere | DeadLetter::Exchange { .. }) | None => None,
    };
    let queue = named.or_else(|| queue_behind(expansion, &exchange, routing_key.as_deref()));
    Some(DeadLetters { queue, exchange, routing_key })
}

/// Whether more than one of these bindings were made for dead-letter queues.
fn are_of_several<'a>(bound: impl Iterator<Item = &'a Binding>, expansion: &Expansion) -> bool {
    let because = bound.filter_map(|binding| expansion.origins.get(&ObjectId::Binding(binding.clone())));
    because.filter(|origin| matches!(origin.because, Because::DeadLetterBinding(_))).nth(1).is_some()
}

/// The one queue that these bindings lead to.
fn only_queue<'a>(mut bound: impl Iterator<Item = &'a Binding>) -> Option<QueueName> {
    match (bound.next().map(|binding| &binding.destination), bound.next()) {
        (Some(Destination::Queue(queue)), None) => Some(queue.clone()),
        (Some(_) | None, _) => None,
    }
}

/// The one queue to which an exchange leads, as far as that is plain.
fn queue_behind(expansion: &Expansion, exchange: &ExchangeName, routing_key: Option<&str>) -> Option<QueueName> {
    if exchange.as_str().is_empty() {
        return routing_key.map(QueueName::new);
    }
    let topology = &expansion.topology;
    let bound = || topology.bindings.iter().filter(|binding| binding.source == *exchange);
    match expansion.origins.get(&ObjectId::Exchange(exchange.clone())).map(|origin| &origin.because) {
        // Several can share one; then the key says which is meant.
        Some(Because::DeadLetterExchange(_)) if are_of_several(bound(), expansion) => {
            routing_key.and_then(|key| only_queue(bound().filter(|binding| binding.routing_key == key)))
        }
        Some(Because::DeadLetterExchange(queue)) => Some(queue.clone()),
        Some(Because::Declared | Because::DeadLetterBinding(_) | Because::DeadLetterPolicy(_) | Because::Retry(_))
        | None => {
            topology.exchanges.get(exchange).filter(|it| it.kind == "fanout")?;
            only_queue(bound())
        }
    }
}
