//! The summary of a migration, for the report.

use crate::model::QueueName;
use std::time::Duration;

/// The summary of a migration, completed or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The queue.
    pub queue: QueueName,
    /// True if the migration was rolled back.
    pub is_rolled_back: bool,
    /// True if the migration is interrupted: the next run resumes it.
    pub is_interrupted: bool,
    /// The reason why the rollback failed, if one was tried.
    pub rollback_error: Option<String>,
    /// The number of messages that a transport returned from the holding queues. `None` if the broker does not count
    /// them: for a shovel before 4.2, and for a shovel whose messages were rejected.
    pub returned: Option<u64>,
    /// The maximum number of messages of a queue that drops the oldest ones beyond it (max-length).
    pub keeps: Option<u64>,
    /// The number of messages that may be duplicated, because a connection was lost.
    pub possible_duplicates: u64,
    /// The number of messages that were still held when new messages overtook them, because those arrived as fast as
    /// topo moved messages.
    pub reordered: Option<u64>,
    /// The number of messages behind newer ones, because the rollback began before the old queue was empty.
    pub behind: Option<u64>,
    /// Messages that were moved out of the queue and did not return, because they expired or a policy removed them.
    /// `None` for a shovel, whose counts are not exact.
    pub missing: Option<Missing>,
    /// The reason why a shovel moved messages instead of AMQP, if it took over.
    pub fallback: Option<String>,
    /// The description of a policy that was created after the plan and removes messages from the holding queues.
    pub conflicting_policy: Option<String>,
    /// The time for which the queue did not exist; `None` if it always existed.
    pub gap: Option<Duration>,
    /// The consumers of the queue.
    pub consumers: Option<Consumers>,
}

/// Messages that did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The number of messages.
    pub messages: u64,
    /// The total number that was moved out of the queue.
    pub of: u64,
}

/// The consumers of a queue, if the broker lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// The number before the migration. The migration canceled them.
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
