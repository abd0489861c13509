//! Observes and repairs a running topology: dead-letter queues, states and alerts.
//!
//! Unlike `apply`, this module does not change the objects of a spec. It reads counts, and it reads, moves and deletes
//! messages.

pub mod alerts;
pub mod counts;
pub mod dlq;
pub mod status;
