//! Tests of topologies: parses test files, runs their cases in the simulation, and compares the results.
//!
//! | file | topic |
//! |---|---|
//! | [`keys`] | the grammar of test files |
//! | [`read`] | a test file as values |
//! | [`case`] | a case: what is published, how workers behave, and what is expected |
//! | [`references`] | names that the topology does not contain, and cases that cannot fail |
//! | [`subject`] | the topology that is tested |
//! | [`compare`] | the differences between the expected and the simulated result |
//! | [`run`] | the cases of a file against a topology |
//! | [`schema`] | the JSON Schema of test files |

mod case;
mod compare;
mod keys;
mod read;
mod references;
mod run;
pub mod schema;
mod subject;
#[cfg(test)]
mod tests;

pub use case::{Attempts, Case, DeadLettered, EndCount, Expected, ExpectedDeath, TestFile, VersionCondition};
pub(crate) use compare::time;
pub use compare::{Aspect, Mismatch};
pub use read::parse;
pub use references::check;
pub use run::{CaseOutcome, CaseResult, FileReport, run};
pub use subject::Subject;
