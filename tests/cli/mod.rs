//! The command line through the real binary, with no broker.

mod running_works;
mod usage;
mod versions;
