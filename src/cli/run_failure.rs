//! Converts the reasons why a plan is not executed to failures, with exit codes and hints.

use super::arguments::{ApplyArguments, Global};
use super::exit::Exit;
use super::failure::Failure;
use super::plan::{Layout, shown};
use super::printing_arguments::PlanFormat;
use super::{output, planning, rights};
use crate::apply::{BackupError, RunError, RunFailure};
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::rights::Needs;
use crate::plan::{Allowance, Plan};
use crate::render::next_line;

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
            rights::grant_hints(vhost.as_str(), &username, &Needs::configure(queue.as_str()))
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
            let command = next_line::paste_line(next_command, &open);
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
