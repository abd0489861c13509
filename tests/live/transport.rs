//! Messages are moved as they are, each one, and in order; and what goes wrong is said and loses none.

mod breaks;
mod declares;
mod faults;
mod messages;
mod rights;
mod secure;
mod shovels;
pub(crate) mod stage;
