//! Runs the cases of test files on a broker, in scratch vhosts, and compares the results with the simulation.
//!
//! The offline result of a case is valid for the broker if the broker and the simulation agree on everything that an
//! application can observe. An application can observe the replies to the publisher, the deliveries to workers, and the
//! messages that remain in queues. A difference indicates a bug in topo, or another client in the vhost.
//!
//! All delays and TTLs are divided by a number, so that a case with long delays takes seconds. The cases in a vhost run
//! sequentially. Several vhosts run concurrently.
//!
//! | file | topic |
//! |---|---|
//! | [`scratch`] | the scratch vhosts: names, creation, deletion, and the vhosts of killed runs |
//! | [`scale`] | the times of a topology, divided by a number |
//! | [`preparation`] | the cases to run, and the reasons why other cases do not run |
//! | [`declare`] | the declaration of a topology in a scratch vhost |
//! | [`worker`] | a worker that follows its contract |
//! | [`execution`] | a case on the broker |
//! | [`log`] | the deliveries to workers |
//! | [`observation`] | the observable result of a case, and its comparison with the simulation |
//! | [`run`] | the cases in the scratch vhosts |
//! | [`error`] | the errors |

mod declare;
mod error;
mod execution;
mod log;
mod observation;
mod preparation;
mod run;
mod scale;
mod scratch;
mod worker;

pub use declare::{clear, expect_empty};
pub use error::LiveError;
pub use preparation::{Preparation, RunnableCase, prepare};
pub use run::{Verdict, run};
pub use scale::Scale;
pub use scratch::{Leftover, create, delete, leftovers, new_name};
