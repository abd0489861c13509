//! Defines hazards: the risks of applying a step to this broker now.

use crate::model::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kinds of hazards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HazardKind {
    /// Messages are deleted with their queue, can be dropped if topo is killed during a migration, or are lost because
    /// a shovel or upstream with `no-ack` restarts.
    MessageLoss,
    /// Messages that applications publish to a queue through the default exchange are lost while the queue does not
    /// exist.
    PublishLoss,
    /// The broker drops or dead-letters messages: a setting of a queue changes, an exchange loses its alternate
    /// exchange, or an unmanaged policy breaks generated retries or dead-letter queues.
    MessageDrop,
    /// A user becomes an administrator or policymaker, or may publish or bind with more routing keys than before.
    AccessGain,
    /// A user is deleted, or loses a tag or access to objects or routing keys.
    AccessLoss,
    /// The password of a user with open connections, shovels or upstreams changes or is removed. Clients that use the
    /// old password can no longer connect.
    CredentialChange,
    /// Messages are not routed to a queue or through an exchange, temporarily or permanently, or a shovel or a
    /// federation link no longer moves messages.
    RoutingGap,
    /// Messages to an exchange that reach a queue before the apply are unroutable after it, or dead-lettered messages
    /// from a queue no longer reach a queue.
    RoutingLoss,
    /// A shovel uses a queue that is deleted or recreated: the shovel may declare the queue again, or lose messages.
    ShovelInterference,
    /// Connected consumers are canceled, or no longer receive messages.
    ConsumerDisruption,
    /// Messages may be delivered twice.
    Duplicates,
    /// A migration may change the order of messages.
    Reorder,
    /// A queue starts to reject publishes, immediately or when the queue is full.
    PublisherBlock,
    /// A limit is at or below the current number of connections or queues, or limits the channels of a user with open
    /// connections.
    LimitReached,
    /// A different policy governs an object, or a policy changes an alternate exchange or the delay of a tier.
    PolicyShift,
    /// Workers must be changed before the apply, for example because they must handle failures differently.
    ContractChange,
    /// An object or its messages no longer survive a restart, or the loss of a node.
    DurabilityDown,
    /// A large part of the owned objects is deleted.
    MassDelete,
}

impl HazardKind {
    /// All kinds of hazards, most severe first.
    pub const ALL: [Self; 18] = [
        Self::MessageLoss,
        Self::PublishLoss,
        Self::MessageDrop,
        Self::MassDelete,
        Self::AccessGain,
        Self::AccessLoss,
        Self::CredentialChange,
        Self::RoutingLoss,
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

    /// Returns the name of the hazard in plans and in `--allow`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageLoss => "message-loss",
            Self::PublishLoss => "publish-loss",
            Self::MessageDrop => "message-drop",
            Self::AccessGain => "access-gain",
            Self::AccessLoss => "access-loss",
            Self::CredentialChange => "credential-change",
            Self::RoutingGap => "routing-gap",
            Self::RoutingLoss => "routing-loss",
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
                "Deleting a queue, or recreating it without a migration, also deletes its messages. If topo \
                 is killed during a migration, messages that have reached their delivery limit can be dropped. If a \
                 shovel or upstream with `no-ack` restarts, the messages in flight are lost."
            }
            Self::PublishLoss => {
                "Applications publish to a queue through the default exchange, and the queue is deleted or recreated. \
                 Messages that arrive while the queue does not exist are lost, even if they are confirmed."
            }
            Self::MessageDrop => {
                "The broker drops or dead-letters messages: a setting of a queue changes, such as a lower limit, a \
                 shorter TTL or a removed dead-letter exchange; an exchange loses its alternate exchange; or an \
                 unmanaged policy breaks generated retries or dead-letter queues."
            }
            Self::AccessGain => {
                "Users gain access: a user has or gains the `administrator` or `policymaker` tag, a topic permission \
                 is deleted or no longer restricts routing keys, or the broker deletes topic permissions together with \
                 their exchange, and topo cannot restore them."
            }
            Self::AccessLoss => {
                "Users lose access: a user is deleted or loses a tag, a permission is deleted or no longer matches an \
                 object, or a new, changed or restored topic permission restricts routing keys. topo restores topic \
                 permissions that an interrupted recreation appears to have stored."
            }
            Self::CredentialChange => {
                "The password of a user with open connections, shovels or upstreams changes or is removed. Open \
                 connections stay open, and clients with the old password can no longer connect."
            }
            Self::RoutingGap => {
                "Messages are not routed to a queue or through an exchange: temporarily while topo recreates the \
                 object, or permanently because the object or its bindings are deleted. The hazard also covers a \
                 deleted shovel, upstream or member of an upstream set."
            }
            Self::RoutingLoss => {
                "Messages to an exchange that currently reach a queue will be unroutable, because bindings, the \
                 alternate exchange or the type of an exchange change. The broker drops these messages, or returns \
                 them to publishers that set `mandatory`. The hazard also covers dead-lettered messages that will no \
                 longer reach a queue."
            }
            Self::ShovelInterference => {
                "A dynamic shovel reads from or writes to a queue that is deleted or recreated. The shovel may declare \
                 the queue again with the default type, or lose messages."
            }
            Self::ConsumerDisruption => {
                "Connected consumers are canceled because their queue is deleted or recreated, or their messages no longer \
                 arrive because `--prune` deletes a transient object of their client."
            }
            Self::Duplicates => {
                "Messages may be delivered twice. For example, an interrupted migration may move some messages again."
            }
            Self::Reorder => "A migration can deliver messages out of order.",
            Self::PublisherBlock => {
                "A queue starts to reject messages that are published to it, immediately or when the queue is full."
            }
            Self::LimitReached => {
                "A limit is at or below the current number of connections or queues, or limits the channels of a user \
                 with open connections. The broker keeps existing connections or queues and refuses new ones. It \
                 closes a connection that opens too many channels."
            }
            Self::PolicyShift => {
                "The policy that governs an object changes, or a policy changes an alternate exchange or the delay of \
                 a tier. If several policies match an object, only one of them applies."
            }
            Self::ContractChange => {
                "Before the apply, workers must be changed to handle failures or declare the queue differently: see \
                 `topo contract`. The hazard also covers retried messages that lose their `x-death` history."
            }
            Self::DurabilityDown => "An object or its messages no longer survive a restart, or the loss of a node.",
            Self::MassDelete => {
                "One apply deletes a large share of the owned objects. Check that you use the intended broker and the \
                 intended spec."
            }
        }
    }

    /// Returns the severity rank; 0 is the most severe.
    pub fn severity(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or(Self::ALL.len())
    }

    /// Returns true if messages can be lost or dead-lettered.
    pub fn loses_messages(self) -> bool {
        matches!(self, Self::MessageLoss | Self::PublishLoss | Self::MessageDrop)
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for an unknown hazard name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hazard; the hazards are {all}", all = HazardKind::ALL.map(HazardKind::as_str).join(", "))]
pub struct NotAHazard(pub String);

impl FromStr for HazardKind {
    type Err = NotAHazard;

    fn from_str(text: &str) -> Result<Self, NotAHazard> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| NotAHazard(text.to_owned()))
    }
}

/// A hazard that concerns one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hazard {
    /// The kind of the hazard.
    pub kind: HazardKind,
    /// The address of the object.
    pub address: Address,
    /// The description, in one sentence with the current counts.
    pub text: String,
    /// The number of messages at risk; `None` if the number is unknown, or if no messages are at risk.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub messages: Option<u64>,
    /// True if the hazard blocks the plan until it is allowed; false if the hazard is only reported.
    pub must_be_allowed: bool,
}

impl Hazard {
    /// Returns the flag that allows the hazard: `--allow KIND@ADDRESS`.
    pub fn flag(&self) -> String {
        format!("--allow {}@{}", self.kind, self.address)
    }
}
