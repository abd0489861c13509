//! Generates warnings for workers that deviate from their contract. The effects were measured, see `tests/live`.
//!
//! The effective settings of one queue, after arguments, policies and retries are combined as the broker does.

use super::document::DeadLetters;
use super::terms::Context;
use crate::expand::{Republish, Retry};
use crate::model::{Queue, QueueName, QueueType, Reach};
use crate::rabbitmq::{ActivePolicies, BrokerProfile, EffectiveSettings, OverflowBehavior};
use crate::spec::{DeadLetter, QueueSpec};

/// The maximum number of routing keys in a sentence.
const MOST_KEYS: usize = 3;

const NO_RETRY: &str = "requeue=true, or a crash, is not a retry";

/// Returns the warnings without periods, most important first.
pub(super) fn warnings(it: &EffectiveQueue<'_, '_>) -> Vec<String> {
    let mut sentences = Vec::new();
    match it.retry {
        Some(Retry::Ladder(_)) => {
            sentences.push(format!("{NO_RETRY}: the message is redelivered immediately, {}", requeued(it)));
            if it.queue_type == QueueType::Quorum {
                sentences.push(
                    "basic.reject with requeue=false also leads to the next tier, but counts toward the delivery \
                     limit of RabbitMQ 4.3"
                        .to_owned(),
                );
            }
        }
        Some(Retry::Republish(_)) => {
            sentences.push(
                "publish first, wait for the confirm, then basic.ack: in the reverse order, a crash in between loses \
                 the message; in this order, it may be delivered twice"
                    .to_owned(),
            );
            sentences.push(format!("{NO_RETRY}: the message is redelivered immediately, {}", requeued(it)));
        }
        Some(Retry::Redeliver(_) | Retry::Delayed(_)) => {
            let nack = if it.profile.version.is_at_least(4, 3) {
                "basic.nack with requeue=true is not counted by RabbitMQ 4.3: the message is redelivered without limit"
            } else {
                "basic.nack with requeue=true is counted up to RabbitMQ 4.2, and not from 4.3 on; basic.reject is always counted"
            };
            sentences.push(nack.to_owned());
            sentences.push("requeue=false is not a retry: it gives up".to_owned());
            sentences.push("a worker that crashes, or loses its connection, uses up one attempt".to_owned());
        }
        None => {
            sentences.push(format!("{NO_RETRY}: the message is redelivered immediately, {}", requeued(it)));
        }
    }
    if let Some(Retry::Republish(Republish { tiers: Some(_), jitter, .. })) = it.retry {
        let expiration = match jitter {
            Some(_) => "do not set an `expiration` on the copy, or set at least the delay minus the jitter",
            None => "do not set an `expiration` on the copy",
        };
        sentences.push(format!("{expiration}: a message with a shorter one still waits behind the messages before it"));
    }
    match &it.dead_letters {
        None => sentences.push(dropped(it, None)),
        Some(to) if to.reach == Reach::Never => sentences.push(dropped(it, Some(to))),
        Some(to) if !to.dropped_keys.is_empty() => sentences.push(dropped_keys(it, to)),
        Some(_) => {}
    }
    sentences
}

/// Names the dead-letter exchange.
fn exchange(to: &DeadLetters) -> String {
    match to.exchange.as_str() {
        "" => "the default exchange".to_owned(),
        name => format!("exchange {name}"),
    }
}

/// Describes the messages that the dead-letter exchange routes to no queue because of their routing keys.
fn dropped_keys(it: &EffectiveQueue<'_, '_>, to: &DeadLetters) -> String {
    let shown: Vec<String> = to.dropped_keys.iter().take(MOST_KEYS).map(|key| format!("{key:?}")).collect();
    let more = if to.dropped_keys.len() > MOST_KEYS { ", …" } else { "" };
    let fate = if it.keeps_unroutable_messages() { "stays in the queue" } else { "is dropped" };
    format!(
        "a message that is given up with key {}{more} {fate}: {} routes it to no queue",
        shown.join(", "),
        exchange(to)
    )
}

/// Describes the messages that are dropped, and the reason.
fn dropped(it: &EffectiveQueue<'_, '_>, to: Option<&DeadLetters>) -> String {
    let mut what = vec!["a message that is given up"];
    what.extend(it.number("message-ttl").map(|_| "one that expires"));
    let is_limited = ["max-length", "max-length-bytes"].iter().any(|key| it.number(key).is_some());
    what.extend((is_limited && !it.overflow_behavior().rejects()).then_some("the oldest one of a full queue"));
    let why = match to {
        Some(to) => format!("{} routes dead-lettered messages to no queue", exchange(to)),
        None if it.is_drop_intended() => "`deadLetter: none` is set".to_owned(),
        None => "there is no dead-letter exchange".to_owned(),
    };
    let (last, before) = what.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let what = if before.is_empty() { last.to_owned() } else { format!("{} and {last}", before.join(", ")) };
    let verb = if before.is_empty() { "is" } else { "are" };
    match to {
        Some(_) if it.keeps_unroutable_messages() => {
            let stays = if before.is_empty() { "stays" } else { "stay" };
            format!("{what} {stays} in the queue and {verb} not redelivered: {why}")
        }
        Some(_) | None => format!("{what} {verb} dropped: {why}"),
    }
}

/// Describes the redeliveries of a message that is requeued again and again.
fn requeued(it: &EffectiveQueue<'_, '_>) -> String {
    let end = if it.arriving().is_some() { "dead-lettered" } else { "dropped" };
    match (it.queue_type, it.delivery_limit()) {
        (QueueType::Quorum, Some(limit)) if it.profile.version.is_at_least(4, 3) => {
            format!("without limit after basic.nack, else {limit} times, and is then {end}")
        }
        (QueueType::Quorum, Some(limit)) => format!("{limit} times, and is then {end}"),
        (QueueType::Quorum, None) | (QueueType::Classic | QueueType::Stream, _) => "without limit".to_owned(),
    }
}

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
        let effective = ActivePolicies::of(routing.policies(), profile).likely(name, queue);
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
    pub(crate) fn overflow_behavior(&self) -> OverflowBehavior {
        self.effective.overflow_behavior()
    }
}
