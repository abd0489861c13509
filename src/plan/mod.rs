//! Turns changes and the broker's activity into ordered steps, hazards and blockers. All functions are pure.
//!
//! [`diff`](crate::diff) determines the differences, and [`verdict`](verdict::verdict) predicts the broker's response
//! to each difference. A plan contains the steps, the hazards and the blockers. topo shows, saves and executes the same
//! plan value.

pub mod action;
pub mod activity;
mod advice;
mod auto_delete;
mod backup_scope;
mod changes_by_kind;
mod client_groups;
mod clients;
pub mod cluster;
mod compare_dead_letters;
mod compare_routing;
mod conflict;
mod context;
mod deletions;
pub mod document;
mod effects;
mod externals;
pub mod fingerprint;
pub mod gate;
pub mod hazard;
mod keeps;
mod link_request;
mod links;
mod lockout;
pub mod migrate;
mod old_bindings;
mod optional_activity;
mod order;
mod part;
mod permissions;
mod planner;
mod records;
mod recreate;
pub mod request;
pub mod resolution;
mod retries;
pub mod rights;
mod routing_changes;
pub mod schema;
mod simulate;
pub(crate) mod spec_keys;
mod super_streams;
mod target;
mod topic_permissions;
mod transient;
mod user_request;
mod users;
pub mod verdict;
mod wiring;

pub use action::{Action, Guard, Level};
pub use activity::{
    Activity, DefaultExchangePublishes, Enabled, QueueActivity, QueueClient, RecordFacts, ShovelEnd, Shovels,
    TopicPermissions, Transports, UnqueriedQueues,
};
pub use client_groups::{ClientGroup, client_groups};
pub use cluster::{ClusterFacts, plan_cluster};
pub use context::PlanContext;
pub use document::{
    Block, ChangeKind, ClusterPlan, Conflict, Desired, FieldVerdict, Info, InterruptedMigration, KeptBindings, Options,
    Plan, PlannedChange, Source, Step, Summary, Target, Unmanaged, VhostPlan,
};
pub use gate::{Allowance, Allowances, ApprovedPlan, Blockers, allowances_without_effect, blockers_of, gate};
pub use hazard::{Hazard, HazardKind};
pub use links::needs_plugins;
pub use migrate::{
    Goal, Migration, NextAction, Stage, Unexpected, before_migrations, interrupted_migrations, interrupted_queues,
};
pub use optional_activity::{deleted_queues, deletes_queues, limits_connections, queues_with_stale_counts};
pub use permissions::changes_permissions;
pub use planner::{assemble, moves_messages, needs_activity, plan_vhost};
pub use request::{Method, Request, request};
pub use resolution::{Applicability, FieldAdvice, Resolution, ResolutionKind};
pub use rights::{Permission, User};
pub use routing_changes::{
    CauseKind, DeadLetterChange, NotCompared, RoutedMessage, RoutingCause, RoutingChange, RoutingChanges,
};
pub use simulate::topology_after;
pub use topic_permissions::deletes_exchanges;
pub use users::{affected_users, changes_users};
pub use verdict::Verdict;
