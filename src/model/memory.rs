//! Limits the memory for nested arguments in proportion to the size of a document.
//!
//! Most values take about as much memory as their text. Lists and mappings in arguments take more: the text `{"":1}` is
//! 6 bytes long, but the decoded value takes 700 bytes. When the limit is reached, topo truncates arguments that
//! contain lists or mappings. It always reads scalar arguments.

use std::cell::Cell;

/// The memory for nested arguments, in bytes per byte of the document.
const FACTOR: usize = 2;
/// The additional memory in bytes, independent of the document. Real brokers have few nested arguments, which take a
/// few hundred bytes.
const BASE: usize = 16 << 20;
/// The maximum memory in bytes, for a document of any size.
const MAX: usize = 256 << 20;

thread_local! {
    /// The remaining memory in bytes; unlimited outside [`decode`].
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs `read`, which decodes a document of `bytes` bytes. While `read` runs, topo truncates the nested arguments that
/// exceed the memory limit for the document.
pub fn decode<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let outer = BUDGET.replace(bytes.saturating_mul(FACTOR).saturating_add(BASE).min(MAX));
    let decoded = read();
    BUDGET.set(outer);
    decoded
}

/// Subtracts the memory of a nested value from the remaining memory.
pub(super) fn consume(bytes: usize) {
    BUDGET.set(BUDGET.get().saturating_sub(bytes));
}

/// Returns true if no memory remains.
pub(super) fn is_used_up() -> bool {
    BUDGET.get() == 0
}
