//! The broker client: reads snapshots and activity, performs actions, moves messages, and locks vhosts.
//!
//! This module makes no planning decisions and does not print. It reads neither files nor the environment, except that
//! [`Process`] checks in `/proc` whether the process that holds a lock is still running. The pure function
//! [`request`](crate::plan::request::request) builds the requests that topo shows and sends.

mod access;
pub mod base_url;
mod clients;
mod cluster;
pub mod connect_problem;
pub mod connection;
pub mod credentials;
pub mod error;
mod error_kinds;
pub mod lock;
pub mod message;
pub mod options;
mod perform;
mod plain;
pub mod snapshot;
pub mod transport;

mod answer;
pub mod definitions;
mod definitions_entries;
mod deletion;
mod emptiness;
mod guard;
mod ini;
mod links;
mod permissions;
mod read;
mod record_lists;
mod records;
mod redact;
mod secrets;
mod shovels;
mod statistics;
mod ticks;
mod users;
mod vhosts;
mod wire;

pub use access::{Access, TransportKind};
pub use base_url::{BaseUrl, BaseUrlError, UrlWithLogin};
pub use cluster::ClusterSnapshot;
pub use connect_problem::ConnectProblem;
pub use connection::Broker;
pub use deletion::Performed;
pub use error::BrokerError;
pub use guard::OnProof;
pub use lock::{HeldLock, Holder, LockedBroker, Process};
pub use options::{ClientCertificate, ConnectionOptions, Retries};
pub use permissions::NamesByKind;
pub use read::QueueState;
pub use redact::{redacted_argument, redacted_url, redacted_urls_in};
pub use secrets::{ReadSecret, Secrets};
pub use shovels::ShovelState;
pub use snapshot::{Snapshot, Survey, VhostLists};
pub use statistics::{NodeState, QueueHistory, QueueReading, Window};
pub use users::SecretDefinitions;
pub use vhosts::ListedVhost;
