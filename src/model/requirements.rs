//! The requirements of a spec: the version, plugins and feature flags that a cluster must have. topo checks these
//! requirements, but never changes a cluster to meet them.

use super::version::BrokerVersion;
use schemars::JsonSchema;
use semver::{Op, Version, VersionReq};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The requirements of a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirements {
    /// The versions of RabbitMQ that the spec supports; absent if the spec supports every version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionRange>,
    /// The plugins that must be enabled.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub plugins: BTreeSet<String>,
    /// The feature flags that must be enabled.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub feature_flags: BTreeSet<String>,
}

/// A range of versions, such as `>= 3.12, < 5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct VersionRange(VersionReq);

/// The error message for a string that is not a version range.
pub const EXPECTED_RANGE: &str =
    "use one or more comparisons (>=, >, <=, <, =), separated by commas, for example `>= 3.12, < 5`";

impl Requirements {
    /// Returns true if the spec requires nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl VersionRange {
    /// Returns true if the range contains the version.
    pub fn contains(&self, version: BrokerVersion) -> bool {
        let BrokerVersion { major, minor, patch } = version;
        self.0.matches(&Version::new(major.into(), minor.into(), patch.into()))
    }
}

/// Parses comparisons that are separated by commas. Each comparison must have an operator, because `3.12` alone does
/// not indicate whether the range contains later versions.
impl FromStr for VersionRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let range = VersionReq::parse(text).map_err(|_| EXPECTED_RANGE)?;
        let is_comparison = |op: Op| matches!(op, Op::Exact | Op::Greater | Op::GreaterEq | Op::Less | Op::LessEq);
        let has_wildcard = text.contains(['x', 'X', '*']);
        let is_valid = !has_wildcard && !range.comparators.is_empty();
        let is_valid = is_valid && range.comparators.iter().all(|it| is_comparison(it.op));
        if is_valid { Ok(Self(range)) } else { Err(EXPECTED_RANGE) }
    }
}

impl TryFrom<String> for VersionRange {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<VersionRange> for String {
    fn from(range: VersionRange) -> Self {
        range.to_string()
    }
}

/// Writes the range with a space after each operator: `>= 3.12, < 5`.
impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let spaced: Vec<String> = text
            .split(", ")
            .map(|it| {
                let at = it.find(|character: char| character.is_ascii_digit()).unwrap_or(0);
                format!("{} {}", &it[..at], &it[at..])
            })
            .collect();
        f.write_str(&spaced.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_versions() {
        for (range, version, expected) in [
            (">= 3.12", "3.12.0", true),
            (">=3.12", "3.11.28", false),
            (">= 3.12, < 4.1", "4.0.9", true),
            (">= 3.12, < 4.1", "4.1.0", false),
            ("> 3.12", "3.12.14", false),
            ("<= 4.0", "4.0.9", true),
            ("= 4.0", "4.0.5", true),
            ("= 4.0.4", "4.0.5", false),
        ] {
            let parsed: VersionRange = range.parse().unwrap();
            assert_eq!(parsed.contains(version.parse().unwrap()), expected, "{range} {version}");
            assert_eq!(parsed.to_string().parse::<VersionRange>().unwrap(), parsed);
        }
        assert_eq!(">=3.12,<5".parse::<VersionRange>().unwrap().to_string(), ">= 3.12, < 5");
        for text in ["", "3.12", "~3.12", "^4", "4.*", "*", "new", ">= 3.12 < 4", ">= 3.x"] {
            assert!(text.parse::<VersionRange>().is_err(), "{text}");
        }
    }
}
