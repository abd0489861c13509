//! Converts the outcome of an apply to an exit code and a message on standard error. The report contains the details.
//! Converts errors that occur before the first step to failures with hints.

use super::arguments::{Global, PlanFormat};
use super::failure::{Exit, Failure};
use super::plan::{self, Layout};
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

/// Returns the exit code of a successful run. Returns a failure for any other run.
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

/// Describes what happened to the messages of migrations that were rolled back.
fn rollback_result(reports: &[Report]) -> String {
    let all = || reports.iter().flat_map(|report| &report.migrated).filter(|migrated| migrated.is_rolled_back);
    let missing: u64 = all().filter_map(|it| it.missing).map(|missing| missing.messages).sum();
    let behind: u64 = all().filter_map(|it| it.behind).sum();
    if missing > 0 {
        format!("{} did not return", count(missing, "message"))
    } else if all().any(|it| it.conflicting_policy.is_some()) {
        "some messages might not have returned".to_owned()
    } else if behind > 0 {
        format!("all messages have returned, {} of them behind newer messages", number(behind))
    } else if all().all(|it| it.returned == Some(0) && !it.has_deleted_queue()) {
        "the queue and its messages are unchanged".to_owned()
    } else {
        "all messages have returned".to_owned()
    }
}

/// Returns the failure for a run that was not successful. The message repeats the result on standard error, in case the
/// report on standard output is discarded.
fn failure(outcome: &Outcome, status: Status) -> Failure {
    let reports = &outcome.reports[..];
    let total = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>() as u64;
    let failed = total(|report| report.failed.len());
    let rest = total(|report| report.not_attempted.len());
    let is_rolled_back = |report: &Report| report.migrated.iter().any(|migrated| migrated.is_rolled_back);
    let is_verified = outcome.left.as_ref().is_ok_and(Vec::is_empty);
    let are_only_consumers_missing = is_verified && outcome.requires_consumers && outcome.missing_consumers() > 0;
    let message = match status {
        Status::Failed | Status::Blocked | Status::Interrupted if reports.iter().any(is_rolled_back) => {
            format!("a migration could not be completed and was rolled back: {}", rollback_result(reports))
        }
        Status::Partial if failed == 0 && rest == 0 && outcome.conflicting_policy().is_some() => {
            let conflicting_policy = outcome.conflicting_policy().unwrap_or_default();
            format!("{}, but messages may be missing, because {conflicting_policy}", steps_done(reports))
        }
        Status::Partial if failed == 0 && rest == 0 && outcome.missing_messages() > 0 => {
            format!("{}, but {} did not return", steps_done(reports), count(outcome.missing_messages(), "message"))
        }
        Status::Partial if failed == 0 && rest == 0 && are_only_consumers_missing => {
            let mut consumers = reports.iter().flat_map(|report| &report.consumers);
            let missing = count(outcome.missing_consumers() as u64, "consumer");
            let verb = if outcome.missing_consumers() == 1 { "has" } else { "have" };
            match consumers.any(|consumers| consumers.after.is_none()) {
                true => format!("{}, but the number of consumers is unknown", steps_done(reports)),
                false => format!("{}, but {missing} {verb} not returned", steps_done(reports)),
            }
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

/// Refuses a plan whose fingerprint differs from `--expect`.
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

/// Refuses a stale saved plan. A saved plan is stale unless the new plan contains the same steps, or only the remaining
/// steps of the saved plan.
pub(super) fn check_fresh(saved: &Plan, now: &Plan) -> Result<(), Failure> {
    match staleness(saved, now) {
        Staleness::Same | Staleness::Rest => Ok(()),
        Staleness::Stale(news) => Err(stale_failure(RunError::Stale(news.clone()).to_string(), &news)),
    }
}

fn stale_failure(message: String, news: &[String]) -> Failure {
    let mut failure = Failure::failed(message).exit(Exit::Stale);
    for new in news.iter().take(10) {
        failure = failure.because(format!("not in the plan: {new}"));
    }
    if news.len() > 10 {
        failure = failure.because(format!("and {} more", news.len() - 10));
    }
    failure.hint("plan again, and review the differences: topo plan")
}

/// Returns the failure for a run that ended before its first step. If new blockers ended the run, prints the new plan.
/// `next_command` is the command that repeats the run.
pub(super) fn run_failure(failure: RunFailure, (next_command, specs): (&str, &str), allowed: &[Allowance]) -> Failure {
    let RunFailure { error, created } = failure;
    let message = error.to_string();
    let failure = match error {
        RunError::Broker(error) => Failure::from(error),
        RunError::LockRefused { vhost, queue, username, .. } => {
            let failure = Failure::failed(message)
                .because(format!("topo uses the queue {queue} as a lock, and this user is not allowed to declare it"));
            hints::grant_hints(vhost.as_str(), &username, &Needs::configure(queue.as_str()))
                .into_iter()
                .fold(failure, Failure::hint)
                .hint("or use a lock name that the user is allowed to configure: --lock-name NAME; every apply to this vhost must use the same name")
        }
        RunError::LockInterrupted(error) => Failure::from(error)
            .exit(Exit::Interrupted)
            .because("interrupted while waiting for the lock; nothing was changed"),
        RunError::Stale(news) => stale_failure(message, &news),
        RunError::Blocked(plan_and_blockers) => {
            let (plan, open) = *plan_and_blockers;
            let command = shell::with_allowances(next_command, &open);
            let global = Global { color: None, quiet: false, verbose: false };
            output::eprint(&plan::render(&plan, PlanFormat::Text, &Layout::of(specs, allowed, &global)));
            let failure = planning::blocked_failure(&open).because("the broker has changed since the plan was shown");
            match open.hazards.is_empty() {
                true => failure,
                false => failure.hint(format!("to allow the hazards and apply: {command}")),
            }
        }
        RunError::Backup(BackupError { reason, .. }) => Failure::failed(message)
            .because(reason)
            .hint("write the backup to a different file: --backup FILE")
            .hint("or apply without a backup: --no-backup"),
        RunError::NoTransport(reasons) => reasons.into_iter().fold(Failure::failed(message), Failure::because),
        RunError::UnsafeTransport(error) => Failure::failed(message).because_of(&error),
    };
    created.iter().fold(failure, |failure, vhost| {
        failure
            .exit(Exit::Partial)
            .because(format!("vhost {vhost} was created before this error; nothing else was changed"))
    })
}
