//! Defines the spec of one vhost or of the cluster, with positions. Documents and files have been merged and defaults
//! have been applied, but short forms have not been expanded.

use super::lint_keys::Level;
use super::node::{Keyed, Location, Sourced};
use super::notation::{Allow, Notation};
use super::thresholds::ThresholdsSpec;
use crate::model::naming::dead_letter_exchange;
use crate::model::requirements::Requirements;
use crate::model::retry::backoff_delays;
use crate::model::{
    ApplyTo, ArgumentValue, Binding, ExchangeName, Glob, ObjectId, OnConflict, Places, PolicyName, Priority, QueueName,
    QueueType, Record, RecordId, RecordKind, Strategy, Thresholds, UserScope, VhostName,
};
use std::collections::{BTreeMap, BTreeSet};

/// The spec of one vhost or of the cluster. The cluster spec declares only records.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The names of all files in the run, by [`Location::file`].
    pub files: Vec<String>,
    /// The vhost name, with its position in the first document; [`VhostName::cluster`] for the cluster.
    pub vhost: Sourced<VhostName>,
    /// The name that the cluster must have; `None` for a vhost, or if the spec does not set a name.
    pub cluster_name: Option<Sourced<String>>,
    /// The version, plugins and feature flags that the cluster must have.
    pub requires: Requirements,
    /// The description of the vhost.
    pub description: Option<Sourced<String>>,
    /// The tags of the vhost; `None` if no document sets them.
    pub tags: Option<BTreeSet<String>>,
    /// The type of queues that are declared without a type.
    pub default_queue_type: Option<Sourced<QueueType>>,
    /// Globs for the names of objects that the spec manages.
    pub owns: Vec<Sourced<Glob>>,
    /// Globs for the names of objects that topo never deletes or recreates.
    pub protect: Vec<Sourced<Glob>>,
    /// Globs for the names of objects that topo ignores.
    pub ignore: Vec<Sourced<Glob>>,
    /// The globs and declarations in the cluster spec that concern users. In the cluster spec itself, contains only the
    /// users with permissions.
    pub users: UserScope,
    /// The objects to delete.
    pub removed: Vec<Sourced<ObjectId>>,
    /// Retry policies, by name.
    pub retry_policies: BTreeMap<String, RetryPolicySpec>,
    /// The references to retry policies, in queues and defaults.
    pub retry_uses: Vec<Sourced<String>>,
    /// Exchanges, including external exchanges, but without the exchanges of dead-letter queues.
    pub exchanges: BTreeMap<ExchangeName, ExchangeSpec>,
    /// Queues, including external queues, but without dead-letter queues.
    pub queues: BTreeMap<QueueName, QueueSpec>,
    /// Dead-letter queues, including external queues.
    pub dead_letter_queues: BTreeMap<QueueName, DeadLetterQueueSpec>,
    /// All bindings except the generated bindings between dead-letter queues and their own exchanges.
    pub bindings: BTreeMap<Binding, BindingSpec>,
    /// Policies.
    pub policies: BTreeMap<PolicyName, PolicySpec>,
    /// The streams in each super stream, by exchange. The objects themselves are in [`Self::exchanges`],
    /// [`Self::queues`] and [`Self::bindings`].
    pub super_streams: BTreeMap<ExchangeName, BTreeSet<QueueName>>,
    /// Records.
    pub records: BTreeMap<RecordId, RecordSpec>,
    /// The record kinds that have a section, each with its declared names. A section can be empty.
    pub sections: BTreeMap<RecordKind, BTreeSet<String>>,
    /// The levels of lint rules, by rule.
    pub lint: BTreeMap<String, Sourced<Level>>,
    /// The findings that comments allow.
    pub allows: Vec<Allow>,
    /// The notation that lint rules check.
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
    /// An entry in `retryPolicies`.
    RetryPolicy,
    /// The document's `defaults`.
    Defaults,
    /// The vhost's `defaultQueueType`.
    Vhost,
}

/// An exchange.
#[derive(Clone, Debug)]
pub struct ExchangeSpec {
    /// The position of the exchange name.
    pub at: Location,
    /// True if the exchange is external.
    pub is_external: bool,
    /// True if an external exchange may be missing.
    pub is_optional: bool,
    /// The type; empty on an external exchange.
    pub kind: Sourced<String>,
    /// True if the exchange is durable.
    pub durable: bool,
    /// True if the broker deletes the exchange when its last binding is deleted.
    pub auto_delete: bool,
    /// True if clients cannot publish to the exchange. Other exchanges can route to it, and queues can dead-letter to
    /// it.
    pub internal: bool,
    /// The alternate exchange.
    pub alternate_exchange: Option<Sourced<ExchangeName>>,
    /// The arguments except `alternate-exchange`.
    pub arguments: BTreeMap<String, Keyed<ArgumentValue>>,
    /// How topo resolves conflicts.
    pub on_conflict: Option<OnConflict>,
    /// The places that set the arguments.
    pub places: Places,
}

/// A queue or stream.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    /// The position of the queue name.
    pub at: Location,
    /// True if the queue is external.
    pub is_external: bool,
    /// The type; `None` on an external queue.
    pub queue_type: Option<Setting<QueueType>>,
    /// Whether the queue is durable; `None` means durable.
    pub durable: Option<Setting<bool>>,
    /// Whether the broker deletes the queue when its last consumer is canceled; `None` means false.
    pub auto_delete: Option<Setting<bool>>,
    /// Arguments by RabbitMQ's names, without the queue type, the dead-letter exchange and the dead-letter routing key.
    pub arguments: BTreeMap<String, Setting<ArgumentValue>>,
    /// The dead-letter target; `None` if it is not set.
    pub dead_letter: Option<Setting<DeadLetter>>,
    /// The retries; `None` if no retries are set, or if they are set to `none`.
    pub retry: Option<RetrySpec>,
    /// How topo resolves conflicts.
    pub on_conflict: Option<Setting<OnConflict>>,
    /// The thresholds, with the defaults from the document.
    pub thresholds: ThresholdsSpec,
    /// The places that set the arguments.
    pub places: Places,
}

/// A dead-letter target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetter {
    /// No dead-letter target, set explicitly with `none`.
    Nowhere,
    /// An entry in `deadLetterQueues`.
    Queue {
        /// The name of the entry.
        name: QueueName,
        /// The wiring.
        wiring: Wiring,
    },
    /// An exchange.
    Exchange {
        /// The exchange; empty for the default exchange.
        exchange: ExchangeName,
        /// The routing key of dead-lettered messages; `None` if messages keep their own routing key.
        routing_key: Option<String>,
        /// The wiring.
        wiring: Wiring,
    },
}

/// How topo sets the dead-letter target of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wiring {
    /// With queue arguments.
    #[default]
    Arguments,
    /// With a policy for this queue.
    Policy,
}

/// A dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetterQueueSpec {
    /// The queue.
    pub queue: QueueSpec,
    /// The name of the queue's exchange, if it is set.
    pub exchange_name: Option<Sourced<ExchangeName>>,
    /// The type of the queue's exchange; `fanout` by default.
    pub exchange_type: Sourced<String>,
    /// True if the queue's exchange is internal.
    pub exchange_internal: bool,
    /// The routing key of the binding and of dead-lettered messages, if it is set.
    pub routing_key: Option<String>,
    /// True if the queue is a stand-in, and the spec declares the exchange. topo then generates neither the exchange
    /// nor the binding.
    pub is_exchange_declared: bool,
}

impl DeadLetterQueueSpec {
    /// Returns the name of the queue's exchange. `name` is the name of the queue.
    pub fn exchange(&self, name: &QueueName) -> ExchangeName {
        self.exchange_name.as_ref().map_or_else(|| dead_letter_exchange(name), |it| it.value.clone())
    }
}

/// The positions of a binding.
#[derive(Clone, Debug)]
pub struct BindingSpec {
    /// The position of the binding.
    pub at: Location,
    /// The position of the source name.
    pub source_at: Location,
    /// The position of the destination name.
    pub destination_at: Location,
    /// The position of the routing key, or of the source name if there is no routing key.
    pub key_at: Location,
    /// The positions of the argument values, by argument name.
    pub arguments: BTreeMap<String, Location>,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// The position of the policy name.
    pub at: Location,
    /// The pattern.
    pub pattern: Sourced<String>,
    /// The kinds of objects that the policy applies to.
    pub apply_to: Sourced<ApplyTo>,
    /// The priority.
    pub priority: Priority,
    /// The definition, by RabbitMQ's keys.
    pub definition: BTreeMap<String, Keyed<ArgumentValue>>,
}

/// A record.
#[derive(Clone, Debug)]
pub struct RecordSpec {
    /// The position of the record's name, or of its setting if each setting is a record.
    pub at: Location,
    /// The record.
    pub record: Record,
    /// The positions of the fields, and of the keys of a definition, by RabbitMQ's names.
    pub places: BTreeMap<String, Location>,
}

impl Spec {
    /// Returns the effective thresholds of every queue and dead-letter queue.
    pub fn thresholds(&self) -> BTreeMap<QueueName, Thresholds> {
        let queues = self.queues.iter().map(|(name, queue)| (name, queue, Thresholds::default()));
        let dead_letter_queues = self.dead_letter_queues.iter();
        let dead_letter_queues = dead_letter_queues.map(|(name, it)| (name, &it.queue, Thresholds::DEAD_LETTER_QUEUE));
        let all = queues.chain(dead_letter_queues);
        all.map(|(name, queue, built_in)| (name.clone(), queue.thresholds.effective(built_in))).collect()
    }
}

impl QueueSpec {
    /// Creates the spec of an external queue without any settings.
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
            thresholds: ThresholdsSpec::default(),
            places: Places::new(),
        }
    }
}

impl DeadLetter {
    /// Returns the wiring. Returns `None` for [`DeadLetter::Nowhere`].
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
    /// The number of retries after the first attempt. If the spec does not set it, it is the number of delays.
    pub max_retries: Setting<u32>,
    /// The strategy, if it is set.
    pub strategy: Option<Setting<Strategy>>,
    /// The delays, if there are any.
    pub schedule: Option<Setting<Schedule>>,
    /// The maximum time by which a worker may shorten a delay, in milliseconds.
    pub jitter: Option<Setting<i64>>,
    /// The nearest entry in `retryPolicies` that the queue uses, if there is one.
    pub policy: Option<Setting<String>>,
}

/// The delays of retries.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// The delays in milliseconds. The last delay repeats.
    Delays(Vec<i64>),
    /// Computed delays.
    Backoff {
        /// The first delay, in milliseconds.
        initial: i64,
        /// The factor by which each delay is multiplied to get the next.
        factor: f64,
        /// The longest delay, in milliseconds.
        max: Option<i64>,
    },
}

/// An entry in `retryPolicies`.
#[derive(Clone, Debug)]
pub struct RetryPolicySpec {
    /// The position of the entry's name.
    pub at: Location,
    /// The retry keys.
    pub(crate) keys: RetryKeys,
}

impl RetryPolicySpec {
    /// Returns true if this entry sets the value at a position.
    pub fn sets_value_at(&self, at: Location) -> bool {
        fn position<T>(setting: &Option<Setting<T>>) -> Option<Location> {
            setting.as_ref().map(|it| it.at)
        }
        let RetryKeys { max_retries, strategy, schedule, jitter, .. } = &self.keys;
        [position(max_retries), position(strategy), position(schedule), position(jitter)].contains(&Some(at))
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
    /// The positions of the `retry` and `maxRetries` keys; empty for an entry in `retryPolicies`.
    pub(super) at: Vec<Location>,
    /// True if a key is invalid, so that the retries are unknown.
    pub(super) is_invalid: bool,
}

impl Schedule {
    /// Returns the first `count` delays, in milliseconds.
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
    /// Returns the position of the strategy. If no strategy is set, returns the position of the delays. If no delays
    /// are set either, returns the position of the number of retries.
    pub fn at(&self) -> Location {
        let strategy = self.strategy.as_ref().map(|it| it.at);
        strategy.or(self.schedule.as_ref().map(|it| it.at)).unwrap_or(self.max_retries.at)
    }

    /// Returns the delay of each retry in milliseconds. Returns an empty list if no delays are set.
    pub fn delays(&self) -> Vec<i64> {
        self.schedule.as_ref().map_or_else(Vec::new, |schedule| schedule.value.delays(self.max_retries.value))
    }
}
