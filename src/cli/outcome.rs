//! The result of an apply: its exit code, its word in JSON, and its sentence on standard error. The report has the details.

use super::exit::Exit;
use super::failure::Failure;
use crate::apply::Report;
use crate::broker::BrokerError;
use crate::model::count::{count, number};
use crate::render::report_text::steps_done;

/// The exit code of a run. `left` lists the objects that still differ after a complete run.
pub(super) fn outcome(reports: &[Report], left: &[String]) -> Exit {
    let complete = reports.iter().all(Report::is_complete);
    let changed = has_changed(reports);
    let interrupted = reports.iter().any(|report| report.interrupted);
    match (complete, changed) {
        (true, _) if left.is_empty() && conflicting_policy(reports).is_none() && missing(reports) == 0 => Exit::Done,
        (true, _) | (false, true) => Exit::Partial,
        (false, false) if interrupted => Exit::Interrupted,
        (false, false) => {
            let raced = |error: &BrokerError| error.is_guard() || matches!(error, BrokerError::Inequivalent { .. });
            let refused = reports.iter().flat_map(|report| &report.failed).any(|failed| raced(&failed.error));
            if refused { Exit::Blocked } else { Exit::Failed }
        }
    }
}

/// Whether the run changed the broker. A step that may have been done counts as done, so that "nothing was changed" is
/// always true. The migration of an earlier run counts too.
pub(super) fn has_changed(reports: &[Report]) -> bool {
    reports.iter().any(|report| {
        !report.done.is_empty()
            || report.failed.iter().any(|failed| failed.error.leaves_doubt())
            || report.migrated.iter().any(|migrated| migrated.is_interrupted)
    })
}

/// The exit code as a word, for JSON reports.
pub(super) fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "applied",
        Exit::Partial => "partial",
        Exit::Interrupted => "interrupted",
        Exit::Blocked => "blocked",
        Exit::Failed | Exit::Changes | Exit::Stale | Exit::Locked | Exit::Usage | Exit::Spec => "failed",
    }
}

/// The policy that dropped held messages, if any.
fn conflicting_policy(reports: &[Report]) -> Option<&str> {
    reports.iter().flat_map(|report| &report.migrated).find_map(|migrated| migrated.conflicting_policy.as_deref())
}

/// The number of messages that did not return.
fn missing(reports: &[Report]) -> u64 {
    let migrated = reports.iter().flat_map(|report| &report.migrated);
    migrated.filter_map(|migrated| migrated.missing).map(|missing| missing.messages).sum()
}

/// Describes the messages of migrations that were rolled back.
fn rolled_back(reports: &[Report]) -> String {
    let all = || reports.iter().flat_map(|report| &report.migrated).filter(|migrated| migrated.is_rolled_back);
    let missing: u64 = all().filter_map(|it| it.missing).map(|missing| missing.messages).sum();
    let behind: u64 = all().filter_map(|it| it.behind).sum();
    if missing > 0 {
        format!("{} did not come back", count(missing, "message"))
    } else if all().any(|it| it.conflicting_policy.is_some()) {
        "some messages may not have come back".to_owned()
    } else if behind > 0 {
        format!("all messages are back, {} of them behind newer ones", number(behind))
    } else if all().all(|it| it.returned == Some(0)) {
        "the queue and its messages are unchanged".to_owned()
    } else {
        "all messages are back".to_owned()
    }
}

/// The failure of an incomplete run, on standard error, in case the report is discarded.
pub(super) fn failure(reports: &[Report], exit: Exit) -> Failure {
    let total = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>() as u64;
    let failed = total(|report| report.failed.len());
    let rest = total(|report| report.not_attempted.len());
    let is_rolled_back = |report: &Report| report.migrated.iter().any(|migrated| migrated.is_rolled_back);
    let message = match exit {
        Exit::Failed | Exit::Blocked | Exit::Interrupted if reports.iter().any(is_rolled_back) => {
            format!("a migration could not be completed and was rolled back: {}", rolled_back(reports))
        }
        Exit::Partial if failed == 0 && rest == 0 && conflicting_policy(reports).is_some() => {
            let conflicting_policy = conflicting_policy(reports).unwrap_or_default();
            format!("{}, but messages may be missing: {conflicting_policy}, in which they waited", steps_done(reports))
        }
        Exit::Partial if failed == 0 && rest == 0 && missing(reports) > 0 => {
            format!("{}, but {} did not come back", steps_done(reports), count(missing(reports), "message"))
        }
        Exit::Partial if failed == 0 && rest == 0 => {
            format!("{}, but the broker does not match the spec", steps_done(reports))
        }
        Exit::Partial => {
            let stopped = if failed == 0 { "interrupted" } else { "stopped halfway" };
            format!("{stopped}: {}, {failed} failed, {rest} not attempted", steps_done(reports))
        }
        Exit::Interrupted => "interrupted; nothing was changed".to_owned(),
        Exit::Done
        | Exit::Failed
        | Exit::Changes
        | Exit::Blocked
        | Exit::Stale
        | Exit::Locked
        | Exit::Usage
        | Exit::Spec => "the first step failed; nothing was changed".to_owned(),
    };
    let failure = Failure::failed(message).exit(exit);
    match reports.iter().flat_map(|report| &report.failed).next() {
        Some(first) => failure.because_of(&first.error),
        None => failure,
    }
}
