//! `--broker-version`: a version, and its spelling on the command line.

use crate::model::BrokerVersion;
use crate::model::version::NotAVersion;

/// A version as typed: `3.10` means the newest known release of that series.
#[derive(Clone, Debug)]
pub(super) struct TypedVersion {
    /// The text as typed.
    pub(super) text: String,
    /// The version that it means.
    pub(super) version: BrokerVersion,
}

impl TypedVersion {
    /// Describes the version, with the series if only a series was typed.
    pub(super) fn shown(&self) -> String {
        let (text, version) = (&self.text, self.version);
        if *text == version.series() && BrokerVersion::newest_of(version.major, version.minor).is_some() {
            format!("{version}, the newest known of {text}")
        } else {
            text.clone()
        }
    }
}

/// Parses a version, and keeps its spelling.
pub(super) fn typed_version(text: &str) -> Result<TypedVersion, String> {
    Ok(TypedVersion { text: text.to_owned(), version: broker_version(text)? })
}

/// Parses a version without its spelling.
pub(super) fn broker_version(text: &str) -> Result<BrokerVersion, String> {
    let version: BrokerVersion = text.parse().map_err(|error: NotAVersion| error.to_string())?;
    if version.is_supported() {
        return Ok(version);
    }
    let (oldest, newest) = (BrokerVersion::OLDEST_SUPPORTED.series(), BrokerVersion::NEWEST_KNOWN.series());
    Err(format!("topo supports RabbitMQ {oldest} to {newest}, and later ones as if they were {newest}"))
}
