//! `topo version`: prints the version and the build details. `topo schema`: prints a JSON Schema from `schema/`.

use super::arguments::ExplainFormat;
use super::failure::{Exit, Failure};
use super::output;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

/// The format version of the JSON document.
const FORMAT_VERSION: u32 = 1;

/// Returns what `--version` prints after the name: the version and the known build details, on one line.
pub(super) fn short_version() -> String {
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

/// The build details that `build.rs` determined. A detail with an empty value is unknown and not printed.
const BUILD: [(&str, &str); 5] = [
    ("commit", env!("TOPO_BUILD_COMMIT")),
    ("date", env!("TOPO_BUILD_DATE")),
    ("target", env!("TOPO_BUILD_TARGET")),
    ("rustc", env!("TOPO_BUILD_RUSTC")),
    ("profile", env!("TOPO_BUILD_PROFILE")),
];

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Kind of document that the schema describes
    #[arg(long, value_enum, default_value_t, env = "TOPO_KIND")]
    pub(super) kind: SchemaKind,
}

/// The document that a schema describes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SchemaKind {
    /// Specs, for editors
    #[default]
    Topology,
    /// Test files, for editors
    Test,
    /// Test results, as written by topo test --format json
    TestResults,
    /// Plans, as written by topo plan --format json
    Plan,
    /// Contracts, as written by topo contract --format json
    Contract,
    /// Statuses, as written by topo status --format json
    Status,
}

#[derive(Debug, Args)]
pub(super) struct VersionArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

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

pub(super) fn schema(arguments: &SchemaArguments) -> Result<Exit, Failure> {
    output::print(match arguments.kind {
        SchemaKind::Topology => include_str!("../../schema/topology.schema.json"),
        SchemaKind::Test => include_str!("../../schema/test.schema.json"),
        SchemaKind::TestResults => include_str!("../../schema/test-results.schema.json"),
        SchemaKind::Plan => include_str!("../../schema/plan.schema.json"),
        SchemaKind::Contract => include_str!("../../schema/contract.schema.json"),
        SchemaKind::Status => include_str!("../../schema/status.schema.json"),
    })?;
    Ok(Exit::Done)
}
