//! Transports move every message unchanged and in order. Errors are reported and lose no message.

mod broken_connections;
mod declarations;
mod faults;
pub(crate) mod fixture;
mod messages;
mod rights;
mod shovels;
mod tls;
