//! Tests that transports move every message unchanged and in order, and report errors without losing messages.

mod broken_connections;
mod declarations;
mod faults;
pub(crate) mod fixture;
mod messages;
mod rights;
mod shovels;
mod tls;
