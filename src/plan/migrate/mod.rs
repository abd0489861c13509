//! Plans migrations. A migration recreates a queue and keeps its messages.
//!
//! topo puts a fanout exchange, the *tap*, between the source exchanges and the queue. The tap's alternate exchange
//! routes to a holding queue. While the queue is bound to the tap, new messages reach the queue. Without this binding,
//! new messages reach the holding queue. Therefore, one unbind or one bind switches all messages atomically. topo moves
//! the existing messages in the queue to a second holding queue, so that old messages stay ahead of new messages.
//! Finally, topo replaces the queue, and returns the messages of both holding queues, old messages first.
//!
//! ```text
//! sources ─▶ tap ─(bound)──▶ queue ──▶ consumers
//!             └─(alternate)─▶ hold ─▶ queue `hold`           queue ─▶ transport ─▶ drained ─▶ queue `drained`
//! ```
//!
//! The broker stores the whole state: [`Migration::remaining_actions`] derives the remaining actions from the current
//! topology. The plan, each executed step, and a run that resumes a killed run all use this function.

mod blockers;
mod hazards;
mod interrupted;
mod names;
mod next_actions;
#[cfg(test)]
mod tests;

pub(super) use blockers::MigrationBlocker;
pub use blockers::Unexpected;
pub(super) use hazards::add_hazards;
pub(super) use interrupted::{
    abort, has_interrupted_migration, is_interrupted, keep_planned, remove_migration_objects, resume,
};
pub use interrupted::{before_migrations, interrupted_migrations, interrupted_queues};
pub(super) use names::migration;
pub use next_actions::NextAction;

use crate::diff::fields;
use crate::model::naming::MigrationNames;
use crate::model::{ArgumentValue, Arguments, Object, Policy, Queue, QueueName};
use crate::plan::verdict::{Verdict, verdict};
use crate::rabbitmq::{BrokerProfile, with_default_type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The argument that marks the queues and exchanges of a migration. The argument contains the name of the migrated
/// queue.
const MIGRATES: &str = "x-topo-migrates";
/// The argument in which the first holding queue stores the definition of the old queue, as JSON.
const BEFORE: &str = "x-topo-before";

/// The migration of one queue. The current state of the broker determines the remaining actions
/// ([`Migration::remaining_actions`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// The queue.
    pub queue: QueueName,
    /// The desired queue.
    pub desired: Queue,
    /// The goal of the migration.
    pub goal: Goal,
    /// The declaration of the two holding queues. topo separately sets the arguments that mark them.
    pub holding: Queue,
    /// The policy that prevents other policies from removing messages from the holding queues. Absent if no other
    /// policy would remove messages, or if the plan does not drain the queue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shield: Option<Policy>,
}

/// The goal of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Goal {
    /// The desired queue replaces the old queue.
    Recreate,
    /// All messages return to the old queue: for `--abort`, and for the rollback of a migration that cannot be
    /// completed.
    RollBack,
}

/// The stage of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// topo creates the holding queues and the exchanges of the migration; clients are not affected.
    Prepare,
    /// The bindings are moved from the queue to the tap; new messages still reach the queue.
    Tap,
    /// New messages are routed to a holding queue, and the queue is drained.
    Drain,
    /// The old queue is proven empty and deleted, and the new queue is declared.
    Swap,
    /// The messages in the holding queues and the bindings return to the queue.
    Return,
    /// The objects of the migration are deleted. The first holding queue is deleted last, because it marks the
    /// migration as incomplete.
    Clean,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prepare => "prepare",
            Self::Tap => "tap",
            Self::Drain => "drain",
            Self::Swap => "swap",
            Self::Return => "return",
            Self::Clean => "clean",
        })
    }
}

impl Migration {
    /// Returns the names of the objects that the migration creates.
    pub fn names(&self) -> MigrationNames {
        MigrationNames::of(&self.queue)
    }

    /// Returns true if the broker treats `live`, the existing queue, as equivalent to the desired queue.
    pub fn is_desired(&self, live: &Queue, profile: &BrokerProfile) -> bool {
        let object = |queue: &Queue| Object::Queue(self.queue.clone(), queue.clone());
        let (live, desired) = (object(live), object(with_default_type(&self.desired, profile).as_ref()));
        fields(&live, &desired)
            .iter()
            .all(|field| matches!(verdict(field, &live, &desired, profile), Verdict::Equal | Verdict::Unknown))
    }

    /// Returns the rollback of this migration.
    pub fn for_rollback(&self) -> Self {
        Self { goal: Goal::RollBack, ..self.clone() }
    }
}

/// Returns the queue whose migration created an object; `None` if no migration created the object.
fn migrated_queue(arguments: &Arguments) -> Option<QueueName> {
    arguments.get(MIGRATES).and_then(ArgumentValue::as_text).map(QueueName::from)
}
