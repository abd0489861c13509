//! The effective settings of one queue, after arguments, policies and retries are combined as the broker does.

use super::context::Context;
use super::document::DeadLetters;
use crate::expand::Retry;
use crate::model::{Queue, QueueName, QueueType, Reach};
use crate::rabbitmq::{BrokerProfile, EffectiveSettings, Governors, WhenFull};
use crate::spec::{DeadLetter, QueueSpec};

/// A declared queue that is worked off, or that keeps dead letters.
pub(crate) struct InForce<'c, 'a> {
    pub(crate) name: &'c QueueName,
    pub(crate) written: &'c QueueSpec,
    pub(crate) queue_type: QueueType,
    /// How it retries, if it does.
    pub(crate) retry: Option<&'c Retry>,
    /// What holds, by policy key.
    pub(crate) holds: EffectiveSettings,
    /// Where its dead-lettered messages go; `None` where it has no dead-letter exchange.
    pub(crate) dead_letters: Option<DeadLetters>,
    /// Whether a client cannot publish to the exchange of the dead letters.
    pub(crate) is_internal: bool,
    pub(crate) profile: &'c BrokerProfile,
    pub(super) context: &'c Context<'a>,
}

impl<'c, 'a> InForce<'c, 'a> {
    /// Of a queue that the spec declares; `None` for others, and for queues of which the spec says nothing more.
    pub(crate) fn of(name: &'c QueueName, context: &'c Context<'a>) -> Option<Self> {
        let Context { spec, expansion, profile, routing, .. } = context;
        let of_dead_letters = || spec.dead_letter_queues.get(name).map(|it| &it.queue);
        let written = spec.queues.get(name).or_else(of_dead_letters)?;
        let queue: &Queue = expansion.topology.queues.get(name)?;
        let queue_type = queue.queue_type()?;
        let holds = Governors::of(routing.policies(), profile).likely(name, queue);
        let dead_letters = context.dead_letters(name, written, &holds);
        let exchange = dead_letters.as_ref().and_then(|it| expansion.topology.exchanges.get(&it.exchange));
        let is_internal = exchange.is_some_and(|exchange| exchange.internal);
        let retry = expansion.retries.get(name);
        Some(Self { name, written, queue_type, retry, holds, dead_letters, is_internal, profile, context })
    }

    /// Where its dead-lettered messages go, unless the broker drops all of them.
    pub(crate) fn arriving(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_ref().filter(|it| it.reach != Reach::Never)
    }

    /// Whether the queue keeps dead-lettered messages that no queue takes, instead of dropping them.
    pub(crate) fn keeps_what_is_not_routed(&self) -> bool {
        self.holds.is_at_least_once()
    }

    /// How often a message is tried again after the first attempt.
    pub(crate) fn retries(&self) -> u32 {
        self.retry.map_or(0, Retry::retries)
    }

    /// A number that holds, by policy key.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.holds.integer(key)
    }

    /// How many redeliveries a quorum queue allows; `None`: any number.
    pub(crate) fn delivery_limit(&self) -> Option<i64> {
        self.holds.delivery_limit()
    }

    /// Whether the spec says that what dies here is dropped, and nothing else takes it.
    pub(crate) fn is_drop_intended(&self) -> bool {
        let said = self.written.dead_letter.as_ref().map(|it| &it.value);
        self.dead_letters.is_none() && said == Some(&DeadLetter::Nowhere)
    }

    /// Returns the behavior of the queue when it is full.
    pub(crate) fn when_full(&self) -> WhenFull {
        self.holds.when_full()
    }
}
