//! The result of an apply: its exit code, and its message on standard error. The report contains the details.

use super::exit::Exit;
use super::failure::Failure;
use crate::apply::{Outcome, Report, Status};
use crate::model::count::{count, number};
use crate::render::report_text::steps_done;

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Applied => Self::Done,
            Status::Partial => Self::Partial,
            Status::Interrupted => Self::Interrupted,
            Status::Blocked => Self::Blocked,
            Status::Failed => Self::Failed,
        }
    }
}

/// Returns the exit code of a run, or its failure.
pub(super) fn conclude(outcome: Outcome) -> Result<Exit, Failure> {
    let status = outcome.status();
    match &outcome.left {
        Err(error) => Err(Failure::from(error.clone())
            .exit(Exit::Partial)
            .because("every step was done, but the result could not be verified")),
        Ok(_) if status == Status::Applied => Ok(status.into()),
        Ok(_) => Err(failure(&outcome, status)),
    }
}

/// Describes the messages of migrations that were rolled back.
fn rolled_back(reports: &[Report]) -> String {
    let all = || reports.iter().flat_map(|report| &report.migrated).filter(|migrated| migrated.is_rolled_back);
    let missing: u64 = all().filter_map(|it| it.missing).map(|missing| missing.messages).sum();
    let behind: u64 = all().filter_map(|it| it.behind).sum();
    if missing > 0 {
        format!("{} did not return", count(missing, "message"))
    } else if all().any(|it| it.conflicting_policy.is_some()) {
        "some messages may not have returned".to_owned()
    } else if behind > 0 {
        format!("all messages have returned, {} of them behind newer ones", number(behind))
    } else if all().all(|it| it.returned == Some(0)) {
        "the queue and its messages are unchanged".to_owned()
    } else {
        "all messages have returned".to_owned()
    }
}

/// Returns the failure of an incomplete run, for standard error, in case the report is discarded.
fn failure(outcome: &Outcome, status: Status) -> Failure {
    let reports = &outcome.reports[..];
    let total = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>() as u64;
    let failed = total(|report| report.failed.len());
    let rest = total(|report| report.not_attempted.len());
    let is_rolled_back = |report: &Report| report.migrated.iter().any(|migrated| migrated.is_rolled_back);
    let message = match status {
        Status::Failed | Status::Blocked | Status::Interrupted if reports.iter().any(is_rolled_back) => {
            format!("a migration could not be completed and was rolled back: {}", rolled_back(reports))
        }
        Status::Partial if failed == 0 && rest == 0 && outcome.conflicting_policy().is_some() => {
            let conflicting_policy = outcome.conflicting_policy().unwrap_or_default();
            format!("{}, but messages may be missing: {conflicting_policy}, in which they waited", steps_done(reports))
        }
        Status::Partial if failed == 0 && rest == 0 && outcome.missing_messages() > 0 => {
            format!("{}, but {} did not return", steps_done(reports), count(outcome.missing_messages(), "message"))
        }
        Status::Partial if failed == 0 && rest == 0 => {
            format!("{}, but the broker does not match the spec", steps_done(reports))
        }
        Status::Partial => {
            let stopped = if failed == 0 { "interrupted" } else { "stopped halfway" };
            format!("{stopped}: {}, {failed} failed, {rest} not attempted", steps_done(reports))
        }
        Status::Interrupted => "interrupted; nothing was changed".to_owned(),
        Status::Applied | Status::Failed | Status::Blocked => "the first step failed; nothing was changed".to_owned(),
    };
    let failure = Failure::failed(message).exit(status.into());
    match reports.iter().flat_map(|report| &report.failed).next() {
        Some(first) => failure.because_of(&first.error),
        None => failure,
    }
}
