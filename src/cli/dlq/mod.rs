//! `topo dlq`: inspects dead-letter queues, and replays, drops, exports and restores their messages.

mod archive_file;
mod audit;
mod drop;
mod export;
mod list;
mod peek;
mod replay;
mod restore;
mod selection;
mod target;

use super::arguments::Global;
use super::failure::{Exit, Failure};
use clap::{Args, Subcommand};

/// The arguments of `topo dlq`.
#[derive(Debug, Args)]
pub(super) struct DlqArguments {
    #[command(subcommand)]
    command: DlqCommand,
}

#[derive(Debug, Subcommand)]
enum DlqCommand {
    /// List dead-letter queues, or group the messages of one queue
    #[command(
        after_long_help = "Examples:\n  topo dlq list --vhost shop\n  topo dlq list orders.dead --vhost shop --group-by source,routing-key"
    )]
    List(list::ListArguments),
    /// Show messages with their history, properties, headers and bodies
    #[command(
        after_long_help = "Examples:\n  topo dlq peek orders.dead --limit 1\n  topo dlq peek orders.dead --source orders.work --error Timeout --format json"
    )]
    Peek(peek::PeekArguments),
    /// Replay messages to the queues in which they failed
    #[command(
        after_long_help = "Examples:\n  topo dlq replay orders.dead --dry-run\n  topo dlq replay orders.dead --source orders.work --since 2h --rate 20/s"
    )]
    Replay(replay::ReplayArguments),
    /// Write messages to a file, then drop them
    #[command(after_long_help = "Examples:\n  topo dlq drop orders.dead --reason expired --backup expired.jsonl")]
    Drop(drop::DropArguments),
    /// Write messages to a file without removing them from the queue
    #[command(after_long_help = "Examples:\n  topo dlq export orders.dead --out orders.jsonl")]
    Export(export::ExportArguments),
    /// Republish the messages in a file to their dead-letter queue
    #[command(after_long_help = "Examples:\n  topo dlq restore expired.jsonl")]
    Restore(restore::RestoreArguments),
}

/// Runs the command.
pub(super) async fn run(arguments: &DlqArguments, global: &Global) -> Result<Exit, Failure> {
    match &arguments.command {
        DlqCommand::List(arguments) => list::run(arguments, global).await,
        DlqCommand::Peek(arguments) => peek::run(arguments, global).await,
        DlqCommand::Replay(arguments) => replay::run(arguments, global).await,
        DlqCommand::Drop(arguments) => drop::run(arguments, global).await,
        DlqCommand::Export(arguments) => export::run(arguments, global).await,
        DlqCommand::Restore(arguments) => restore::run(arguments, global).await,
    }
}
