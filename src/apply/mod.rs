//! Plans against a live broker and applies plans to it.
//!
//! [`plan`] reads the broker and calls the planner. [`run`] locks the vhosts, plans again, executes the plan and
//! verifies the result. The steps, their order and their guards come from the plan. The first failure stops new steps,
//! but a recreate that has started is completed. A retired tier that is not empty is left for the next run.
//!
//! This module accesses no files and no terminal: callbacks write the backup and show the progress.

mod backup;
mod execute;
mod interrupt;
mod locks;
mod migrate;
mod outcome;
mod planning;
mod precautions;
mod recreates;
mod report;
mod run;
mod run_error;
mod vhosts;

pub use backup::{Backup, BackupError};
pub use execute::{CONCURRENCY, Progress, apply};
pub use interrupt::Interrupt;
pub use migrate::{ApplyResources, Consumers, Migrated, Missing};
pub use outcome::{Outcome, Status};
pub use planning::{plan, plan_snapshots};
pub use report::{FailedStep, Report, StepDone, WaitingStep};
pub use run::{BackupWriter, RunEvent, RunOptions, RunRequest, run};
pub use run_error::{RunError, RunFailure};
