//! What is worth telling of a migration.

use crate::model::QueueName;
use std::time::Duration;

/// What is worth telling of a migration, done or undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The queue.
    pub queue: QueueName,
    /// Whether all was put back into the old queue.
    pub is_undone: bool,
    /// Whether it is neither done nor undone: the next run goes on.
    pub is_cut_short: bool,
    /// Why it could not be undone, where that was tried.
    pub not_undone: Option<String>,
    /// How many messages a mover brought back from the holding queues. `None` where the broker does not count them: a
    /// shovel before 4.2, and one whose messages were rejected.
    pub returned: Option<u64>,
    /// So many messages the queue keeps at most: it drops the oldest for each one more (max-length).
    pub keeps: Option<u64>,
    /// How many of them may come twice, because a connection was lost.
    pub maybe_twice: u64,
    /// How many messages were still held when new ones were let through before them: those came as fast as they were moved.
    pub overtaken: Option<u64>,
    /// How many messages came back behind newer ones, because it was undone before the old queue was empty.
    pub behind: Option<u64>,
    /// Messages that were moved out of the queue and did not come back: they expired, or a policy took them. Where that can
    /// be told: a shovel is not asked.
    pub missing: Option<Missing>,
    /// Why a shovel moved messages instead of AMQP, where it took over.
    pub fallback: Option<String>,
    /// A policy that came after the plan and takes messages from what held them, in words.
    pub eater: Option<String>,
    /// How long there was no queue of that name; `None` if there always was one.
    pub gap: Option<Duration>,
    /// Who consumed from it.
    pub consumers: Option<Consumers>,
}

/// Messages that did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How many.
    pub messages: u64,
    /// Of so many that were moved out of the queue.
    pub of: u64,
}

/// Consumers of a queue, where the broker lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// Those that were attached before, and cancelled.
    pub before: usize,
    /// Those that are attached afterwards.
    pub after: usize,
}

impl Migrated {
    pub(super) fn new(queue: QueueName) -> Self {
        Self {
            queue,
            is_undone: false,
            is_cut_short: false,
            not_undone: None,
            returned: Some(0),
            keeps: None,
            maybe_twice: 0,
            overtaken: None,
            behind: None,
            missing: None,
            fallback: None,
            eater: None,
            gap: None,
            consumers: None,
        }
    }
}
