//! The outcome of an apply: its exit code, and its message on standard error. Converts the reasons why a plan is not
//! executed to failures, with hints. The report contains the details.

use super::arguments::{Global, PlanFormat};
use super::failure::{Exit, Failure};
use super::plan::{Layout, shown};
use super::plan_arguments::ApplyArguments;
use super::{hints, output, planning};
use crate::apply::{BackupError, Outcome, Report, RunError, RunFailure, Status};
use crate::model::count::{count, number};
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::rights::Needs;
use crate::plan::{Allowance, Plan};
use crate::render::report_text::steps_done;
use crate::render::shell;

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

/// Refuses a plan without the fingerprint of `--expect`.
pub(super) fn check_expected(arguments: &ApplyArguments, plan: &Plan) -> Result<(), Failure> {
    match &arguments.expect {
        Some(expected) if *expected != plan.fingerprint && !plan.is_empty() => Err(Failure::failed(format!(
            "the plan does not match --expect: its fingerprint is {}, not {expected}; nothing was changed",
            plan.fingerprint
        ))
        .exit(Exit::Stale)
        .hint("review the new plan: topo plan")),
        Some(_) | None => Ok(()),
    }
}

/// Accepts a plan with the same steps, or with the remaining ones. Otherwise, the saved plan is stale.
pub(super) fn check_fresh(saved: &Plan, now: &Plan) -> Result<(), Failure> {
    match staleness(saved, now) {
        Staleness::Same | Staleness::Rest => Ok(()),
        Staleness::Stale(news) => Err(stale(RunError::Stale(news.clone()).to_string(), &news)),
    }
}

fn stale(message: String, news: &[String]) -> Failure {
    let mut failure = Failure::failed(message).exit(Exit::Stale);
    for new in news.iter().take(10) {
        failure = failure.because(format!("not in the plan: {new}"));
    }
    if news.len() > 10 {
        failure = failure.because(format!("and {} more", news.len() - 10));
    }
    failure.hint("plan again, and review the differences: topo plan")
}

/// Returns the failure of a run that ended before its first step. Prints a plan with new blockers. `next_command`
/// repeats the run of these specs.
pub(super) fn from_run(failure: RunFailure, (next_command, specs): (&str, &str), allowed: &[Allowance]) -> Failure {
    let RunFailure { error, created } = failure;
    let message = error.to_string();
    let failure = match error {
        RunError::Broker(error) => Failure::from(error),
        RunError::LockRefused { vhost, queue, username, .. } => {
            let failure = Failure::failed(message)
                .because(format!("the lock of an apply is the queue {queue}, which this user may not declare"));
            hints::grant_hints(vhost.as_str(), &username, &Needs::configure(queue.as_str()))
                .into_iter()
                .fold(failure, Failure::hint)
                .hint("or use a name that the user may configure: --lock-name NAME; all applies to this vhost must use the same name")
        }
        RunError::LockInterrupted(error) => Failure::from(error)
            .exit(Exit::Interrupted)
            .because("interrupted while waiting for the lock; nothing was changed"),
        RunError::Stale(news) => stale(message, &news),
        RunError::Blocked(refused) => {
            let (plan, open) = *refused;
            let command = shell::paste_line(next_command, &open);
            let global = Global { color: None, quiet: false, verbose: false };
            output::eprint(&shown(&plan, PlanFormat::Text, &Layout::of(specs, allowed, &global)));
            planning::blocked(&open).hint(format!("the broker has changed since the plan was shown; {command}"))
        }
        RunError::Backup(BackupError { reason, .. }) => Failure::failed(message)
            .because(reason)
            .hint("write the backup elsewhere: --backup FILE")
            .hint("or apply without a backup: --no-backup"),
        RunError::NoTransport(reasons) => reasons.into_iter().fold(Failure::failed(message), Failure::because),
        RunError::UnsafeTransport(error) => Failure::failed(message).because_of(&error),
    };
    created.iter().fold(failure, |failure, vhost| {
        failure.exit(Exit::Partial).because(format!("vhost {vhost} was created before that; nothing else was changed"))
    })
}
