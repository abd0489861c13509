//! Bounds the memory that nested arguments of one document take when it is decoded, in proportion to its text.
//!
//! Most of a document is as large in memory as it is written. Lists and tables in arguments are not: `{"":1}` has 6 bytes, and
//! takes 700. When the bound is reached, the arguments with lists and tables are cut. Plain arguments are always read.

use super::ArgumentValue;
use std::cell::Cell;

/// Bytes of a table with few entries: a node of a B-tree has room for eleven.
pub(super) const TABLE: usize = 11 * (size_of::<String>() + size_of::<ArgumentValue>()) + 24;
/// Bytes of one more entry of a table.
pub(super) const ENTRY: usize = 2 * size_of::<String>();
/// The bytes that nested arguments may take for each byte of the text.
const FACTOR: usize = 2;
/// The bytes that they may take beside that. Real brokers have a few nested arguments, of some hundred bytes.
const BASE: usize = 16 << 20;
/// The most bytes that they may take, however large the document is.
const MOST: usize = 256 << 20;

thread_local! {
    /// The bytes that are left.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Decodes a document of that many bytes, and cuts the arguments that take more memory than is in proportion.
pub fn bounded<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    let outer = BUDGET.replace(bytes.saturating_mul(FACTOR).saturating_add(BASE).min(MOST));
    let decoded = decode();
    BUDGET.set(outer);
    decoded
}

/// Counts bytes that a nested value takes.
pub(super) fn take(bytes: usize) {
    BUDGET.set(BUDGET.get().saturating_sub(bytes));
}

/// Returns whether the bound is reached.
pub(super) fn is_used_up() -> bool {
    BUDGET.get() == 0
}
