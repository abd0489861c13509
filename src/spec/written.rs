//! What a person wrote about one vhost, with positions: documents and files merged, defaults applied, nothing expanded.

use super::allow::Allow;
use super::level::Level;
use super::notation::Notation;
use super::position::{Keyed, Location, Sourced};
use super::retry::{RetryPolicySpec, RetrySpec};
use crate::model::{
    ApplyTo, ArgumentValue, Binding, ExchangeName, Glob, ObjectId, OnConflict, Places, PolicyName, Priority, QueueName,
    QueueType, VhostName,
};
use std::collections::BTreeMap;

/// Everything that was written about one vhost.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The names of all files of the run, by [`Location::file`].
    pub files: Vec<String>,
    /// The vhost, where it is first named.
    pub vhost: Sourced<VhostName>,
    /// Its description.
    pub description: Option<Sourced<String>>,
    /// The type of queues that say none.
    pub default_queue_type: Option<Sourced<QueueType>>,
    /// What the spec answers for.
    pub owns: Vec<Sourced<Glob>>,
    /// What is never deleted or recreated.
    pub protect: Vec<Sourced<Glob>>,
    /// What is invisible.
    pub ignore: Vec<Sourced<Glob>>,
    /// What is to be deleted.
    pub removed: Vec<Sourced<ObjectId>>,
    /// Ways of trying again, by name.
    pub retry_policies: BTreeMap<String, RetryPolicySpec>,
    /// The names of such ways, wherever one is used.
    pub retry_uses: Vec<Sourced<String>>,
    /// Exchanges, external ones among them; not those of dead-letter queues.
    pub exchanges: BTreeMap<ExchangeName, ExchangeSpec>,
    /// Queues, external ones among them; not dead-letter queues.
    pub queues: BTreeMap<QueueName, QueueSpec>,
    /// Dead-letter queues, external ones among them.
    pub dead_letter_queues: BTreeMap<QueueName, DeadLetterQueueSpec>,
    /// All bindings, wherever they are written; not those of dead-letter queues to their own exchanges.
    pub bindings: BTreeMap<Binding, BindingSpec>,
    /// Policies.
    pub policies: BTreeMap<PolicyName, PolicySpec>,
    /// The levels that are given to lint rules.
    pub lint: BTreeMap<String, Sourced<Level>>,
    /// The findings that are allowed, in comments.
    pub allows: Vec<Allow>,
    /// How some of it is written.
    pub notation: Notation,
}

/// A value, and who said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub at: Location,
    /// Who said it.
    pub said_by: SaidBy,
}

/// Who said a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
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
    /// Where its name stands.
    pub at: Location,
    /// Somebody else's.
    pub is_external: bool,
    /// Whether an external one may be missing.
    pub is_optional: bool,
    /// Its type; empty on an external one.
    pub kind: Sourced<String>,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes with its last binding.
    pub auto_delete: bool,
    /// Whether only exchanges publish to it.
    pub internal: bool,
    /// What takes what it cannot route.
    pub alternate_exchange: Option<Sourced<ExchangeName>>,
    /// Other arguments.
    pub arguments: BTreeMap<String, Keyed<ArgumentValue>>,
    /// What to do on a conflict.
    pub on_conflict: Option<OnConflict>,
    /// Where its arguments are said.
    pub places: Places,
}

/// A queue or stream.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    /// Where its name stands.
    pub at: Location,
    /// Somebody else's.
    pub is_external: bool,
    /// Its type; `None` on an external one.
    pub queue_type: Option<Setting<QueueType>>,
    /// Whether it survives a restart; it does when this is `None`.
    pub durable: Option<Setting<bool>>,
    /// Whether it goes with its last consumer; it does not when this is `None`.
    pub auto_delete: Option<Setting<bool>>,
    /// Arguments by their names on the wire, without `x-queue-type` and `x-dead-letter-…` but for the strategy.
    pub arguments: BTreeMap<String, Setting<ArgumentValue>>,
    /// Where its dead letters go; `None` when nobody says.
    pub dead_letter: Option<Setting<DeadLetter>>,
    /// How failed messages are tried again; `None` when nobody says, or `none`.
    pub retry: Option<RetrySpec>,
    /// What to do on a conflict.
    pub on_conflict: Option<Setting<OnConflict>>,
    /// Where its arguments are said.
    pub places: Places,
}

/// Where dead letters go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetter {
    /// Nowhere, said on purpose.
    Nowhere,
    /// To an entry of `deadLetterQueues`.
    Queue {
        /// The entry.
        name: QueueName,
        /// How it is wired.
        wiring: Wiring,
    },
    /// To an exchange.
    Exchange {
        /// The exchange; empty is the default one.
        exchange: ExchangeName,
        /// The key that they get; their own without it.
        routing_key: Option<String>,
        /// How it is wired.
        wiring: Wiring,
    },
}

/// How a queue learns where its dead letters go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wiring {
    /// By its own arguments.
    #[default]
    Arguments,
    /// By a policy of its own.
    Policy,
}

/// A dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetterQueueSpec {
    /// The queue.
    pub queue: QueueSpec,
    /// The name of its exchange, if one is said.
    pub exchange_name: Option<Sourced<ExchangeName>>,
    /// The type of its exchange, `fanout` unless said.
    pub exchange_type: Sourced<String>,
    /// Whether its exchange is internal.
    pub exchange_internal: bool,
    /// The key of the binding, which the dead letters get, if one is said.
    pub routing_key: Option<String>,
}

/// Where a binding is written.
#[derive(Clone, Debug)]
pub struct BindingSpec {
    /// The binding.
    pub at: Location,
    /// The name of its source.
    pub source_at: Location,
    /// The name of its destination.
    pub destination_at: Location,
    /// Its routing key; the binding where it says none.
    pub key_at: Location,
    /// The values of its arguments.
    pub arguments: BTreeMap<String, Location>,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// Where its name stands.
    pub at: Location,
    /// What it matches.
    pub pattern: Sourced<String>,
    /// What it is for.
    pub apply_to: Sourced<ApplyTo>,
    /// Which of several applies.
    pub priority: Priority,
    /// What it sets, by RabbitMQ's keys.
    pub definition: BTreeMap<String, Keyed<ArgumentValue>>,
}

impl QueueSpec {
    /// The name of an external queue, about which nothing is known.
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
    /// How it is wired; nothing is, for [`DeadLetter::Nowhere`].
    pub fn wiring(&self) -> Option<Wiring> {
        match self {
            Self::Nowhere => None,
            Self::Queue { wiring, .. } | Self::Exchange { wiring, .. } => Some(*wiring),
        }
    }
}
