//! Observes and repairs a running topology: alerts, status and dead-letter queues.
//!
//! Unlike `apply`, this module does not change the objects in a spec. It reads counts, and it reads, moves and deletes
//! messages.

pub mod alerts;
pub mod counts;
pub mod dlq;
pub mod status;
