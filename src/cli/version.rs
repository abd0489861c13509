//! `topo version`: the version and the build details.
//!
//! `--broker-version`: a version, and its spelling on the command line.

use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::{ExplainFormat, VersionArguments};
use super::output;
use crate::model::BrokerVersion;
use crate::model::version::NotAVersion;
use serde_json::{Map, Value, json};

/// The version of the document's shape.
const FORMAT_VERSION: u32 = 1;

/// Returns the output of `--version` after the name: the version and the known build details, on one line.
pub(super) fn short() -> String {
    let known: Vec<String> = BUILD.into_iter().filter(|(_, value)| !value.is_empty()).map(detail).collect();
    format!("{VERSION} ({})", known.join(", "))
}

fn detail((name, value): (&str, &str)) -> String {
    match name {
        "commit" | "rustc" => format!("{name} {}", value.split(' ').next().unwrap_or(value)),
        _ => value.to_owned(),
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The build details that `build.rs` determined. Empty ones are unknown and not printed.
const BUILD: [(&str, &str); 5] = [
    ("commit", env!("TOPO_BUILD_COMMIT")),
    ("date", env!("TOPO_BUILD_DATE")),
    ("target", env!("TOPO_BUILD_TARGET")),
    ("rustc", env!("TOPO_BUILD_RUSTC")),
    ("profile", env!("TOPO_BUILD_PROFILE")),
];

pub(super) fn run(arguments: &VersionArguments) -> Result<Exit, Failure> {
    let known = BUILD.into_iter().filter(|(_, value)| !value.is_empty());
    output::print(&match arguments.format {
        ExplainFormat::Text => {
            let lines: String = known.map(|(name, value)| format!("{name:<8} {value}\n")).collect();
            format!("topo {VERSION}\n{lines}")
        }
        ExplainFormat::Json => {
            let build: Map<String, Value> = known.map(|(name, value)| (name.to_owned(), json!(value))).collect();
            format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "version": VERSION, "build": build }))
        }
    })?;
    Ok(Exit::Done)
}

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
