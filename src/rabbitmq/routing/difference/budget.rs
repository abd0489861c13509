//! Limits the work of a comparison, whose worst case is exponential.

use std::cell::Cell;

/// A comparison has too many cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooComplex;

/// The steps that a comparison may still take. A step is a state of a search, or a few bindings to compare.
pub(super) struct Budget {
    all: Cell<u64>,
    of_cause: Cell<u64>,
}

impl Budget {
    /// The maximum number of steps of a comparison. A comparison of 10,000 changed bindings takes about 200,000.
    const MAX_STEPS: u64 = 1_000_000;
    /// The maximum number of steps of a cause, so that one cause does not use up the budget of all.
    const MAX_STEPS_OF_CAUSE: u64 = 100_000;

    pub(super) fn new() -> Self {
        Self { all: Cell::new(Self::MAX_STEPS), of_cause: Cell::new(Self::MAX_STEPS_OF_CAUSE) }
    }

    /// Starts the comparison of the next cause.
    pub(super) fn start_cause(&self) {
        self.of_cause.set(Self::MAX_STEPS_OF_CAUSE);
    }

    /// Takes steps.
    ///
    /// # Errors
    /// The budget is used up.
    pub(super) fn take(&self, steps: usize) -> Result<(), TooComplex> {
        for left in [&self.all, &self.of_cause] {
            left.set(left.get().saturating_sub(steps as u64));
        }
        if self.all.get() == 0 || self.of_cause.get() == 0 { Err(TooComplex) } else { Ok(()) }
    }
}
