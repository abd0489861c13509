//! Exports a vhost as an idiomatic spec whose plan contains no changes. The export itself performs no I/O. `broker`
//! reads the vhost, and the caller writes the text.
//!
//! The export recognizes patterns of objects (`recognize`), writes the spec (`document`), and checks the spec
//! (`check`). The check parses, expands and plans the spec like any other spec. If a pattern does not reproduce the
//! current objects, the next attempt writes these objects one by one. Objects that a spec cannot represent are left out
//! and reported. The export repeats these steps until the plan contains no changes. It returns an [`ExportError`] if an
//! attempt can neither write further objects one by one nor leave them out.

mod check;
mod choice;
mod cluster;
mod comments;
mod convergence;
mod document;
mod expanded;
mod left_out;
mod links;
mod objects;
mod recognize;
mod shared;
#[cfg(test)]
mod tests;
mod transient;

pub use cluster::{ClusterExport, export_cluster};
pub use convergence::{Export, ExportError, export};
pub use expanded::expanded_text;
pub use left_out::{LeftOut, Reason, format_count_and_names};
pub use links::reference_passwords;

use crate::model::{Binding, ObjectId, RecordKind, Topology};
use crate::rabbitmq::BrokerProfile;
use std::collections::{BTreeMap, BTreeSet};

/// The current contents of a vhost, and the options of an export.
#[derive(Clone, Copy)]
pub struct CurrentVhost<'a> {
    /// The objects in the vhost.
    pub topology: &'a Topology,
    /// The objects that topo never changes.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// The `properties_key` values of each binding.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// The names of objects that a spec cannot represent, by kind, such as `shovel`.
    pub unsupported_objects: &'a BTreeMap<String, Vec<String>>,
    /// The kinds of records to export.
    pub record_kinds: &'a BTreeSet<RecordKind>,
    /// The holder of the vhost's lock; `None` if no apply is running.
    pub lock_holder: Option<&'a str>,
    /// True if the topology includes transient queues; false for a definitions file, which does not contain them.
    pub includes_transient_queues: bool,
    /// The profile of the broker.
    pub profile: &'a BrokerProfile,
}
