//! Limits the memory for nested arguments of a document in proportion to its size.
//!
//! Most of a document needs about as much memory as its text. Lists and mappings in arguments need more: `{"":1}` has 6
//! bytes, and needs 700. When the limit is reached, arguments with lists and mappings are cut. Plain arguments are
//! always read.

use std::cell::Cell;

/// The memory for nested arguments in bytes, for each byte of the document.
const FACTOR: usize = 2;
/// The additional memory in bytes, independent of the document. Real brokers have few nested arguments, of some hundred
/// bytes.
const BASE: usize = 16 << 20;
/// The maximum memory in bytes, for a document of any size.
const MOST: usize = 256 << 20;

thread_local! {
    /// The remaining memory in bytes.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Decodes a document of this size, and cuts the nested arguments that exceed the limit.
pub fn bounded<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    let outer = BUDGET.replace(bytes.saturating_mul(FACTOR).saturating_add(BASE).min(MOST));
    let decoded = decode();
    BUDGET.set(outer);
    decoded
}

/// Subtracts the memory of a nested value.
pub(super) fn consume(bytes: usize) {
    BUDGET.set(BUDGET.get().saturating_sub(bytes));
}

/// Returns true if the limit is reached.
pub(super) fn is_used_up() -> bool {
    BUDGET.get() == 0
}
