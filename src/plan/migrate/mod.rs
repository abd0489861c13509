//! Recreating a queue that holds messages, and losing none: what is made beside it, and what is left to do.
//!
//! The idea: a fanout exchange, the *tap*, is put between the sources and the queue, with an alternate exchange that leads
//! to a holding queue. While the tap is bound to the queue, messages reach it; unbind that one binding, and they are held.
//! One unbind, or one bind, is an atomic switch for every message. What the old queue holds is moved into a second holding
//! queue, so that old messages stay before new ones however fast those come; then the queue is exchanged for the new one,
//! and both come back, the old ones first.
//!
//! ```text
//! sources ─▶ tap ─(bound)──▶ queue ──▶ consumers
//!             └─(alternate)─▶ hold ─▶ queue `hold`           queue ─▶ transport ─▶ drained ─▶ queue `drained`
//! ```
//!
//! Nothing is remembered but on the broker: [`Migration::remaining`] reads off what is live what is left to do, for the
//! plan that is shown, for each step that is done, and for the run that goes on after one that was killed.

mod conflicting_policy;
mod exchange_constraints;
mod hazards;
mod interrupted;
mod names;
mod next_actions;
mod original_state;
#[cfg(test)]
mod tests;
mod unexpected;

pub(super) use hazards::hazards;
pub use interrupted::left_behind;
pub(super) use interrupted::{abort, finish, is_any_interrupted, is_interrupted, keep_planned};
pub(super) use names::{MigrationBlocker, migration};
pub use next_actions::NextAction;
pub use original_state::before_migrations;
pub(super) use original_state::take_away;
pub use unexpected::Unexpected;

use crate::diff::fields;
use crate::model::naming::MigrationNames;
use crate::model::{ArgumentValue, Arguments, Object, Policy, Queue, QueueName};
use crate::plan::verdict::{Verdict, verdict};
use crate::rabbitmq::{BrokerProfile, as_stored};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The argument of all that a migration makes: the name of the queue.
const MIGRATES: &str = "x-topo-migrates";
/// The argument of the first holding queue: the old queue, as JSON.
const BEFORE: &str = "x-topo-before";

/// All that is decided about the migration of one queue before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// The queue.
    pub queue: QueueName,
    /// What it shall be.
    pub desired: Queue,
    /// What is done about the old queue.
    pub goal: Goal,
    /// The queues that hold its messages for the while.
    pub holding: Queue,
    /// The policy that keeps others off the holding queues, where some would govern them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shield: Option<Policy>,
}

/// What a migration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Goal {
    /// The queue becomes what is desired.
    Recreate,
    /// All goes back into the queue as it is: `--abort`, and the way back of a migration that cannot be finished.
    PutBack,
}

/// Where a migration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// What holds messages is made; nothing is changed for anybody.
    Prepare,
    /// The bindings are moved from the queue to the tap; messages still reach the queue.
    Tap,
    /// New messages are held, and the queue is emptied.
    Drain,
    /// The old queue is proven empty and deleted, and the new one declared.
    Swap,
    /// What was held comes back, then the bindings.
    Return,
    /// What was made for it is deleted; the first holding queue last, because it says that something is unfinished.
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
    /// The names of what is made beside the queue.
    pub fn names(&self) -> MigrationNames {
        MigrationNames::of(&self.queue)
    }

    /// Whether the broker would take a live queue of that name for the desired one.
    pub fn is_desired(&self, live: &Queue, profile: &BrokerProfile) -> bool {
        let object = |queue: &Queue| Object::Queue(self.queue.clone(), queue.clone());
        let (live, desired) = (object(live), object(as_stored(&self.desired, profile).as_ref()));
        fields(&live, &desired)
            .iter()
            .all(|field| matches!(verdict(field, &live, &desired, profile), Verdict::Equal | Verdict::Unknown))
    }

    /// The same, with another goal.
    pub fn put_back(&self) -> Self {
        Self { goal: Goal::PutBack, ..self.clone() }
    }
}

/// The queue that something was made for by a migration, if it was.
fn migrated(arguments: &Arguments) -> Option<QueueName> {
    arguments.get(MIGRATES).and_then(ArgumentValue::as_text).map(QueueName::from)
}
