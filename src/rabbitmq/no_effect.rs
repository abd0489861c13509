//! Determines why a setting has no effect on a queue. `topo explain` and the lint rules use the result.

use super::effective::{EffectiveSettings, OverflowBehavior};
use crate::model::known_arguments::KnownArgument;
use crate::model::{ArgumentValue, BrokerVersion, QueueType};
use std::fmt;

/// A reason why the broker accepts a setting but ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEffect {
    /// Queues of this type do not read the setting.
    Type(QueueType),
    /// Queues of this type read the setting only on this version and later.
    NotYet(QueueType, BrokerVersion),
    /// The setting has had no effect since this version.
    Since(BrokerVersion),
    /// Queues of this type no longer read the setting on the broker's version.
    NoLonger,
    /// Version 1 of classic queues was removed in 4.0 (`rabbit_variable_queue:set_queue_version/2`).
    RemovedQueueVersion,
    /// A quorum queue drops the oldest message despite `reject-publish-dlx`, and logs a warning
    /// (`rabbit_quorum_queue:overflow/3`, 3.8 to 4.3).
    DropsOldest,
    /// The delays of delayed retries require `delayed-retry-type`, whose default is `disabled`.
    WithoutDelayedRetryType,
    /// A dead-letter strategy requires a dead-letter exchange (`rabbit_quorum_queue:dlh/5`).
    WithoutDeadLetterExchange,
    /// `at-least-once` requires `overflow: reject-publish`. Otherwise, dead-lettering is at-most-once.
    WithoutRejectPublish,
}

impl fmt::Display for NoEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(kind) => write!(f, "{kind} queues ignore it"),
            Self::NotYet(kind, since) => {
                write!(f, "{kind} queues read it only on RabbitMQ {} and later", since.series())
            }
            Self::Since(since) => write!(f, "no effect since RabbitMQ {}", since.series()),
            Self::NoLonger => f.write_str("no longer read"),
            Self::RemovedQueueVersion => f.write_str("removed in RabbitMQ 4.0: the queue uses version 2"),
            Self::DropsOldest => f.write_str("no effect on a quorum queue, which drops the oldest message"),
            Self::WithoutDelayedRetryType => f.write_str("no effect without delayedRetryType"),
            Self::WithoutDeadLetterExchange => f.write_str("no effect without a dead-letter exchange"),
            Self::WithoutRejectPublish => f.write_str("no effect without overflow: reject-publish"),
        }
    }
}

impl EffectiveSettings {
    /// Returns the reason why a value of a known argument has no effect on the queue. Returns `None` if the value has
    /// an effect, or if a plugin provides the queue type.
    pub fn no_effect(&self, known: &KnownArgument, value: &ArgumentValue) -> Option<NoEffect> {
        let kind = self.kind()?;
        match known.name {
            "x-queue-version" if kind == QueueType::Classic && self.version().is_at_least(4, 0) => {
                removed_queue_version(value)
            }
            _ if known.has_no_effect(kind, self.version()) => Some(reason_unused(known, kind, self.version())),
            "x-overflow" => {
                let drops = self.overflow_behavior_with(value.as_text()) == OverflowBehavior::DropsOldest;
                (drops && value.as_text() == Some("reject-publish-dlx")).then_some(NoEffect::DropsOldest)
            }
            "x-delayed-retry-min" | "x-delayed-retry-max" => {
                (!self.has("delayed-retry-type")).then_some(NoEffect::WithoutDelayedRetryType)
            }
            "x-dead-letter-strategy" if !self.has("dead-letter-exchange") => Some(NoEffect::WithoutDeadLetterExchange),
            "x-dead-letter-strategy" => {
                let falls_back = value.as_text() == Some("at-least-once") && !self.overflow_behavior().rejects();
                falls_back.then_some(NoEffect::WithoutRejectPublish)
            }
            _ => None,
        }
    }
}

/// Returns the reason why a policy key with this value has no effect on any queue on this broker version. Returns
/// `None` if the key has an effect on some queues, or if the key is unknown.
pub fn no_effect_in_policy(key: &str, value: &ArgumentValue, version: BrokerVersion) -> Option<NoEffect> {
    if key == "queue-version" && version.is_at_least(4, 0) {
        return removed_queue_version(value);
    }
    let known = KnownArgument::of_policy_key(key)?;
    let since = known.support.iter().map(|support| support.no_effect_since.filter(|since| version >= *since));
    // A policy can apply to every queue type that reads the key, so the key must have no effect on any of these types.
    since.collect::<Option<Vec<BrokerVersion>>>()?.into_iter().max().map(NoEffect::Since)
}

fn removed_queue_version(value: &ArgumentValue) -> Option<NoEffect> {
    (value.as_integer() == Some(1)).then_some(NoEffect::RemovedQueueVersion)
}

/// Returns the reason why a queue type does not use an argument in this version.
fn reason_unused(known: &KnownArgument, kind: QueueType, version: BrokerVersion) -> NoEffect {
    let Some(support) = known.support_for(kind) else { return NoEffect::Type(kind) };
    match support.no_effect_since.filter(|since| version >= *since) {
        Some(since) => NoEffect::Since(since),
        None if version < support.accepted.since => NoEffect::NotYet(kind, support.accepted.since),
        None => NoEffect::NoLonger,
    }
}
