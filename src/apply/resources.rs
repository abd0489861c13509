//! The resources of an apply, in addition to its plan: the transport for messages, the limits, and the cancellation flag
//! that a signal sets and the executor reads.

use crate::broker::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The resources of an apply, in addition to the plan.
#[derive(Clone, Copy)]
pub struct ApplyResources<'a> {
    /// The maximum number of concurrent requests.
    pub concurrency: usize,
    /// The transport for messages; `None` if the plan needs none.
    pub transport: Option<&'a Transport>,
    /// The time for which a migration may stall before it is rolled back.
    pub drain_timeout: Duration,
}

/// A flag that a signal sets once. The executor checks it before each step.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Requests a stop after the current steps.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true if a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
