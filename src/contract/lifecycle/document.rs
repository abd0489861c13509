//! Defines the lifecycle of a message as data, for text and JSON output.

use crate::contract::{Contract, Replay, Wait};
use crate::model::{BrokerVersion, ExchangeName, QueueName, QueueType, VhostName};
use serde::Serialize;

/// The explanation for the name of a queue or a tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Explanation {
    /// A declared queue.
    Queue(Box<Lifecycle>),
    /// A tier of a declared queue.
    Tier(TierDescription),
}

/// The lifecycle of a queue's messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// The name of the queue.
    pub queue: QueueName,
    /// The type of the queue.
    pub queue_type: QueueType,
    /// The RabbitMQ version that the lifecycle applies to.
    pub broker_version: BrokerVersion,
    /// The spec line that declares the queue.
    pub at: SpecLine,
    /// The queues that dead-letter some or all of their messages to this queue.
    #[serde(rename = "deadLettersFrom")]
    pub dead_letter_sources: Vec<QueueName>,
    /// True for a declared dead-letter queue, which has no worker.
    pub is_dead_letter_queue: bool,
    /// The states of a message that always fails, in order.
    pub steps: Vec<Step>,
    /// All ways in which a message leaves the queue.
    pub exits: Vec<Exit>,
    /// The settings of the queue with their origins.
    pub settings: Vec<SettingOrigin>,
    /// The duties of the workers; null for streams.
    pub contract: Option<Contract>,
    /// The routing and the `x-death` header of a message that is dead-lettered after its last retry; null if no
    /// dead-lettered message reaches a queue.
    pub dead_lettered_message: Option<DeadLetteredProperties>,
    /// Instructions for replaying a dead-lettered message; null if no dead-lettered message reaches a queue, or for
    /// streams.
    pub replay: Option<Replay>,
}

impl Explanation {
    /// Returns the vhost.
    pub fn vhost(&self) -> &VhostName {
        match self {
            Self::Queue(lifecycle) => &lifecycle.vhost,
            Self::Tier(tier) => &tier.vhost,
        }
    }

    /// Returns the queues in which a message can be: the queue, the tiers of the listed steps, and the dead-letter
    /// queues, in the order in which a message reaches them. For a tier, returns only the tier itself.
    pub fn queues(&self) -> Vec<&QueueName> {
        let lifecycle = match self {
            Self::Queue(lifecycle) => lifecycle,
            Self::Tier(tier) => return vec![&tier.tier],
        };
        let tiers = lifecycle.steps.iter().filter_map(|step| match &step.state {
            State::Waiting { queue, .. } => queue.as_ref(),
            State::DeadLetter { .. }
            | State::Published { .. }
            | State::Attempt { .. }
            | State::Attempts { .. }
            | State::Kept { .. }
            | State::Dropped => None,
        });
        [&lifecycle.queue].into_iter().chain(tiers).chain(lifecycle.dead_letter_queues()).collect()
    }
}

impl Lifecycle {
    /// Returns the dead-letter queues that certainly receive a message after its last retry.
    pub fn dead_letter_queues(&self) -> &[QueueName] {
        match self.steps.last().map(|step| &step.state) {
            Some(State::DeadLetter { queues, .. }) => queues,
            Some(
                State::Waiting { .. }
                | State::Published { .. }
                | State::Attempt { .. }
                | State::Attempts { .. }
                | State::Kept { .. }
                | State::Dropped,
            )
            | None => &[],
        }
    }
}

/// A line in a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecLine {
    /// The path of the file, as passed to topo.
    pub file: String,
    /// The line number, starting at 1.
    pub line: usize,
}

/// A state of a message, and the transition to the next state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The state.
    pub state: State,
    /// The time since the message was published, excluding processing time; null for the first state, or if the time
    /// is unknown.
    pub after: Option<Wait>,
    /// The transition to the next state, in words; empty if the transition needs no description.
    pub then: String,
}

/// The state of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// The message is published to the queue.
    Published {
        /// The exchanges and routing keys through which messages reach the queue, in words.
        ways_in: Vec<String>,
    },
    /// A worker processes the message.
    Attempt {
        /// The number of the attempt, starting at 1.
        number: u32,
    },
    /// Consecutive attempts that the output abbreviates, because they are like the previous attempts.
    Attempts {
        /// The first attempt.
        from: u32,
        /// The last attempt.
        to: u32,
    },
    /// The message waits for the next attempt.
    Waiting {
        /// The tier in which the message waits; null if the message waits in the queue itself.
        queue: Option<QueueName>,
        /// The delay before the next attempt.
        wait: Wait,
    },
    /// The message stays in the queue.
    Kept {
        /// The condition under which the message leaves the queue, in words.
        until: String,
    },
    /// The message is dead-lettered.
    DeadLetter {
        /// The destination, in words.
        place: String,
        /// The dead-letter queues that certainly receive the message.
        queues: Vec<QueueName>,
    },
    /// The broker drops the message.
    Dropped,
}

/// One way in which a message leaves the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The glossary term for the exit.
    pub way: &'static str,
    /// The cause, in words.
    pub by: String,
    /// The destination or the consequence, in words.
    pub to: String,
}

/// A setting and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingOrigin {
    /// The key in the spec.
    pub key: String,
    /// The effective value.
    pub value: String,
    /// The reason why the setting has no effect; absent if the setting has an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
    /// The origin, in words.
    pub set_by: String,
    /// The spec line that sets the value; null if the spec does not set it.
    pub at: Option<SpecLine>,
}

/// The routing and the `x-death` header of a dead-lettered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetteredProperties {
    /// The exchange of the message when it arrives in the dead-letter queue.
    pub exchange: ExchangeName,
    /// The routing key of the message when it arrives in the dead-letter queue; null for the original key.
    pub routing_key: Option<String>,
    /// The entries of `x-death`, newest first. Only the position of the first entry is certain.
    pub x_death: Vec<Death>,
    /// True if `x-death` may contain additional entries from published copies.
    pub may_have_more: bool,
}

/// An entry of `x-death`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Death {
    /// The queue that dead-lettered the message.
    pub queue: QueueName,
    /// The reason for the dead-lettering.
    pub reason: &'static str,
    /// The number of times that the queue dead-lettered the message for this reason.
    pub count: u32,
}

/// A tier of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TierDescription {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// The name of the tier.
    pub tier: QueueName,
    /// The queue that the tier belongs to.
    pub queue: QueueName,
    /// The number of the retry that follows the delay, starting at 1.
    pub retry: u32,
    /// The delay of the tier.
    pub wait: Wait,
    /// True if the current spec generates the tier; false if the tier is retired.
    pub is_generated: bool,
    /// The routing key with which a message returns to the queue.
    pub routing_key: String,
    /// The exchange through which a message returns to the queue.
    pub exchange: ExchangeName,
    /// The spec line that declares the retries of the queue; null if the spec declares no retries.
    pub at: Option<SpecLine>,
}
