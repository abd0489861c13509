//! Tests topologies: parses test files, runs their cases in the simulation, and compares the results.
//!
//! | file | topic |
//! |---|---|
//! | [`keys`] | the grammar of test files |
//! | [`read`] | parsing a test file into values |
//! | [`case`] | a case: what is published, how workers behave, and what is expected |
//! | [`references`] | names in cases that the topology does not contain, and similar mistakes |
//! | [`stand_ins`] | exchanges and queues that replace external objects |
//! | [`subject`] | the topology that is tested |
//! | [`compare`] | the differences between the expected and simulated results |
//! | [`parts`] | the parts of a topology's routing, and the scenarios in which queues dead-letter messages |
//! | [`coverage`] | the routing coverage that the cases achieve |
//! | [`run`] | running the cases in a file against a topology |
//! | [`snapshot`] | test files that record the routing of a topology |
//! | [`schema`] | the JSON Schema for test files |

mod case;
mod compare;
mod coverage;
mod keys;
mod parts;
mod read;
mod references;
mod run;
pub mod schema;
mod snapshot;
mod stand_ins;
mod subject;
#[cfg(test)]
mod tests;

pub use case::{Attempts, Case, DeadLettered, EndCount, Expected, ExpectedDeath, TestFile, VersionCondition};
pub(crate) use compare::time;
pub use compare::{Aspect, Mismatch};
pub use coverage::{Coverage, CoverageReport, PartCoverage, PartState, coverage};
pub use read::parse;
pub use references::check;
pub use run::{Against, CaseOutcome, CaseResult, FileReport, LiveResult, LiveTarget, run};
pub use snapshot::{SnapshotSource, snapshot};
pub use stand_ins::StandIns;
pub use subject::{OtherTopology, Subject};
