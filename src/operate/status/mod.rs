//! Determines the status of queues: depths, growth, ages, consumers, crossed thresholds, drift, locks and interrupted
//! migrations. This module only reads from the broker, and it reads no messages.

mod document;
mod evaluate;
mod history;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod watched;

pub use document::{
    ClusterStatus, Drift, FORMAT_VERSION, InterruptedStatus, LockStatus, Problem, QueueStatus, RetryStatus, State,
    Status, Threshold, TierStatus, Unknown, VhostStatus,
};
pub use history::VhostReading;
pub use read::{StatusRequest, status};
pub use schema::schema;
pub use watched::{Subject, Watched};
