//! Ranges of broker versions.

use crate::model::BrokerVersion;
use std::fmt;

/// A range of versions; the upper bound is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first version.
    pub since: BrokerVersion,
    /// The first version after the range, if there is one.
    pub until: Option<BrokerVersion>,
}

/// The first version that topo supports. topo knows nothing about earlier ones.
const FIRST: BrokerVersion = BrokerVersion::new(3, 8, 0);

impl Versions {
    /// All versions that topo supports.
    pub const ALL: Self = Self { since: FIRST, until: None };

    /// Returns the versions from the first patch of a minor version on.
    pub const fn since(major: u16, minor: u16) -> Self {
        Self::since_patch(major, minor, 0)
    }

    /// Returns the versions from a patch version on.
    pub const fn since_patch(major: u16, minor: u16, patch: u16) -> Self {
        Self { since: BrokerVersion::new(major, minor, patch), until: None }
    }

    /// Returns the part of the range before a minor version.
    pub const fn until(self, major: u16, minor: u16) -> Self {
        self.until_patch(major, minor, 0)
    }

    /// Returns the part of the range before a patch version.
    pub const fn until_patch(self, major: u16, minor: u16, patch: u16) -> Self {
        Self { since: self.since, until: Some(BrokerVersion::new(major, minor, patch)) }
    }

    /// Returns the first version in its short form: `3.10`, `3.8.10`.
    pub fn first(self) -> String {
        short(self.since)
    }

    /// Returns true if the range contains a version.
    pub fn contains(self, version: BrokerVersion) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

fn short(version: BrokerVersion) -> String {
    match version {
        BrokerVersion { major, minor, patch: 0 } => format!("{major}.{minor}"),
        BrokerVersion { major, minor, patch } => format!("{major}.{minor}.{patch}"),
    }
}

/// `all`, `3.10 on`, `before 4.3`, `3.12 to before 4.3.2`.
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.since == FIRST, self.until) {
            (true, None) => "all".to_owned(),
            (true, Some(until)) => format!("before {}", short(until)),
            (false, None) => format!("{} on", short(self.since)),
            (false, Some(until)) => format!("{} to before {}", short(self.since), short(until)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bound_is_exclusive() {
        let versions = Versions::since(3, 10).until_patch(4, 3, 2);
        let contains = |text: &str| versions.contains(text.parse().unwrap());
        assert_eq!(["3.9.29", "3.10.0", "4.3.1", "4.3.2"].map(contains), [false, true, true, false]);
        assert_eq!(versions.to_string(), "3.10 to before 4.3.2");
        assert_eq!(Versions::ALL.until(4, 0).to_string(), "before 4.0");
    }
}
