//! The arguments of `topo graph`.

use super::arguments::SpecArguments;
use super::printing_arguments::Show;
use super::typed_version::broker_version;
use super::value_parsers::whole_number;
use crate::model::BrokerVersion;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct GraphArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Output format [default: by the extension of --out, else mermaid]
    #[arg(id = "graph_format", long = "format", value_name = "FORMAT", value_enum, env = "TOPO_FORMAT")]
    pub(super) format: Option<GraphFormat>,
    /// Draw only the surroundings of this queue or exchange
    #[arg(long, value_name = "NAME", env = "TOPO_FOCUS")]
    pub(super) focus: Option<String>,
    /// Maximum distance from --focus, in arrows; a queue and its retries count as one
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole_number, requires = "focus", env = "TOPO_DEPTH")]
    pub(super) depth: usize,
    /// Draw the objects that this saved plan creates, changes, recreates and deletes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "file", "variables", "var_file", "for_version"], env = "TOPO_PLAN")]
    pub(super) plan: Option<PathBuf>,
    /// Draw every object, including those generated for retries and dead-lettering, without folding similar ones
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW")]
    pub(super) show: Option<Show>,
    /// RabbitMQ version to check the specs against [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Write the graph to a file; in a .md file, Mermaid is fenced
    #[arg(long, value_name = "FILE", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Replace an existing file that topo graph did not write
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
}

/// Output format of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphFormat {
    /// For Markdown: GitHub and GitLab render it
    Mermaid,
    /// For Graphviz
    Dot,
    /// An image; no other program is needed
    Svg,
    /// For programs: nodes, edges, and where dead-lettered messages arrive
    Json,
}
