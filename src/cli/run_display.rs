//! Shows the events of a run as progress on standard error.
//!
//! Converts the reasons why a plan is not executed to failures, with exit codes and hints.

use super::arguments::Global;
use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::PlanFormat;
use super::plan::{Layout, shown};
use super::plan_arguments::ApplyArguments;
use super::progress::{Operation, Progress, Steps};
use super::{output, planning, rights};
use crate::apply::{BackupError, Progress as StepEvent, RunError, RunEvent, RunFailure};
use crate::model::ObjectId;
use crate::plan::fingerprint::{Staleness, staleness};
use crate::plan::rights::Needs;
use crate::plan::{Allowance, Plan};
use crate::render::{next_command, report_text};
use std::cell::RefCell;

/// The progress of a run.
pub(super) struct RunDisplay {
    progress: Progress,
    /// The broker's URL.
    url: String,
    shown: RefCell<Shown>,
}

/// The current content of the screen. Dropping it clears it.
enum Shown {
    Nothing,
    Waiting(Operation),
    Steps(Box<Steps>),
}

impl RunDisplay {
    pub(super) fn new(progress: Progress, url: String) -> Self {
        Self { progress, url, shown: RefCell::new(Shown::Nothing) }
    }

    /// Clears the screen.
    pub(super) fn clear(&self) {
        self.shown.replace(Shown::Nothing);
    }

    /// Shows an event.
    pub(super) fn show(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Locking => self.wait("waiting for the lock".to_owned()),
            RunEvent::LockHeld { vhost, holder } => {
                if let Shown::Waiting(waiting) = &*self.shown.borrow() {
                    waiting.update(&format!("waiting for the lock of vhost {vhost}, held by {holder}"));
                }
            }
            RunEvent::Planning | RunEvent::Verifying => self.wait(format!("reading {}", self.url)),
            RunEvent::Approved(_) | RunEvent::Ended(_) => self.clear(),
            RunEvent::Executing(approved, created) => {
                self.clear();
                let mut steps = self.progress.steps(created.len() + approved.plan().step_count());
                created.iter().for_each(|(_, step)| steps.end_step(&report_text::action(&step.action)));
                self.shown.replace(Shown::Steps(Box::new(steps)));
            }
            RunEvent::Step(event) => {
                if let Shown::Steps(steps) = &mut *self.shown.borrow_mut() {
                    step(steps, event);
                }
            }
            RunEvent::LockNotReleased(error) => {
                output::eprint(&format!("warning: the lock was not released; it expires within a minute: {error}\n"));
            }
        }
    }

    fn wait(&self, message: String) {
        self.clear();
        self.shown.replace(Shown::Waiting(self.progress.start_spinner(message)));
    }
}

fn step(steps: &mut Steps, event: StepEvent<'_>) {
    match event {
        StepEvent::Done(step) => steps.done(step.id, step.recreate.as_ref(), &report_text::action(&step.action)),
        StepEvent::Failed(step, _) => steps.end_step(&format!("{} FAILED", report_text::action(&step.action))),
        StepEvent::Moving(step, moved, left, why) => {
            let rate = moved.and_then(|moved| steps.rate(&report_text::action(&step.action), moved));
            steps.moving(&report_text::transfer_progress(&step.action, (moved, left), rate, why));
        }
        StepEvent::Proving(step, time) => steps.moving(&report_text::proof_progress(&step.action, time)),
        StepEvent::Stalled(step, why) => steps.stalled(step.id, &report_text::retry_reason(&step.action, why)),
        StepEvent::RollingBack(queue, why) => {
            let line = report_text::rollback_start(queue, why.map(|why| why as _), output::width());
            steps.roll_back(ObjectId::Queue(queue.clone()), &line);
        }
        StepEvent::Waiting(step) => steps.end_step(&format!("{} LEFT", report_text::action(&step.action))),
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
            let command = next_command::paste_line(next_command, &open);
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
