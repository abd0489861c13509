//! Limits the work of a comparison, whose worst case is exponential.

use std::cell::Cell;

/// A comparison has too many cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooComplex;

/// The steps that a comparison may still take. A step is a state of a search, or a few bindings to compare.
pub(super) struct Budget(Cell<u64>);

impl Budget {
    /// The maximum number of steps of a comparison. A comparison of 10,000 changed bindings takes about 200,000.
    const MAX_STEPS: u64 = 1_000_000;

    pub(super) fn new() -> Self {
        Self(Cell::new(Self::MAX_STEPS))
    }

    /// Takes steps.
    ///
    /// # Errors
    /// The budget is used up.
    pub(super) fn take(&self, steps: usize) -> Result<(), TooComplex> {
        let left = self.0.get().saturating_sub(steps as u64);
        self.0.set(left);
        if left == 0 { Err(TooComplex) } else { Ok(()) }
    }
}
