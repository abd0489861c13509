//! Defines the arguments of `topo export`.

use super::connection::ConnectionArguments;
use super::value_parsers::{WithKinds, broker_version};
use crate::model::BrokerVersion;
use clap::Args;
use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    // Parsed so that the error can suggest the flag that the user probably intended.
    #[arg(hide = true)]
    pub(super) stray: Option<String>,
    /// Export only this vhost; may be repeated [default: all vhosts that the user has access to]
    #[arg(long, value_name = "NAME", env = "TOPO_VHOST")]
    pub(super) vhost: Vec<String>,
    /// Export only objects with a matching name (`*` matches any characters), and the bindings to matching queues and
    /// exchanges; may be repeated
    #[arg(long = "match", value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new(), env = "TOPO_MATCH")]
    pub(super) patterns: Vec<String>,
    /// Also export these optional kinds, such as operatorPolicies, separated by commas, or all
    #[arg(long, value_name = "KINDS", env = "TOPO_WITH")]
    pub(super) with: Vec<WithKinds>,
    /// Output file (.yaml or .yml), or directory with a file for each vhost; `-` for standard output [default: -]
    #[arg(long, value_name = "FILE|DIR", env = "TOPO_OUT")]
    pub(super) out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, env = "TOPO_FORCE", value_parser = BoolishValueParser::new())]
    pub(super) force: bool,
    /// Read a definitions file instead of a broker; `-` for standard input
    #[arg(long, value_name = "FILE", env = "TOPO_DEFINITIONS")]
    pub(super) definitions: Option<PathBuf>,
    /// RabbitMQ version to assume for --definitions [default: the version in the file, else the newest known]
    // The id differs from that in `topo plan`, where the environment variable applies only together with `--against`.
    #[arg(id = "for_version", long = "broker-version", value_name = "VERSION", value_parser = broker_version, env = "TOPO_BROKER_VERSION")]
    pub(super) broker_version: Option<BrokerVersion>,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}
