//! Compares two topologies and returns *what* differs, never what to do about it. Pure, total, and without a broker.
//!
//! `plan` decides if a difference matters, can be changed in place, or would be refused.

mod change;
mod compare;

pub use change::merged;
pub use change::{Change, DeleteReason, Field, FieldChange};
pub use compare::{binding_reason, diff, fields};
