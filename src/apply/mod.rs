//! Plans against a live broker and applies plans to it.
//!
//! [`plan`] reads the broker and calls the planner. [`run`] locks the vhosts, plans again, executes the plan and
//! verifies the result. The steps, their order and their guards come from the plan. After the first failure, topo
//! starts no new steps, but completes any recreation that has started. A retired tier that is not empty is left for the
//! next run.
//!
//! This module accesses neither files nor the terminal. Callbacks write the backup and show the progress.

mod backup;
mod execute;
mod locks;
mod migrate;
mod outcome;
mod planning;
mod recreations;
mod request;
mod returned_consumers;
mod run;
mod started_shovels;

pub use backup::{Backup, BackupError};
pub use execute::{CONCURRENCY, apply};
pub use outcome::{
    Consumers, FailedStep, Migrated, Missing, Outcome, Report, Status, StepDone, StoppedShovel, WaitingStep,
};
pub use planning::{plan, plan_snapshots};
pub use request::{
    ApplyResources, BackupWriter, Interrupt, Progress, RunError, RunEvent, RunFailure, RunOptions, RunRequest,
};
pub use run::run;
