//! The version of a broker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A RabbitMQ version: major, minor and patch. Parsing drops suffixes such as `-rc.1` and `+deb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BrokerVersion {
    /// The major version: 3 in 3.8.9.
    pub major: u16,
    /// The minor version: 8 in 3.8.9.
    pub minor: u16,
    /// The patch version: 9 in 3.8.9. If the string contains no patch version, this is the patch version of the newest
    /// known release of the series, or 0 for an unknown series.
    pub patch: u16,
}

/// The newest release of each series for which topo predicts the behavior, based on the release's source code or on a
/// live broker. If a user specifies only a series, topo assumes this release. The patch version matters, because some
/// patch releases changed which arguments the broker accepts.
const NEWEST_OF_SERIES: &[BrokerVersion] = &[
    BrokerVersion::new(3, 8, 35),
    BrokerVersion::new(3, 9, 29),
    BrokerVersion::new(3, 10, 25),
    BrokerVersion::new(3, 11, 28),
    BrokerVersion::new(3, 12, 14),
    BrokerVersion::new(3, 13, 7),
    BrokerVersion::new(4, 0, 9),
    BrokerVersion::new(4, 1, 8),
    BrokerVersion::new(4, 2, 9),
    BrokerVersion::NEWEST_KNOWN,
];

impl BrokerVersion {
    /// The newest version for which the predicted behavior is tested on a live broker. It is the default version of an
    /// offline plan.
    pub const NEWEST_KNOWN: Self = Self::new(4, 3, 6);

    /// The oldest version that topo supports.
    pub const OLDEST_SUPPORTED: Self = Self::new(3, 8, 0);

    /// Creates a version from its three numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the newest known release of a series; `None` if the series is unknown.
    pub fn newest_of(major: u16, minor: u16) -> Option<Self> {
        NEWEST_OF_SERIES.iter().find(|known| (known.major, known.minor) == (major, minor)).copied()
    }

    /// Returns true if the version belongs to this series (`major.minor`) or to a later series.
    pub fn is_at_least(self, major: u16, minor: u16) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Returns true if topo supports the version. topo supports [`Self::OLDEST_SUPPORTED`] and all later versions,
    /// including versions that it does not know.
    pub fn is_supported(self) -> bool {
        self >= Self::OLDEST_SUPPORTED
    }

    /// Returns true if the version is newer than all known series. In that case, topo assumes the behavior of the
    /// newest known version.
    pub fn is_newer_than_known(self) -> bool {
        (self.major, self.minor) > (Self::NEWEST_KNOWN.major, Self::NEWEST_KNOWN.minor)
    }

    /// Returns the major and minor version, for statements about all patch releases: `3.10`.
    pub fn series(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }
}

/// The error for a string that is not a version.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a RabbitMQ version such as 3.10 or 4.0.5")]
pub struct NotAVersion(String);

impl FromStr for BrokerVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let error = || NotAVersion(text.to_owned());
        let numbers = text.split(['-', '+', '~']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(|part| part.parse::<u16>().map_err(|_| error()));
        let major = parts.next().ok_or_else(error)??;
        let minor = parts.next().ok_or_else(error)??;
        match parts.next() {
            Some(patch) => Ok(Self { major, minor, patch: patch? }),
            None => Ok(Self::newest_of(major, minor).unwrap_or(Self::new(major, minor, 0))),
        }
    }
}

impl TryFrom<String> for BrokerVersion {
    type Error = NotAVersion;

    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

impl From<BrokerVersion> for String {
    fn from(version: BrokerVersion) -> Self {
        version.to_string()
    }
}

impl fmt::Display for BrokerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_resolves_to_its_newest_release() {
        let read = |text: &str| text.parse::<BrokerVersion>().unwrap().to_string();
        assert_eq!(["3.10", "3.10.0", "4.3", "5.0"].map(read), ["3.10.25", "3.10.0", "4.3.6", "5.0.0"]);
        assert_eq!(BrokerVersion::NEWEST_KNOWN, *NEWEST_OF_SERIES.iter().max().unwrap());
        let oldest = BrokerVersion::OLDEST_SUPPORTED;
        assert!(BrokerVersion::newest_of(oldest.major, oldest.minor).is_some());
    }

    #[test]
    fn broker_versions_are_parsed() {
        assert_eq!("3.10.8".parse::<BrokerVersion>().unwrap(), BrokerVersion::new(3, 10, 8));
        assert_eq!("4.3.0-rc.1".parse::<BrokerVersion>().unwrap(), BrokerVersion::new(4, 3, 0));
        assert!("3.8.0".parse::<BrokerVersion>().unwrap().is_supported());
        assert!(!"3.7.28".parse::<BrokerVersion>().unwrap().is_supported());
        assert!(!"4.3.6".parse::<BrokerVersion>().unwrap().is_newer_than_known());
        assert!("4.4.0".parse::<BrokerVersion>().unwrap().is_newer_than_known());
        assert!("four".parse::<BrokerVersion>().is_err());
        assert!("3.10.8".parse::<BrokerVersion>().unwrap() > "3.8.35".parse().unwrap());
    }
}
