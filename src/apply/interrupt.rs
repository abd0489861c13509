//! The wish to stop, from a signal to the executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once by Ctrl-C; looked at before each step.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks to stop after what is under way.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
