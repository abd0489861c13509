//! `--broker-version`: a version, and how it was typed.

use crate::model::BrokerVersion;
use crate::model::version::NotAVersion;

/// A version as it was typed: `3.10`, which is taken for its newest release.
#[derive(Clone, Debug)]
pub(super) struct TypedVersion {
    /// As it was typed.
    pub(super) text: String,
    /// What it means.
    pub(super) version: BrokerVersion,
}

impl TypedVersion {
    /// The version that is meant, with the series that was typed where it is another.
    pub(super) fn shown(&self) -> String {
        let (text, version) = (&self.text, self.version);
        if *text == version.series() && BrokerVersion::newest_of(version.major, version.minor).is_some() {
            format!("{version}, the newest known of {text}")
        } else {
            text.clone()
        }
    }
}

/// As an argument of the command line says it.
pub(super) fn typed_version(text: &str) -> Result<TypedVersion, String> {
    Ok(TypedVersion { text: text.to_owned(), version: broker_version(text)? })
}

/// The same, when nobody asks how it was typed.
pub(super) fn broker_version(text: &str) -> Result<BrokerVersion, String> {
    let version: BrokerVersion = text.parse().map_err(|error: NotAVersion| error.to_string())?;
    if version.is_supported() {
        return Ok(version);
    }
    let (oldest, newest) = (BrokerVersion::OLDEST_SUPPORTED.series(), BrokerVersion::NEWEST_KNOWN.series());
    Err(format!("topo supports RabbitMQ {oldest} to {newest}, and later ones as if they were {newest}"))
}
