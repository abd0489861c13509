//! The status as a value, which `topo status --format json` prints. The format is stable within a format version.

use crate::model::{Address, QueueName, Severity, VhostName};
use crate::plan::Target;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document format. Adding a field does not change the version. Renaming a field or changing its
/// meaning increments the version.
pub const FORMAT_VERSION: u32 = 1;

/// The state of a queue, a vhost or the whole status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// No problem is known.
    #[default]
    Fine,
    /// The state requires attention.
    Warning,
    /// The state requires immediate attention.
    Critical,
}

impl From<Severity> for State {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}

impl State {
    /// Returns the name in text output and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// The status of one or more vhosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of this format.
    pub format_version: u32,
    /// The broker.
    pub target: Target,
    /// The most severe state among the vhosts. This state determines the exit code.
    pub state: State,
    /// The cluster; null if no spec describes the cluster.
    pub cluster: Option<ClusterStatus>,
    /// The vhosts, in the order of the specs.
    pub vhosts: Vec<VhostStatus>,
}

/// The status of the cluster's objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The difference from the spec; null if it is unknown.
    pub drift: Option<Drift>,
    /// The values that topo could not read.
    pub unknown: Vec<Unknown>,
}

/// The status of one vhost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VhostStatus {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// False if the vhost does not exist.
    pub exists: bool,
    /// The most severe state among the queues and the migrations. A missing vhost counts as `warning`.
    pub state: State,
    /// The dead-letter queues, by name.
    pub dead_letter_queues: Vec<QueueStatus>,
    /// The other queues, by name, except retry tiers and topo's own queues.
    pub queues: Vec<QueueStatus>,
    /// The retry tiers that contain messages, by queue.
    pub retries: Vec<RetryStatus>,
    /// The number of exclusive and server-named queues, which are not listed. Always 0 for a vhost with a spec.
    pub temporary_queues: usize,
    /// The difference from the spec; null if it is unknown or there is no spec.
    pub drift: Option<Drift>,
    /// The lock of the vhost; null if the lock is free or unknown.
    pub lock: Option<LockStatus>,
    /// The migrations that were started but not completed.
    pub interrupted_migrations: Vec<InterruptedStatus>,
    /// The values that topo could not read.
    pub unknown: Vec<Unknown>,
}

/// The status of a queue. A value is null if it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// The name of the queue.
    pub queue: QueueName,
    /// False if the queue does not exist.
    pub exists: bool,
    /// The most severe state among the problems.
    pub state: State,
    /// The number of messages, whether ready or unacknowledged.
    pub messages: Option<u64>,
    /// The number of messages that are ready for delivery.
    pub ready: Option<u64>,
    /// The number of messages that consumers have received but not acknowledged.
    pub unacknowledged: Option<u64>,
    /// The growth over the last 5 minutes; negative if the queue has shrunk.
    pub growth_in_5_minutes: Option<i64>,
    /// The minimum number of seconds for which the queue has contained messages; also null for an empty queue. topo
    /// computes this time from samples. A queue that is empty only between two samples therefore counts as not empty.
    pub not_empty_for_seconds: Option<u64>,
    /// The number of consumers, which is up to one statistics interval old.
    pub consumers: Option<u64>,
    /// The crossed thresholds and the other problems, most severe first.
    pub problems: Vec<Problem>,
    /// The thresholds that topo cannot check, because a value is unknown.
    pub unchecked: Vec<Threshold>,
}

impl QueueStatus {
    /// Creates a status without problems for a queue that does not exist.
    pub(super) fn of(queue: &QueueName) -> Self {
        Self {
            queue: queue.clone(),
            exists: false,
            state: State::Fine,
            messages: None,
            ready: None,
            unacknowledged: None,
            growth_in_5_minutes: None,
            not_empty_for_seconds: None,
            consumers: None,
            problems: Vec::new(),
            unchecked: Vec::new(),
        }
    }
}

/// The kind of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Threshold {
    /// The number of messages.
    Depth,
    /// The growth.
    Growth,
    /// The time for which the queue has contained messages.
    Age,
    /// The time for which a queue without consumers has contained messages.
    NoConsumers,
}

impl Threshold {
    /// Returns the name in text output and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Growth => "growth",
            Self::Age => "age",
            Self::NoConsumers => "noConsumers",
        }
    }
}

/// A problem with a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Problem {
    /// The spec declares the queue, but the queue does not exist.
    Missing {
        /// Always `warning`.
        state: State,
    },
    /// The queue cannot be used, for example because its node is down.
    Unavailable {
        /// Always `critical`.
        state: State,
        /// The broker's name for the queue's state, such as `down`.
        queue_state: String,
        /// The node that hosts the queue, if known.
        node: Option<String>,
    },
    /// The number of messages is at or above the threshold.
    Depth {
        /// The severity of the threshold.
        state: State,
        /// The threshold.
        limit: i64,
    },
    /// The growth is at or above the threshold.
    Growth {
        /// The severity of the threshold.
        state: State,
        /// The threshold: the number of messages.
        limit: i64,
        /// The measured growth.
        growth: i64,
        /// The period of the measurement in seconds. This period is shorter than the period of the threshold if the
        /// broker has no older samples.
        within_seconds: u64,
    },
    /// The queue has contained messages for at least the threshold time.
    Age {
        /// The severity of the threshold.
        state: State,
        /// The threshold in seconds.
        limit_seconds: u64,
    },
    /// The queue has no consumers now, and has contained messages for at least the threshold time. The broker does not
    /// report how long the queue has had no consumers.
    NoConsumers {
        /// Always `warning`.
        state: State,
        /// The threshold in seconds.
        limit_seconds: u64,
    },
}

impl Problem {
    /// Returns the severity.
    pub fn state(&self) -> State {
        match self {
            Self::Missing { state }
            | Self::Unavailable { state, .. }
            | Self::Depth { state, .. }
            | Self::Growth { state, .. }
            | Self::Age { state, .. }
            | Self::NoConsumers { state, .. } => *state,
        }
    }
}

/// The retry tiers of a queue that contain messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryStatus {
    /// The queue to which the messages return.
    pub queue: QueueName,
    /// The number of messages in all tiers.
    pub messages: u64,
    /// The tiers, by retry number.
    pub tiers: Vec<TierStatus>,
}

/// A retry tier that contains messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TierStatus {
    /// The name of the tier queue.
    pub tier: QueueName,
    /// The retry number, starting at 1.
    pub retry: u32,
    /// The delay in milliseconds.
    pub delay_milliseconds: i64,
    /// The number of messages.
    pub messages: u64,
}

/// The difference between the broker and the spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// The number of changes that `topo plan` shows, including conflicts.
    pub changes: usize,
    /// The number of conflicts, which block an apply until they are resolved.
    pub conflicts: usize,
    /// The number of unmanaged objects that `owns` matches.
    pub unmanaged: usize,
}

/// The lock of a vhost, if it is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockStatus {
    /// The description of the holder.
    pub holder: String,
    /// False if the queue that has the lock's name is not a lock, because topo did not create it.
    pub is_lock: bool,
    /// False if the node that hosts the lock is down, in which case the lock does not expire; null if unknown.
    pub node_is_up: Option<bool>,
}

/// A migration that was started but not completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptedStatus {
    /// The address of the queue.
    pub address: Address,
    /// The state of the migration, in one sentence.
    pub text: String,
    /// True if a running apply may complete the migration.
    pub in_progress: bool,
}

/// A value that topo could not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unknown {
    /// The names of the values.
    pub what: String,
    /// The reason.
    pub reason: String,
}
