//! Turns changes, and what the broker was doing when it was read, into ordered steps with their hazards. Pure.
//!
//! [`diff`](crate::diff) says what differs. Here the table of known arguments says what the broker would answer, and a
//! plan says how to get there, what that costs, and what stands against it. The same value is shown, saved and sent.

pub mod action;
pub mod activity;
mod advice;
mod auto_delete;
mod conflict;
mod counted_late;
mod deletions;
pub mod document;
mod draft;
mod effects;
mod externals;
pub mod fingerprint;
pub mod gate;
pub mod hazard;
mod keeps;
pub mod migrate;
mod old_bindings;
mod order;
mod planner;
mod recreate;
pub mod request;
mod retries;
pub mod rights;
pub mod schema;
mod shovels;
mod simulate;
mod sinks;
mod situation;
mod target;
mod topic_permissions;
mod touched;
pub mod verdict;
pub mod way_out;
mod wiring;
mod work;

pub use action::{Action, Guard, Level};
pub use activity::{Activity, Movers, QueueActivity, ShovelEnd, Shovels, TopicPermissions};
pub use counted_late::counted_late;
pub use document::{
    Block, ChangeKind, Conflict, FieldVerdict, KeptBindings, Note, Options, Plan, PlannedChange, Source, Step, Summary,
    Target, Undeclared, VhostPlan, Wanted,
};
pub use gate::{Allowance, Allowances, ApprovedPlan, Obstacles, allowances_without_effect, gate, obstacles};
pub use hazard::{Hazard, HazardKind};
pub use migrate::{Goal, Migration, Stage, Todo, Unexpected, before_migrations, left_behind};
pub use planner::{moves_messages, needs_activity, plan_vhost, seal};
pub use request::{Method, Request, request};
pub use rights::{Permission, User};
pub use shovels::deletes_queues;
pub use situation::Situation;
pub use topic_permissions::deletes_exchanges;
pub use verdict::Verdict;
pub use way_out::{FieldAdvice, Helps, WayKind, WayOut};
