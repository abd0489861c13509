//! The arguments of `topo lock`.

use super::arguments::{ConnectionArguments, ReportFormat, SpecArguments};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Debug, Args)]
pub(super) struct LockArguments {
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    /// Delete the lock after a confirmation; an apply that holds it stops
    #[arg(id = "break_lock", long = "break")]
    pub(super) break_lock: bool,
    /// Delete the lock without a confirmation
    #[arg(short, long, requires = "break_lock")]
    pub(super) yes: bool,
    /// Name of the queue that is the lock, as in apply --lock-name
    #[arg(long, value_name = "NAME", default_value = crate::model::names::LOCK_QUEUE, value_parser = NonEmptyStringValueParser::new(), env = "TOPO_LOCK_NAME")]
    pub(super) lock_name: String,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ReportFormat,
    #[command(flatten)]
    pub(super) connection: ConnectionArguments,
}
