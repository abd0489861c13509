//! Defines the spec of one vhost, with positions. Documents and files are merged and defaults are applied, but nothing
//! is expanded.

use super::lint_keys::Level;
use super::node::{Keyed, Location, Sourced};
use super::notation::{Allow, Notation};
use crate::model::retry::backoff_delays;
use crate::model::{
    ApplyTo, ArgumentValue, Binding, ExchangeName, Glob, ObjectId, OnConflict, Places, PolicyName, Priority, QueueName,
    QueueType, Record, RecordId, RecordKind, Strategy, VhostName,
};
use std::collections::{BTreeMap, BTreeSet};

/// The spec of one vhost, or of the cluster, whose spec contains only records.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The names of all files of the run, by [`Location::file`].
    pub files: Vec<String>,
    /// The vhost, with its first position.
    pub vhost: Sourced<VhostName>,
    /// The name that the cluster must have; `None` for a vhost.
    pub cluster_name: Option<Sourced<String>>,
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

/// The retries of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct RetrySpec {
    /// The number of retries after the first attempt. The default is the number of delays.
    pub max_retries: Setting<u32>,
    /// The strategy, if it is set.
    pub strategy: Option<Setting<Strategy>>,
    /// The delays, if there are any.
    pub schedule: Option<Setting<Schedule>>,
    /// The maximum by which a worker can shorten a delay, in milliseconds.
    pub jitter: Option<Setting<i64>>,
    /// The nearest entry of `retryPolicies` that it uses, if there is one.
    pub policy: Option<Setting<String>>,
}

/// The delays of retries.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// The delays in milliseconds; the last one repeats.
    Delays(Vec<i64>),
    /// Computed delays.
    Backoff {
        /// The first delay, in milliseconds.
        initial: i64,
        /// The multiplier from each delay to the next.
        factor: f64,
        /// The longest delay, in milliseconds.
        max: Option<i64>,
    },
}

/// An entry of `retryPolicies`.
#[derive(Clone, Debug)]
pub struct RetryPolicySpec {
    /// The position of its name.
    pub at: Location,
    /// The keys.
    pub(crate) keys: RetryKeys,
}

impl RetryPolicySpec {
    /// Returns true if this entry sets the value at a position.
    pub fn says(&self, at: Location) -> bool {
        fn place<T>(setting: &Option<Setting<T>>) -> Option<Location> {
            setting.as_ref().map(|it| it.at)
        }
        let RetryKeys { max_retries, strategy, schedule, jitter, .. } = &self.keys;
        [place(max_retries), place(strategy), place(schedule), place(jitter)].contains(&Some(at))
    }
}

/// The retry keys of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryKeys {
    pub(super) max_retries: Option<Setting<u32>>,
    pub(super) strategy: Option<Setting<Strategy>>,
    pub(super) schedule: Option<Setting<Schedule>>,
    pub(super) jitter: Option<Setting<i64>>,
    pub(super) policy: Option<Setting<String>>,
    /// True if the source sets `retry: none`.
    pub(super) is_none: bool,
    /// The positions of all retry keys.
    pub(super) at: Vec<Location>,
    /// True if a key is invalid, so that the retries are unknown.
    pub(super) is_wrong: bool,
}

impl Schedule {
    /// Returns the first delays, in milliseconds.
    pub fn delays(&self, count: u32) -> Vec<i64> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match self {
            Self::Delays(delays) => {
                let last = delays.last().copied();
                delays.iter().copied().chain(std::iter::repeat_with(|| last).map_while(|it| it)).take(count).collect()
            }
            Self::Backoff { initial, factor, max } => backoff_delays(*initial, *factor, *max).take(count).collect(),
        }
    }
}

impl RetrySpec {
    /// Returns the position of the strategy or delays, otherwise that of the number of retries.
    pub fn at(&self) -> Location {
        let strategy = self.strategy.as_ref().map(|it| it.at);
        strategy.or(self.schedule.as_ref().map(|it| it.at)).unwrap_or(self.max_retries.at)
    }

    /// Returns the delay of each retry in milliseconds; empty without delays.
    pub fn delays(&self) -> Vec<i64> {
        self.schedule.as_ref().map_or_else(Vec::new, |schedule| schedule.value.delays(self.max_retries.value))
    }
}
