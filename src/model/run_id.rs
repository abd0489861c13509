//! Creates run identifiers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a new run identifier: eight hexadecimal digits.
pub fn run_id() -> String {
    // The keys of this hasher are the standard library's only source of randomness.
    format!("{:08x}", RandomState::new().build_hasher().finish() as u32)
}
