//! Defines the spec of one vhost, with positions. Documents and files are merged and defaults are applied, but nothing
//! is expanded.

use super::allow::Allow;
use super::lint_keys::Level;
use super::node::{Keyed, Location, Sourced};
use super::notation::Notation;
use super::retry::{RetryPolicySpec, RetrySpec};
use crate::model::{
    ApplyTo, ArgumentValue, Binding, ExchangeName, Glob, ObjectId, OnConflict, Places, PolicyName, Priority, QueueName,
    QueueType, Record, RecordId, RecordKind, VhostName,
};
use std::collections::{BTreeMap, BTreeSet};

/// The spec of one vhost.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The names of all files of the run, by [`Location::file`].
    pub files: Vec<String>,
    /// The vhost, with its first position.
    pub vhost: Sourced<VhostName>,
    /// The description.
    pub description: Option<Sourced<String>>,
    /// The type of queues without a type.
    pub default_queue_type: Option<Sourced<QueueType>>,
    /// The names that the spec manages.
    pub owns: Vec<Sourced<Glob>>,
    /// The names that topo never deletes or recreates.
    pub protect: Vec<Sourced<Glob>>,
    /// The names that topo ignores.
    pub ignore: Vec<Sourced<Glob>>,
    /// The objects to delete.
    pub removed: Vec<Sourced<ObjectId>>,
    /// Retry policies, by name.
    pub retry_policies: BTreeMap<String, RetryPolicySpec>,
    /// The uses of retry policies.
    pub retry_uses: Vec<Sourced<String>>,
    /// Exchanges, including external ones, without those of dead-letter queues.
    pub exchanges: BTreeMap<ExchangeName, ExchangeSpec>,
    /// Queues, including external ones, without dead-letter queues.
    pub queues: BTreeMap<QueueName, QueueSpec>,
    /// Dead-letter queues, including external ones.
    pub dead_letter_queues: BTreeMap<QueueName, DeadLetterQueueSpec>,
    /// All bindings, without those of dead-letter queues to their own exchanges.
    pub bindings: BTreeMap<Binding, BindingSpec>,
    /// Policies.
    pub policies: BTreeMap<PolicyName, PolicySpec>,
    /// Records.
    pub records: BTreeMap<RecordId, RecordSpec>,
    /// The kinds of records with a section, even an empty one, with the declared names.
    pub sections: BTreeMap<RecordKind, BTreeSet<String>>,
    /// The levels of lint rules.
    pub lint: BTreeMap<String, Sourced<Level>>,
    /// The findings that comments allow.
    pub allows: Vec<Allow>,
    /// The notation that lint rules need.
    pub notation: Notation,
}

/// A value with its position and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The position.
    pub at: Location,
    /// The origin.
    pub set_by: SetBy,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The object itself.
    Itself,
    /// An entry of `retryPolicies`.
    RetryPolicy,
    /// The document's `defaults`.
    Defaults,
    /// The vhost's `defaultQueueType`.
    Vhost,
}

/// An exchange.
#[derive(Clone, Debug)]
pub struct ExchangeSpec {
    /// The position of its name.
    pub at: Location,
    /// True if it is external.
    pub is_external: bool,
    /// True if an external exchange may be missing.
    pub is_optional: bool,
    /// The type; empty on an external exchange.
    pub kind: Sourced<String>,
    /// True if it is durable.
    pub durable: bool,
    /// True if the broker deletes it with its last binding.
    pub auto_delete: bool,
    /// True if only exchanges can publish to it.
    pub internal: bool,
    /// The exchange for messages that it cannot route.
    pub alternate_exchange: Option<Sourced<ExchangeName>>,
    /// Other arguments.
    pub arguments: BTreeMap<String, Keyed<ArgumentValue>>,
    /// The resolution of conflicts.
    pub on_conflict: Option<OnConflict>,
    /// The places that set its arguments.
    pub places: Places,
}

/// A queue or stream.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    /// The position of its name.
    pub at: Location,
    /// True if it is external.
    pub is_external: bool,
    /// The type; `None` on an external queue.
    pub queue_type: Option<Setting<QueueType>>,
    /// True if it is durable; `None` means durable.
    pub durable: Option<Setting<bool>>,
    /// True if the broker deletes it with its last consumer; `None` means no.
    pub auto_delete: Option<Setting<bool>>,
    /// Arguments by RabbitMQ's names, without `x-queue-type` and without `x-dead-letter-…` except the strategy.
    pub arguments: BTreeMap<String, Setting<ArgumentValue>>,
    /// The dead-letter target; `None` if it is not set.
    pub dead_letter: Option<Setting<DeadLetter>>,
    /// The retries; `None` if they are not set, or set to `none`.
    pub retry: Option<RetrySpec>,
    /// The resolution of conflicts.
    pub on_conflict: Option<Setting<OnConflict>>,
    /// The places that set its arguments.
    pub places: Places,
}

/// A dead-letter target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetter {
    /// None, set explicitly.
    Nowhere,
    /// An entry of `deadLetterQueues`.
    Queue {
        /// The entry.
        name: QueueName,
        /// The wiring.
        wiring: Wiring,
    },
    /// An exchange.
    Exchange {
        /// The exchange; empty for the default exchange.
        exchange: ExchangeName,
        /// The routing key; without it, messages keep their own.
        routing_key: Option<String>,
        /// The wiring.
        wiring: Wiring,
    },
}

/// The way to set the dead-letter target of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wiring {
    /// By its own arguments.
    #[default]
    Arguments,
    /// By a policy for this queue.
    Policy,
}

/// A dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetterQueueSpec {
    /// The queue.
    pub queue: QueueSpec,
    /// The name of its exchange, if it is set.
    pub exchange_name: Option<Sourced<ExchangeName>>,
    /// The type of its exchange, `fanout` by default.
    pub exchange_type: Sourced<String>,
    /// True if its exchange is internal.
    pub exchange_internal: bool,
    /// The routing key of the binding, which dead-lettered messages get, if it is set.
    pub routing_key: Option<String>,
}

/// The positions of a binding.
#[derive(Clone, Debug)]
pub struct BindingSpec {
    /// The binding.
    pub at: Location,
    /// The name of its source.
    pub source_at: Location,
    /// The name of its destination.
    pub destination_at: Location,
    /// The routing key, or the binding if it has none.
    pub key_at: Location,
    /// The values of its arguments.
    pub arguments: BTreeMap<String, Location>,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// The position of its name.
    pub at: Location,
    /// The pattern.
    pub pattern: Sourced<String>,
    /// The kinds of objects that it applies to.
    pub apply_to: Sourced<ApplyTo>,
    /// The priority.
    pub priority: Priority,
    /// The definition, by RabbitMQ's keys.
    pub definition: BTreeMap<String, Keyed<ArgumentValue>>,
}

/// A record.
#[derive(Clone, Debug)]
pub struct RecordSpec {
    /// The position of its name.
    pub at: Location,
    /// The record.
    pub record: Record,
    /// The positions of its fields, and of the keys of its definition, by RabbitMQ's names.
    pub places: BTreeMap<String, Location>,
}

impl QueueSpec {
    /// Creates an external queue, about which nothing else is known.
    pub(crate) fn external(at: Location) -> Self {
        Self {
            at,
            is_external: true,
            queue_type: None,
            durable: None,
            auto_delete: None,
            arguments: BTreeMap::new(),
            dead_letter: None,
            retry: None,
            on_conflict: None,
            places: Places::new(),
        }
    }
}

impl DeadLetter {
    /// Returns its wiring; `None` for [`DeadLetter::Nowhere`].
    pub fn wiring(&self) -> Option<Wiring> {
        match self {
            Self::Nowhere => None,
            Self::Queue { wiring, .. } | Self::Exchange { wiring, .. } => Some(*wiring),
        }
    }
}
