//! Risks of applying a step to this broker now.

use crate::model::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kinds of hazards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HazardKind {
    /// Messages are deleted.
    MessageLoss,
    /// A policy makes the broker drop messages, or dead-letter them.
    MessageDrop,
    /// A user may publish or bind more than before.
    AccessGain,
    /// A user may publish or bind less than before.
    AccessLoss,
    /// For a moment, messages are unroutable.
    RoutingGap,
    /// A shovel declares a queue that is deleted or recreated, or loses messages.
    ShovelInterference,
    /// Connected consumers are canceled.
    ConsumerDisruption,
    /// A migration may deliver messages twice.
    Duplicates,
    /// A migration may deliver messages out of order.
    Reorder,
    /// A full queue starts to reject publishes.
    PublisherBlock,
    /// A limit is at or below the existing number: the broker refuses more.
    LimitReached,
    /// Another policy starts or stops governing an object.
    PolicyShift,
    /// Workers must handle failures differently before the apply.
    ContractChange,
    /// An object or its messages no longer survive a restart, or the loss of a node.
    DurabilityDown,
    /// A large part of the owned objects is deleted.
    MassDelete,
}

impl HazardKind {
    /// All hazards, most severe first.
    pub const ALL: [Self; 15] = [
        Self::MessageLoss,
        Self::MessageDrop,
        Self::MassDelete,
        Self::AccessGain,
        Self::AccessLoss,
        Self::RoutingGap,
        Self::ShovelInterference,
        Self::ConsumerDisruption,
        Self::PublisherBlock,
        Self::LimitReached,
        Self::DurabilityDown,
        Self::ContractChange,
        Self::Duplicates,
        Self::Reorder,
        Self::PolicyShift,
    ];

    /// Returns the name in plans and in `--allow`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageLoss => "message-loss",
            Self::MessageDrop => "message-drop",
            Self::AccessGain => "access-gain",
            Self::AccessLoss => "access-loss",
            Self::RoutingGap => "routing-gap",
            Self::ShovelInterference => "shovel-interference",
            Self::ConsumerDisruption => "consumer-disruption",
            Self::Duplicates => "duplicates",
            Self::Reorder => "reorder",
            Self::PublisherBlock => "publisher-block",
            Self::LimitReached => "limit-reached",
            Self::PolicyShift => "policy-shift",
            Self::ContractChange => "contract-change",
            Self::DurabilityDown => "durability-down",
            Self::MassDelete => "mass-delete",
        }
    }

    /// Returns a description for users.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::MessageLoss => {
                "Messages are deleted with a queue that is deleted, or that is recreated without a migration."
            }
            Self::MessageDrop => {
                "A policy change makes the broker drop or dead-letter existing messages: a lower limit, a shorter \
                 TTL, a queue that expires."
            }
            Self::AccessGain => {
                "Users may publish or bind more routing keys than before: the broker deletes topic permissions \
                 together with their exchange, and topo cannot restore them."
            }
            Self::AccessLoss => {
                "Users may publish or bind fewer routing keys than before: topo restores topic permissions that an interrupted \
                 recreation seems to have stored, on an exchange that is in use."
            }
            Self::RoutingGap => {
                "Messages are unroutable for a moment: between two steps, an exchange or a queue and its bindings do \
                 not exist."
            }
            Self::ShovelInterference => {
                "A dynamic shovel reads from or writes to a queue that is deleted or recreated: it declares the queue again with \
                 the default type, or its messages are lost."
            }
            Self::ConsumerDisruption => {
                "Connected consumers are canceled, because their queue is deleted, permanently or for a moment."
            }
            Self::Duplicates => {
                "A migration moves messages at least once: when it is interrupted, some are delivered twice."
            }
            Self::Reorder => "A migration can deliver messages out of order.",
            Self::PublisherBlock => {
                "A queue is full as soon as the step is done, and rejects the messages that are published to it."
            }
            Self::LimitReached => {
                "A limit is at or below the number of connections or queues that exist: they stay, and the broker refuses \
                 new ones."
            }
            Self::PolicyShift => {
                "A different policy governs an object; of several matching policies, only one applies."
            }
            Self::ContractChange => {
                "Workers must handle failures or declare the queue differently before the apply: see `topo contract`. \
                 The hazard also covers messages that lose the history that workers read."
            }
            Self::DurabilityDown => "An object or its messages no longer survive a restart, or the loss of a node.",
            Self::MassDelete => {
                "One apply deletes a large part of the owned objects: check that the broker and the spec are the right \
                     ones."
            }
        }
    }

    /// Returns the position by severity; the most severe hazard is 0.
    pub fn severity(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or(Self::ALL.len())
    }

    /// Returns true if the hazard can remove messages from a queue.
    pub fn loses_messages(self) -> bool {
        matches!(self, Self::MessageLoss | Self::MessageDrop)
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An unknown name of a hazard.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hazard; the hazards are {all}", all = HazardKind::ALL.map(HazardKind::as_str).join(", "))]
pub struct NotAHazard(pub String);

impl FromStr for HazardKind {
    type Err = NotAHazard;

    fn from_str(text: &str) -> Result<Self, NotAHazard> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| NotAHazard(text.to_owned()))
    }
}

/// One hazard of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hazard {
    /// The kind of the hazard.
    pub kind: HazardKind,
    /// The address of the object.
    pub address: Address,
    /// The description, in one sentence with numbers.
    pub text: String,
    /// The number of messages at risk; `None` if it is unknown, or if no messages are at risk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub messages: Option<u64>,
    /// True if the hazard must be allowed, false if it does not block the plan.
    pub must_be_allowed: bool,
}

impl Hazard {
    /// Returns the flag that allows the hazard.
    pub fn flag(&self) -> String {
        format!("--allow {}@{}", self.kind, self.address)
    }
}
