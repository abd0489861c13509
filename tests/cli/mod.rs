//! The command line through the real binary, with no broker.

mod retries;
mod running_works;
mod usage;
mod versions;
