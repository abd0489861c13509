//! Shows the events of a run as progress on standard error.

use super::output;
use super::progress::{Operation, Progress, Steps};
use crate::apply::{Progress as StepEvent, RunEvent};
use crate::model::ObjectId;
use crate::render::{progress_text, report_text};
use std::cell::RefCell;

/// The progress of a run.
pub(super) struct RunDisplay {
    progress: Progress,
    /// The broker's URL.
    url: String,
    shown: RefCell<Shown>,
}

/// The progress display on the terminal. Dropping the value clears its lines.
enum Shown {
    Nothing,
    Waiting(Operation),
    Steps(Box<Steps>),
}

impl RunDisplay {
    pub(super) fn new(progress: Progress, url: String) -> Self {
        Self { progress, url, shown: RefCell::new(Shown::Nothing) }
    }

    /// Clears the progress display.
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
            RunEvent::AwaitingConsumers { returned, before } => {
                let message = format!("waiting for consumers: {returned} of {before} have returned");
                if let Shown::Waiting(waiting) = &*self.shown.borrow() {
                    waiting.update(&message);
                    return;
                }
                self.wait(message);
            }
            RunEvent::Approved(_) | RunEvent::Ended(_) => self.clear(),
            RunEvent::Executing(approved, created) => {
                self.clear();
                let mut steps = self.progress.start_steps(created.len() + approved.plan().step_count());
                created.iter().for_each(|(_, step)| steps.end_step(&report_text::action(&step.action)));
                self.shown.replace(Shown::Steps(Box::new(steps)));
            }
            RunEvent::Step(event) => {
                if let Shown::Steps(steps) = &mut *self.shown.borrow_mut() {
                    show_step(steps, event);
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

fn show_step(steps: &mut Steps, event: StepEvent<'_>) {
    match event {
        StepEvent::Done(step) => {
            steps.complete_step(step.id, step.recreate.as_ref(), &report_text::action(&step.action));
        }
        StepEvent::Failed(step, _) => steps.end_step(&format!("{} FAILED", report_text::action(&step.action))),
        StepEvent::Moving(step, moved, left, why) => {
            let rate = moved.and_then(|moved| steps.rate(&report_text::action(&step.action), moved));
            steps.show_state(&progress_text::transfer_progress(&step.action, (moved, left), rate, why));
        }
        StepEvent::Confirming(step, time) => {
            steps.show_state(&progress_text::confirmation_progress(&step.action, time))
        }
        StepEvent::Stalled(step, why) => steps.show_retry(step.id, &progress_text::retry_reason(&step.action, why)),
        StepEvent::RollingBack(queue, why) => {
            let line = progress_text::rollback_start(queue, why.map(|why| why as _), output::width());
            steps.start_rollback(ObjectId::Queue(queue.clone()), &line);
        }
        StepEvent::Waiting(step) => steps.end_step(&format!("{} LEFT", report_text::action(&step.action))),
    }
}
