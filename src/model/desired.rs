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
    /// The objects that the spec manages, protects and ignores.
    pub scope: Scope,
    /// The position of each object in the spec, sorted by object.
    pub sources: Vec<(ObjectId, Source)>,
}

impl Desired {
    /// Creates the inputs of a spec that declares nothing in a vhost.
    pub fn nothing(vhost: VhostName) -> Self {
        Self { topology: Topology::missing(vhost), scope: Scope::default(), sources: Vec::new() }
    }
}

/// A position in a spec.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The file name, as the user specified it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The dead-letter queue that the object is part of: an entry of `deadLetterQueues`, or its exchange.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part_of: Option<QueueName>,
    /// The places that set each argument, by argument name; the effective place first. Arguments that only a key of the
    /// object sets are omitted.
    #[serde(skip_serializing_if = "Places::is_empty", default)]
    pub places: Places,
}
