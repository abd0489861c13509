//! Exports a vhost as a spec that reads as if written by hand, and whose plan contains no changes. The export is pure:
//! `broker` reads the vhost, and the caller writes the text.
//!
//! The export recognizes patterns of objects (`recognize`), writes them (`document`), and checks the text (`check`): it
//! reads, expands and plans the text like any spec. If a pattern does not reproduce the current objects, the export
//! writes these objects one by one. Objects that a spec cannot represent are left out and reported. This repeats until
//! the plan has no changes.

mod check;
mod choice;
mod cluster;
mod comments;
mod convergence;
mod document;
mod left_out;
mod objects;
mod recognize;
mod shared;
#[cfg(test)]
mod tests;

pub use cluster::{ClusterExport, export_cluster};
pub use convergence::{Export, ExportError, export};
pub use left_out::{LeftOut, Reason, counted};

use crate::model::{Binding, ObjectId, RecordKind, Topology};
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};

/// The contents of a vhost, and the request.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    /// The objects of the vhost.
    pub topology: &'a Topology,
    /// The objects that topo never changes.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// The `properties_key` values of the bindings.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// Objects of kinds that specs do not support, such as `shovel`, with their names.
    pub unsupported_objects: &'a BTreeMap<String, Vec<String>>,
    /// The kinds of records to export.
    pub with: &'a BTreeSet<RecordKind>,
    /// The holder of the lock of the vhost, if another apply runs.
    pub applying: Option<&'a str>,
    /// True if the topology contains temporary queues. A definitions file contains none.
    pub has_transient_queues: bool,
    /// The behavior of the broker version.
    pub profile: &'a BrokerProfile,
}
