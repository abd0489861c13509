//! Executes an approved plan on a locked broker, and reports the result.
//!
//! It decides nothing: the steps, their order and their guards are the plan's. The first failure stops new steps, but
//! a recreate that has begun is finished; a retired tier that is not empty is left for the next run. Nothing here touches
//! a terminal; who watches passes an observer.

mod execute;
mod interrupt;
mod migrate;
mod precautions;
mod recreates;
mod report;

pub use execute::{CONCURRENCY, Progress, apply};
pub use interrupt::Interrupt;
pub use migrate::{ApplyResources, Consumers, Migrated, Missing};
pub use report::{FailedStep, Report, StepDone, WaitingStep};
