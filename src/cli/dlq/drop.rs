//! `topo dlq drop`: writes messages to a file, unless `--no-backup` is set, and then drops them.

use super::super::arguments::{Global, ReportFormat};
use super::super::failure::{Exit, Failure};
use super::super::{interaction, output};
use super::archive_file::ArchiveFile;
use super::audit::{self, Started};
use super::selection::SelectionArguments;
use super::target::{
    ProgressDisplay, ReadingArguments, Target, TargetArguments, confirm, inspection_exit, until_second_signal,
};
use crate::apply::Interrupt;
use crate::model::QueueName;
use crate::model::count::count;
use crate::model::run_id;
use crate::operate::dlq::{DropOptions, InspectOptions, Inspection, Selection, Store, drop_messages, inspect};
use crate::render::dlq::{StoppedRun, audit_line, drop_plan_json, drop_plan_text, report_json, report_text};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

pub(super) async fn run(arguments: &DropArguments, global: &Global) -> Result<Exit, Failure> {
    if arguments.backup.is_none() && !arguments.no_backup && !arguments.dry_run {
        return Err(Failure::usage("the dropped messages would be lost")
            .hint("write them to a file first: --backup FILE")
            .hint("or drop them without a backup: --no-backup"));
    }
    if !arguments.yes && !arguments.dry_run && !interaction::can_confirm() {
        return Err(Failure::usage("no terminal is available to ask for confirmation")
            .hint("count the messages: --dry-run")
            .hint("drop without confirmation: --yes"));
    }
    let selection = arguments.selection.selection()?;
    if selection.is_empty() && arguments.limit.is_none() && !arguments.all {
        return Err(Failure::usage("expected a selection flag, --limit or --all")
            .hint("select messages with --source, --reason, --since and other conditions")
            .hint("or drop all messages: --all"));
    }
    audit::check(arguments.audit.as_deref())?;
    let target = arguments.target.read(global).await?;
    let queue = QueueName::new(arguments.queue.as_str());
    target.expect(&queue, &arguments.reading).map_err(|error| arguments.target.failure(error))?;
    let interrupt = Interrupt::default();
    let (started, id) = (Started::default(), run_id());
    let run = run_with(arguments, &target, (&queue, selection, &id), (&interrupt, &started), global);
    let of = |done| StoppedRun { command: "drop", run: Some(&id), vhost: &target.vhost, queue: &queue, done };
    let stopped = started.record_stopped(arguments.audit.as_deref(), of, &target.access, global.quiet);
    until_second_signal(&interrupt, run, stopped).await
}

async fn run_with(
    arguments: &DropArguments,
    target: &Target,
    (queue, selection, id): (&QueueName, Selection, &str),
    (interrupt, started): (&Interrupt, &Started),
    global: &Global,
) -> Result<Exit, Failure> {
    let failure = |error| arguments.target.failure(error);
    if !arguments.yes || arguments.dry_run {
        let options = InspectOptions {
            selection: selection.clone(),
            limit: None,
            hold: arguments.reading.hold(),
            allowed: arguments.reading.allow.clone(),
        };
        let shown = ProgressDisplay::start(global, format!("inspecting {queue}"));
        let mut ignore = |_| Ok(());
        let inspected = inspect(&target.access, &target.state, queue, &options, interrupt, &mut ignore).await;
        drop(shown);
        let inspected = inspected.map_err(failure)?;
        if arguments.dry_run {
            output::print(&match arguments.format {
                ReportFormat::Text => drop_plan_text(queue, &inspected, arguments.limit),
                ReportFormat::Json => drop_plan_json(&target.vhost, queue, &inspected, arguments.limit),
            })?;
            return Ok(inspection_exit(&inspected, interrupt));
        }
        if inspected.matched == 0 && inspected.is_complete() {
            output::eprint("no messages match\n");
            return Ok(Exit::Done);
        }
        if interrupt.is_requested() || !confirm(question(arguments, queue, &inspected), interrupt).await? {
            let failure = Failure::failed("not confirmed; no message was dropped");
            return Err(if interrupt.is_requested() { failure.exit(Exit::Interrupted) } else { failure });
        }
    }
    let store = match &arguments.backup {
        None => None,
        Some(path) => {
            let mut file = ArchiveFile::open(path).map_err(|error| output::write_failure(path, &error))?;
            let store: Store = Box::new(move |lines| file.append(lines).map_err(|error| error.to_string()));
            Some(store)
        }
    };
    let shown = ProgressDisplay::start(global, format!("dropping messages from {queue}"));
    let total = arguments.limit.unwrap_or(0);
    let progress = |counts: &crate::broker::transport::ProcessCounts| {
        shown.update(counts.removed, total, "dropped");
        started.record(counts.removed);
    };
    started.record(0);
    let options = DropOptions {
        selection,
        limit: arguments.limit,
        hold: arguments.reading.hold(),
        window: arguments.window,
        store,
        allowed: arguments.reading.allow.clone(),
        run: id.to_owned(),
    };
    let dropped = drop_messages(&target.access, &target.state, queue, options, interrupt, &progress).await;
    drop(shown);
    let report = dropped.map_err(failure)?;
    let line = |time: &str, user: &str| audit_line(&report, "drop", time, user);
    audit::write(arguments.audit.as_deref(), line, &target.access, global.quiet)?;
    output::print(&match arguments.format {
        ReportFormat::Text => report_text(&report, "dropped"),
        ReportFormat::Json => report_json(&report, "drop"),
    })
    .map_err(|failure| failure.exit(Exit::Partial))?;
    if let Some(path) = arguments.backup.as_ref().filter(|_| report.counts.done > 0 && !global.quiet) {
        let path = super::super::files::path_argument(path);
        output::eprint(&format!("to restore the messages: topo dlq restore {path}{}\n", arguments.target.flags()));
    }
    Ok(audit::exit(&report))
}

fn question(arguments: &DropArguments, queue: &QueueName, inspected: &Inspection) -> String {
    let messages = arguments.limit.map_or(inspected.matched, |limit| limit.min(inspected.matched));
    let more = if inspected.is_complete() { "" } else { ", and all matching messages that topo has not inspected yet" };
    let without = if arguments.no_backup { " without a backup" } else { "" };
    format!("Drop {} from {queue}{without}{more}? [y/N] ", count(messages, "message"))
}

#[derive(Debug, Args)]
pub(super) struct DropArguments {
    /// Dead-letter queue
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    queue: String,
    /// File to which topo writes each message before it drops the message; appends to an existing backup
    #[arg(long, value_name = "FILE", conflicts_with = "no_backup")]
    backup: Option<PathBuf>,
    /// Drop the messages without a backup
    #[arg(long)]
    no_backup: bool,
    /// Drop all messages; required without a selection flag or --limit
    #[arg(long)]
    all: bool,
    /// Maximum number of messages to drop
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Maximum number of messages that can remain in both the queue and the backup if topo crashes (1 to 10000)
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    window: u16,
    /// Count the messages without dropping them
    #[arg(long)]
    dry_run: bool,
    /// Drop without confirmation
    #[arg(short, long)]
    yes: bool,
    /// File to which the audit record of the run is appended [default: standard error, unless --quiet]
    #[arg(long, value_name = "FILE", env = "TOPO_AUDIT")]
    audit: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    format: ReportFormat,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    target: TargetArguments,
}
