//! The effective settings of one queue, after arguments, policies and retries are combined as the broker does.

use super::context::Context;
use super::document::DeadLetters;
use crate::expand::Retry;
use crate::model::{Queue, QueueName, QueueType, Reach};
use crate::rabbitmq::{BrokerProfile, EffectiveSettings, Governors, WhenFull};
use crate::spec::{DeadLetter, QueueSpec};

/// A declared queue or dead-letter queue with its effective settings.
pub(crate) struct EffectiveQueue<'c, 'a> {
    pub(crate) name: &'c QueueName,
    pub(crate) written: &'c QueueSpec,
    pub(crate) queue_type: QueueType,
    /// The retries of the queue, if any.
    pub(crate) retry: Option<&'c Retry>,
    /// The effective settings, by policy key.
    pub(crate) effective: EffectiveSettings,
    /// The destination of dead-lettered messages, or `None` if the queue has no dead-letter exchange.
    pub(crate) dead_letters: Option<DeadLetters>,
    /// True if the dead-letter exchange is internal, so that clients cannot publish to it.
    pub(crate) is_internal: bool,
    pub(crate) profile: &'c BrokerProfile,
    pub(super) context: &'c Context<'a>,
}

impl<'c, 'a> EffectiveQueue<'c, 'a> {
    /// Returns the settings of a declared queue, or `None` for queues that the spec does not define completely.
    pub(crate) fn of(name: &'c QueueName, context: &'c Context<'a>) -> Option<Self> {
        let Context { spec, expansion, profile, routing, .. } = context;
        let dead_letter_queue = || spec.dead_letter_queues.get(name).map(|it| &it.queue);
        let written = spec.queues.get(name).or_else(dead_letter_queue)?;
        let queue: &Queue = expansion.topology.queues.get(name)?;
        let queue_type = queue.queue_type()?;
        let effective = Governors::of(routing.policies(), profile).likely(name, queue);
        let dead_letters = context.dead_letters(name, written, &effective);
        let exchange = dead_letters.as_ref().and_then(|it| expansion.topology.exchanges.get(&it.exchange));
        let is_internal = exchange.is_some_and(|exchange| exchange.internal);
        let retry = expansion.retries.get(name);
        Some(Self { name, written, queue_type, retry, effective, dead_letters, is_internal, profile, context })
    }

    /// Returns the destination of dead-lettered messages, unless the broker drops all of them.
    pub(crate) fn arriving(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_ref().filter(|it| it.reach != Reach::Never)
    }

    /// Returns true if the queue keeps unroutable dead-lettered messages instead of dropping them.
    pub(crate) fn keeps_unroutable_messages(&self) -> bool {
        self.effective.is_at_least_once()
    }

    /// Returns the number of retries after the first attempt.
    pub(crate) fn retries(&self) -> u32 {
        self.retry.map_or(0, Retry::retries)
    }

    /// Returns an effective number, by policy key.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.effective.integer(key)
    }

    /// Returns the effective delivery limit of a quorum queue, or `None` if deliveries are unlimited.
    pub(crate) fn delivery_limit(&self) -> Option<i64> {
        self.effective.delivery_limit()
    }

    /// Returns true if the spec drops dead-lettered messages on purpose and no policy sets a dead-letter exchange.
    pub(crate) fn is_drop_intended(&self) -> bool {
        let declared = self.written.dead_letter.as_ref().map(|it| &it.value);
        self.dead_letters.is_none() && declared == Some(&DeadLetter::Nowhere)
    }

    /// Returns the behavior of the queue when it is full.
    pub(crate) fn when_full(&self) -> WhenFull {
        self.effective.when_full()
    }
}
