//! Bounds the memory that the arguments of one document take when it is decoded, in proportion to its text.
//!
//! Most of a document is as large in memory as it is written. Arguments are not: `{"":1}` has 6 bytes, and takes 700.

use super::ArgumentValue;
use serde::de;
use std::cell::Cell;

/// Bytes of a table with few entries: a node of a B-tree has room for eleven.
const TABLE: usize = 11 * (size_of::<String>() + size_of::<ArgumentValue>()) + 24;
/// Bytes of one more entry of a table.
pub(super) const ENTRY: usize = 2 * size_of::<String>();
/// The bytes that arguments may take for each byte of the text. The lists of real brokers take up to 8.
const FACTOR: usize = 16;
/// The bytes that they may take beside that.
const BASE: usize = 64 << 20;

thread_local! {
    /// The bytes that are left, and the bound that they are left of.
    static BUDGET: Cell<(usize, usize)> = const { Cell::new((usize::MAX, usize::MAX)) };
}

/// Decodes a document of that many bytes: fails when its arguments take more memory than is in proportion.
pub fn bounded<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    let bound = bytes.saturating_mul(FACTOR).saturating_add(BASE);
    let outer = BUDGET.replace((bound, bound));
    let decoded = decode();
    BUDGET.set(outer);
    decoded
}

/// Counts a table.
pub(crate) fn take_table<E: de::Error>() -> Result<(), E> {
    take(TABLE)
}

/// Counts bytes that a value takes.
pub(super) fn take<E: de::Error>(bytes: usize) -> Result<(), E> {
    let (left, bound) = BUDGET.get();
    let Some(left) = left.checked_sub(bytes) else {
        return Err(E::custom(format_args!("its arguments take more than {} MiB of memory", bound >> 20)));
    };
    BUDGET.set((left, bound));
    Ok(())
}
