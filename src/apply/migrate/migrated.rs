//! The summary of a migration, for the report.

use crate::model::QueueName;
use std::time::Duration;

/// The summary of a migration, completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The queue.
    pub queue: QueueName,
    /// Whether the migration was rolled back.
    pub is_rolled_back: bool,
    /// Whether it is interrupted: the next run resumes it.
    pub is_interrupted: bool,
    /// Why the rollback failed, if one was tried.
    pub rollback_error: Option<String>,
    /// How many messages a transport brought back from the holding queues. `None` where the broker does not count them: a
    /// shovel before 4.2, and one whose messages were rejected.
    pub returned: Option<u64>,
    /// The maximum number of messages of the queue, beyond which it drops the oldest (max-length).
    pub keeps: Option<u64>,
    /// The number of messages that may be duplicated, because a connection was lost.
    pub possible_duplicates: u64,
    /// How many messages were still held when new ones were let through before them: those came as fast as they were moved.
    pub reordered: Option<u64>,
    /// The number of messages behind newer ones, because the rollback began before the old queue was empty.
    pub behind: Option<u64>,
    /// Messages that were moved out of the queue and did not come back: they expired, or a policy took them. Where that can
    /// be told: a shovel is not asked.
    pub missing: Option<Missing>,
    /// Why a shovel moved messages instead of AMQP, where it took over.
    pub fallback: Option<String>,
    /// A policy that came after the plan and takes messages from what held them, in words.
    pub conflicting_policy: Option<String>,
    /// How long the queue did not exist; `None` if it always existed.
    pub gap: Option<Duration>,
    /// The consumers of the queue.
    pub consumers: Option<Consumers>,
}

/// Messages that did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How many.
    pub messages: u64,
    /// The total number that was moved out of the queue.
    pub of: u64,
}

/// Consumers of a queue, where the broker lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// The number before the migration; they were canceled.
    pub before: usize,
    /// The number after the migration.
    pub after: usize,
}

impl Migrated {
    pub(super) fn new(queue: QueueName) -> Self {
        Self {
            queue,
            is_rolled_back: false,
            is_interrupted: false,
            rollback_error: None,
            returned: Some(0),
            keeps: None,
            possible_duplicates: 0,
            reordered: None,
            behind: None,
            missing: None,
            fallback: None,
            conflicting_policy: None,
            gap: None,
            consumers: None,
        }
    }
}
