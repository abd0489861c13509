//! The arguments of `topo graph`.

use super::arguments::SpecArguments;
use super::printing_arguments::Show;
use super::typed::whole_number;
use super::typed_version::broker_version;
use crate::model::BrokerVersion;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct GraphArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// How to draw it [default: as --out is named, else mermaid]
    #[arg(id = "graph_format", long = "format", value_name = "FORMAT", value_enum, env = "TOPO_FORMAT")]
    pub(super) format: Option<GraphFormat>,
    /// Only what is near this queue or exchange
    #[arg(long, value_name = "NAME", env = "TOPO_FOCUS")]
    pub(super) focus: Option<String>,
    /// How many arrows away from it; a queue with its retries counts as one
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole_number, requires = "focus", env = "TOPO_DEPTH")]
    pub(super) depth: usize,
    /// Draw what this saved plan creates, changes, recreates and deletes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "file", "variables", "var_file", "for_version"], env = "TOPO_PLAN")]
    pub(super) plan: Option<PathBuf>,
    /// Draw every object, also those that are made for retries and dead letters, and each of many that are alike
    #[arg(long, value_enum, value_name = "WHAT", env = "TOPO_SHOW")]
    pub(super) show: Option<Show>,
    /// The RabbitMQ that the specs are for [default: the newest known]
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    /// Write the picture to a file; in one that ends with .md, Mermaid is fenced
    #[arg(long, value_name = "FILE", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Replace a file that is there and is no picture of topo's
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
}

/// How a picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphFormat {
    /// For Markdown: GitHub and GitLab draw it
    Mermaid,
    /// For Graphviz
    Dot,
    /// As it is; no other program is needed
    Svg,
    /// For programs: the boxes, the arrows, and where dead-lettered messages arrive
    Json,
}
