//! The desired topology of a vhost, with the parts of its spec that a plan needs.

use super::{ObjectId, Places, QueueName, Scope, Topology, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The inputs of a plan that come from a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Desired {
    /// The topology that the spec expands to.
    pub topology: Topology,
    /// Whose objects are whose.
    pub scope: Scope,
    /// Where each object stands in the spec, sorted by object.
    pub sources: Vec<(ObjectId, Source)>,
}

impl Desired {
    /// A spec that says nothing of a vhost.
    pub fn nothing(vhost: VhostName) -> Self {
        Self { topology: Topology::missing(vhost), scope: Scope::default(), sources: Vec::new() }
    }
}

/// A place in a spec.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The dead-letter queue that it is part of: one of `deadLetterQueues`, or its exchange.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part_of: Option<QueueName>,
    /// By the names of arguments, where the spec says them, the place that holds first. What only a key of the object
    /// itself says is left out.
    #[serde(skip_serializing_if = "Places::is_empty", default)]
    pub places: Places,
}
