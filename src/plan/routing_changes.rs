//! Defines the routing changes of a plan: the messages that reach different queues after its steps.

use crate::model::units::value_text;
use crate::model::{Address, Arguments, Binding, ExchangeName, QueueName, Source};
use crate::rabbitmq::routing::difference::ExampleMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The messages that reach different queues after a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingChanges {
    /// The changes, by exchange and cause.
    pub changes: Vec<RoutingChange>,
    /// The queues whose dead-lettered messages reach different queues.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dead_letters: Vec<DeadLetterChange>,
    /// The causes whose effect on routing is not known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_compared: Vec<NotCompared>,
}

impl RoutingChanges {
    /// Returns true if no known message reaches different queues, and all causes were compared.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.dead_letters.is_empty() && self.not_compared.is_empty()
    }
}

/// A change in the queues that receive messages published to one exchange. Each change has exactly one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingChange {
    /// The exchange to which the messages are published.
    pub exchange: ExchangeName,
    /// The cause.
    pub cause: RoutingCause,
    /// The queues that some messages no longer reach.
    pub lost: BTreeSet<QueueName>,
    /// The queues that some messages reach only after the plan.
    pub gained: BTreeSet<QueueName>,
    /// One of the messages. If possible, a message that reaches no queue after the plan.
    pub example: RoutedMessage,
    /// The queues that the example reaches before the plan; at most 20.
    pub before: BTreeSet<QueueName>,
    /// The total number of queues that the example reaches before the plan.
    pub before_total: usize,
    /// The reason why the example may reach additional queues before the plan. Absent if the route is certain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_unclear: Option<String>,
    /// The queues that the example reaches after the plan; at most 20.
    pub after: BTreeSet<QueueName>,
    /// The total number of queues that the example reaches after the plan.
    pub after_total: usize,
    /// The reason why the example may reach additional queues after the plan. Absent if the route is certain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after_unclear: Option<String>,
    /// True if the change affects every message to which the cause applies: for a binding, every message that it
    /// matches. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub all: Option<bool>,
    /// A message to which the cause applies, but which the change does not affect.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unaffected: Option<RoutedMessage>,
}

/// An example message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutedMessage {
    /// The routing key.
    pub routing_key: String,
    /// The headers.
    #[serde(skip_serializing_if = "Arguments::is_empty", default)]
    pub headers: Arguments,
}

impl fmt::Display for RoutedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.routing_key.as_str() {
            "" => f.write_str("an empty routing key")?,
            key => write!(f, "routing key `{key}`")?,
        }
        let headers: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}={}", value_text(value))).collect();
        match headers.is_empty() {
            true => Ok(()),
            false => write!(f, " and headers `{}`", headers.join(", ")),
        }
    }
}

impl From<ExampleMessage> for RoutedMessage {
    fn from(ExampleMessage { routing_key, headers }: ExampleMessage) -> Self {
        Self { routing_key, headers }
    }
}

/// The topology change that causes a routing change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingCause {
    /// The kind of the cause.
    pub kind: CauseKind,
    /// The address of the binding or of the exchange.
    pub address: Address,
    /// The binding; absent if the exchange causes the change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binding: Option<Binding>,
    /// The position in the spec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
}

/// The kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CauseKind {
    /// A binding is created.
    BindingCreated,
    /// A binding is deleted.
    BindingDeleted,
    /// The alternate exchange of an exchange changes.
    AlternateExchange,
    /// The type of an exchange changes.
    ExchangeType,
}

/// A change in the queues that the dead-lettered messages of a queue reach, after all retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterChange {
    /// The queue that dead-letters the messages.
    pub queue: QueueName,
    /// The address of the queue.
    pub address: Address,
    /// The position of the queue in the spec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// The reasons why the messages are dead-lettered: `rejected`, `expired`, `maxlen` or `delivery_limit`.
    pub reasons: Vec<String>,
    /// The queues that some messages no longer reach.
    pub lost: BTreeSet<QueueName>,
    /// The queues that some messages reach only after the plan.
    pub gained: BTreeSet<QueueName>,
    /// One of the messages. If possible, a message that reaches no queue after the plan.
    pub example: RoutedMessage,
    /// The queues that the example reaches before the plan.
    pub before: BTreeSet<QueueName>,
    /// The queues that the example reaches after the plan.
    pub after: BTreeSet<QueueName>,
    /// The reason why the queues are not certain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown: Option<String>,
}

/// A cause whose effect on routing is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotCompared {
    /// The exchange to which messages are published.
    pub exchange: ExchangeName,
    /// The cause.
    pub cause: RoutingCause,
    /// The reason why the effect is not known.
    pub reason: String,
}
