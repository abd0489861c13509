//! Writes an audit line, to a file or to standard error, for each run that changes a dead-letter queue.

use super::super::failure::{Exit, Failure};
use super::super::output;
use crate::broker::Access;
use crate::operate::dlq::{RunEnd, RunReport};
use crate::render::dlq::{StoppedRun, stopped_audit_line};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

/// The progress of a run, for the audit record that is written if a second signal stops the run.
#[derive(Debug, Default)]
pub(super) struct Started(Cell<Option<u64>>);

impl Started {
    /// Records the number of messages that have been processed. The first call marks the start of the run.
    pub(super) fn record(&self, done: u64) {
        self.0.set(Some(done));
    }

    /// Returns a function that writes the audit record of a stopped run. The function writes no record if the run has
    /// not started.
    pub(super) fn record_stopped<'a>(
        &'a self,
        path: Option<&'a Path>,
        of: impl FnOnce(u64) -> StoppedRun<'a> + 'a,
        access: &'a Access,
        is_quiet: bool,
    ) -> impl FnOnce() -> Result<(), Failure> + 'a {
        move || match self.0.get() {
            Some(done) => write(path, |time, user| stopped_audit_line(&of(done), time, user), access, is_quiet),
            None => Ok(()),
        }
    }
}

/// Appends the audit line, which depends on the time and the user, to a file. Without a file, writes the line to
/// standard error unless `is_quiet` is true. If the file cannot be written, writes the line to standard error and
/// returns a failure.
pub(super) fn write(
    path: Option<&Path>,
    line: impl FnOnce(&str, &str) -> String,
    access: &Access,
    is_quiet: bool,
) -> Result<(), Failure> {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let line = line(&time, access.broker.username());
    match path {
        None if is_quiet => Ok(()),
        None => {
            output::eprint(&format!("audit: {line}"));
            Ok(())
        }
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
            written.map_err(|error| {
                output::eprint(&format!("audit: {line}"));
                output::write_failure(path, &error).exit(Exit::Partial)
            })
        }
    }
}

/// Checks that lines can be appended to the file, before the first message is moved.
pub(super) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(|_| ()).map_err(|error| output::write_failure(path, &error))
}

/// Returns the exit code of a run.
pub(super) fn exit(report: &RunReport) -> Exit {
    let has_changed = report.counts.done + report.counts.renewed + report.counts.in_doubt > 0;
    match &report.end {
        RunEnd::Complete | RunEnd::Limit => Exit::Done,
        RunEnd::Breaker { .. } => Exit::Partial,
        RunEnd::Interrupted | RunEnd::Stopped(_) if has_changed => Exit::Partial,
        RunEnd::Interrupted => Exit::Interrupted,
        RunEnd::Stopped(_) => Exit::Failed,
    }
}
