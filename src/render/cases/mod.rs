//! Renders the results of topology tests.

mod coverage;
mod details;
mod document;
mod events;
mod github;
mod json;
mod junit;
mod margin;
mod markdown;
mod text;

pub use coverage::coverage;
pub use document::schema;
pub use github::github;
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use text::{summary, text};

use crate::cases::{Aspect, CaseOutcome, FileReport, Mismatch};
use crate::model::printable::clean;

/// Describes a difference, such as `attempts in events.work: expected 3, got 2`.
fn sentence(mismatch: &Mismatch) -> String {
    let queue = mismatch.queue.as_ref().map(|queue| clean(queue.as_str()));
    let what = match (mismatch.aspect, queue) {
        (Aspect::Unknown, _) => return format!("cannot determine the result: {}", clean(&mismatch.actual)),
        (Aspect::Live, _) => {
            let difference = clean(&mismatch.actual);
            return format!(
                "the broker and the simulation differ: {difference} (unless another client uses the vhost, this is a bug in \
                 topo; please report it)"
            );
        }
        (Aspect::Publish, _) => return format!("cannot publish the message: {}", clean(&mismatch.actual)),
        (Aspect::Attempts, Some(queue)) => format!("attempts in {queue}"),
        (Aspect::Ends, Some(queue)) => format!("ends in {queue}"),
        (Aspect::Workers, Some(queue)) => format!("deliveries to the worker of {queue}"),
        (Aspect::Reaches | Aspect::Never | Aspect::DeadLettered, Some(queue)) => queue,
        (aspect, _) => aspect.as_str().to_owned(),
    };
    format!("{what}: expected {}, got {}", clean(&mismatch.expected), clean(&mismatch.actual))
}

/// The number of cases with each outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    fn of(reports: &[FileReport]) -> Self {
        let mut counts = Self::default();
        for result in reports.iter().flat_map(|report| &report.results) {
            match result.outcome {
                CaseOutcome::Passed => counts.passed += 1,
                CaseOutcome::Failed { .. } => counts.failed += 1,
                CaseOutcome::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    fn all(self) -> u64 {
        self.passed + self.failed + self.skipped
    }
}
