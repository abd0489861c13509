//! Turns changes, and what the broker was doing when it was read, into ordered steps with their hazards. Pure.

pub mod action;
pub mod activity;

pub use action::{Action, Guard};
pub use activity::{Activity, QueueActivity};
