//! The arguments of `topo export`.

use super::arguments::ConnectionArguments;
use super::typed_version::broker_version;
use crate::model::BrokerVersion;
use clap::Args;
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    // Known all the same, so that it can say which flag was meant.
    #[arg(hide = true)]
    pub(super) stray: Option<String>,
    /// Only this vhost; may be repeated [default: all that the user may see]
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST")]
    pub(super) vhost: Vec<String>,
    /// Only queues, exchanges and policies with such a name (`*` is any run of characters), with the bindings that lead to
    /// them; may be repeated
    #[arg(long = "match", value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new(), env = "TOPO_MATCH")]
    pub(super) patterns: Vec<String>,
    /// Where to write it: a file (.yaml or .yml), or a folder, with a file for each vhost; `-` is standard output [default: -]
    #[arg(long, value_name = "FILE|DIR", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
    /// Read a definitions file instead of a broker; `-` is standard input
    #[arg(long, value_name = "FILE", env = "TOPO_DEFINITIONS")]
    pub(super) definitions: Option<PathBuf>,
    /// The version that --definitions stands for [default: what the file says, else the newest known]
    // An id of its own: for a plan, the environment says it only beside `--against`.
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}
