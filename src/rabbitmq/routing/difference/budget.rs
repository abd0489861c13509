//! Limits the number of steps in a comparison, whose worst case is exponential.

use std::cell::Cell;

/// The error for a comparison with too many cases, or with a header value that topo cannot compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooComplex;

/// The remaining steps in a comparison. A step is a state of a search, or a few bindings to compare.
pub(super) struct Budget {
    total: Cell<u64>,
    of_cause: Cell<u64>,
}

impl Budget {
    /// The maximum number of steps in a comparison. Comparing 10,000 changed bindings takes about 200,000 steps.
    const MAX_STEPS: u64 = 1_000_000;
    /// The maximum number of steps for one cause, so that a single cause does not exhaust the entire budget.
    const MAX_STEPS_PER_CAUSE: u64 = 100_000;

    pub(super) fn new() -> Self {
        Self { total: Cell::new(Self::MAX_STEPS), of_cause: Cell::new(Self::MAX_STEPS_PER_CAUSE) }
    }

    /// Starts the comparison of the next cause.
    pub(super) fn start_cause(&self) {
        self.of_cause.set(Self::MAX_STEPS_PER_CAUSE);
    }

    /// Takes steps from the budget.
    ///
    /// # Errors
    /// The budget is exhausted.
    pub(super) fn take(&self, steps: usize) -> Result<(), TooComplex> {
        for left in [&self.total, &self.of_cause] {
            left.set(left.get().saturating_sub(steps as u64));
        }
        if self.total.get() == 0 || self.of_cause.get() == 0 { Err(TooComplex) } else { Ok(()) }
    }
}
