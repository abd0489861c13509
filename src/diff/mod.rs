//! Compares two topologies and says *what* differs, never what to do about it. Pure, total, and without a broker.
//!
//! Whether a difference matters, can be changed in place or would be refused is the plan's to say.

mod change;
mod compare;
mod merged;

pub use change::{Change, DeleteReason, Field, FieldChange};
pub use compare::{binding_reason, diff, fields};
pub use merged::merged;
