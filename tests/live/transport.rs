//! Messages are moved as they are, each one, and in order; and what goes wrong is said and loses none.

mod broken_connections;
mod declarations;
mod faults;
pub(crate) mod fixture;
mod messages;
mod rights;
mod shovels;
mod tls;
