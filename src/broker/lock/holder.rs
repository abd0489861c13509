//! The holder of a lock.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The holder of a lock. Its description is, for example, `me@host, pid 4711, since 2026-11-20T12:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub(super) description: String,
    /// A random string that distinguishes holders with the same description.
    pub(super) token: String,
}

impl Holder {
    /// Creates a holder with `description` and a random token.
    pub fn new(description: impl Into<String>) -> Self {
        // The keys of this hasher are the standard library's only source of randomness.
        let random = || RandomState::new().build_hasher().finish();
        Self { description: description.into(), token: format!("{:016x}{:016x}", random(), random()) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}
