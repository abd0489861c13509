//! `topo dlq export`: writes messages to a file, and leaves them in the queue.

use super::super::arguments::Global;
use super::super::failure::{Exit, Failure};
use super::super::output;
use super::selection::SelectionArguments;
use super::target::{ProgressDisplay, ReadingArguments, TargetArguments, inspect_until_second_signal};
use crate::apply::Interrupt;
use crate::model::QueueName;
use crate::operate::dlq::{DeadLetter, InspectOptions, InspectionEnd, archived_line, inspect};
use crate::render::dlq::inspection_notes;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub(super) async fn run(arguments: &ExportArguments, global: &Global) -> Result<Exit, Failure> {
    let selection = arguments.selection.selection()?;
    let target = arguments.target.read(global).await?;
    let queue = QueueName::new(arguments.queue.as_str());
    target.expect(&queue, &arguments.reading).map_err(|error| arguments.target.failure(error))?;
    let options = InspectOptions {
        selection,
        limit: arguments.limit,
        hold: arguments.reading.hold(),
        allowed: arguments.reading.allow.clone(),
    };
    let mut file = open(&arguments.out)?;
    let interrupt = Interrupt::default();
    let shown = ProgressDisplay::start(global, format!("exporting {queue}"));
    let total = target.state.messages(&queue).unwrap_or(0);
    let mut written = 0;
    let mut visit = |it: DeadLetter| {
        file.write_all(archived_line(&target.vhost, &queue, &it).as_bytes()).map_err(|error| error.to_string())?;
        written += 1;
        shown.update(written, total, "exported");
        Ok(())
    };
    let inspected = async {
        let inspected = inspect(&target.access, &target.state, &queue, &options, &interrupt, &mut visit).await;
        inspected.map_err(|error| arguments.target.failure(error))
    };
    let inspection = inspect_until_second_signal(&interrupt, inspected).await;
    drop(shown);
    let inspection = inspection.inspect_err(|_| {
        // Removes the incomplete file, so that the user can repeat the same command.
        if arguments.out != Path::new("-") {
            let _ = std::fs::remove_file(&arguments.out);
        }
    })?;
    file.flush().map_err(|error| output::write_failure(&arguments.out, &error))?;
    drop(file);
    output::eprint(&inspection_notes(&queue, &inspection));
    Ok(match inspection.end {
        InspectionEnd::Complete => Exit::Done,
        InspectionEnd::Limit if interrupt.is_requested() => Exit::Interrupted,
        InspectionEnd::Limit => Exit::Done,
        InspectionEnd::HoldFull | InspectionEnd::Incomplete(_) => Exit::Failed,
    })
}

/// Creates a new file that only its owner can read. For `-`, opens standard output.
fn open(path: &Path) -> Result<Box<dyn Write>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(std::io::stdout())));
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| output::write_failure(path, &error))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Dead-letter queue
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    queue: String,
    /// New file, with one JSON object per line; `-` for standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Maximum number of messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    target: TargetArguments,
}
