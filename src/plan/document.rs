//! The plan as a value that topo shows, saves, checks and executes. `--format json` and `--out` write this value.

use super::hazard::Hazard;
use super::routing_changes::RoutingChanges;
use crate::model::record::as_list;
use crate::model::{Address, ObjectId, ObjectKind, OnConflict, Record, Records, Scope, Topology, VhostName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use super::part::{
    Block, ChangeKind, Conflict, FieldVerdict, Info, InterruptedMigration, KeptBindings, PlannedChange, Step,
    Unmanaged, VhostPlan,
};
pub use crate::model::{Desired, Source};

/// The version of the document format. Every incompatible change increments the version.
pub const FORMAT_VERSION: u32 = 1;

/// The changes that `topo apply` would make to the cluster and to every vhost of a spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The version of the document format. This version of topo writes and reads [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The broker for which the plan was made.
    pub target: Target,
    /// The options of the plan.
    pub options: Options,
    /// A hash of the cluster name, the options, all changes and steps, and the hazards that do not depend on counts.
    /// The hash does not include unchanged objects.
    pub fingerprint: String,
    /// The totals for all parts.
    pub summary: Summary,
    /// The plan for the cluster; absent if no spec describes the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPlan>,
    /// The plan for each vhost, by name.
    pub vhosts: Vec<VhostPlan>,
    /// A hash of the whole document without this field. Empty unless the plan was saved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_hash: String,
}

/// The broker for which a plan was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The URL of the management API, without user info. For a plan without a broker: `empty`, or the name of the
    /// definitions file.
    pub url: String,
    /// The name of the cluster. Empty for a plan without a broker.
    pub cluster: String,
    /// The product name, usually `RabbitMQ`.
    pub product: String,
    /// The version that the broker reports, or the version that a plan without a broker assumes.
    pub version: String,
}

/// The command-line options that, together with the spec, determine a plan. Allowances are not included, because they
/// belong to an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// The environment of the specs (`--env`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Kinds of unmanaged objects to delete (`--prune`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prune: BTreeSet<ObjectKind>,
    /// The resolutions of individual conflicts (`--recreate`). They override the `onConflict` settings of the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recreate: BTreeMap<Address, OnConflict>,
    /// Address globs (`--target`). If the list is not empty, the plan contains only the matching objects and their
    /// dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<crate::model::Glob>,
    /// The queues whose migrations are rolled back (`--abort`). If the set is not empty, the plan contains only these
    /// rollbacks.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub abort: BTreeSet<Address>,
}

/// The number of changes of each kind. Recreating an object is one change, and bindings are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects to create.
    pub create: usize,
    /// Objects to change in place.
    pub change: usize,
    /// Objects to delete and create again.
    pub recreate: usize,
    /// Objects to delete.
    pub delete: usize,
    /// Objects that differ in a setting that cannot change in place. Each of these objects blocks the plan.
    pub conflict: usize,
    /// Bindings to create, except bindings that topo restores after it recreates an object.
    pub bind: usize,
    /// Bindings to delete.
    pub unbind: usize,
}

impl Summary {
    /// Returns true if the plan contains no changes and no conflicts.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The plan for the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ClusterDocument", into = "ClusterDocument")]
#[schemars(with = "ClusterDocument")]
pub struct ClusterPlan(VhostPlan);

impl ClusterPlan {
    pub(super) fn new(part: VhostPlan) -> Self {
        Self(part)
    }

    /// Returns the plan for the cluster as a [`VhostPlan`] that contains only records.
    pub fn part(&self) -> &VhostPlan {
        &self.0
    }

    /// Returns a mutable reference to the plan that [`Self::part`] returns.
    pub fn part_mut(&mut self) -> &mut VhostPlan {
        &mut self.0
    }
}

impl Plan {
    /// Returns the plan for the cluster, if there is one, and the plans for the vhosts, in execution order.
    pub fn parts(&self) -> impl Iterator<Item = &VhostPlan> {
        self.cluster.iter().map(ClusterPlan::part).chain(&self.vhosts)
    }

    /// Returns mutable references to the plans that [`Self::parts`] returns.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut VhostPlan> {
        self.cluster.iter_mut().map(ClusterPlan::part_mut).chain(&mut self.vhosts)
    }

    /// Returns true if the plan contains no changes, no steps and no blocks.
    pub fn is_empty(&self) -> bool {
        self.summary.is_empty() && self.parts().all(|part| part.steps.is_empty() && part.blocks.is_empty())
    }

    /// Returns the hazards in all parts.
    pub fn hazards(&self) -> impl Iterator<Item = &Hazard> {
        self.parts().flat_map(|part| &part.hazards)
    }

    /// Returns the blocks in all parts.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts().flat_map(|part| &part.blocks)
    }

    /// Returns the number of steps.
    pub fn step_count(&self) -> usize {
        self.parts().map(|part| part.steps.len()).sum()
    }
}

/// The serialized form of [`ClusterPlan`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterPlan")]
struct ClusterDocument {
    /// The objects that differ. Creations and changes precede deletions.
    changes: Vec<PlannedChange>,
    /// Unmanaged objects that match `owns`. topo keeps these objects, because `--prune` does not include their kind.
    unmanaged: Vec<Unmanaged>,
    /// Notes that do not block the plan.
    infos: Vec<Info>,
    /// Blockers that `--allow` does not resolve: they require an edit or a different flag.
    blocks: Vec<Block>,
    /// The hazards of the plan, most severe first.
    hazards: Vec<Hazard>,
    /// The steps, in order. `topo apply` executes them before the steps of the vhosts.
    steps: Vec<Step>,
    /// The number of objects that were compared.
    compared_objects: usize,
    /// The desired objects, from which topo can recompute a saved plan.
    desired: DesiredRecords,
}

/// The desired objects of the cluster.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DesiredCluster")]
struct DesiredRecords {
    /// The objects that the spec declares.
    #[serde(with = "as_list")]
    #[schemars(with = "Vec<Record>")]
    records: Records,
    /// The objects that the spec manages, protects and ignores.
    scope: Scope,
    /// The position of each object in the spec, sorted by object.
    sources: Vec<(ObjectId, Source)>,
}

impl From<ClusterPlan> for ClusterDocument {
    fn from(ClusterPlan(part): ClusterPlan) -> Self {
        let Desired { topology, scope, sources } = Arc::unwrap_or_clone(part.desired);
        Self {
            changes: part.changes,
            unmanaged: part.unmanaged,
            infos: part.infos,
            blocks: part.blocks,
            hazards: part.hazards,
            steps: part.steps,
            compared_objects: part.compared_objects,
            desired: DesiredRecords { records: topology.records, scope, sources },
        }
    }
}

impl From<ClusterDocument> for ClusterPlan {
    fn from(document: ClusterDocument) -> Self {
        let DesiredRecords { records, scope, sources } = document.desired;
        Self(VhostPlan {
            vhost: VhostName::cluster(),
            changes: document.changes,
            unmanaged: document.unmanaged,
            infos: document.infos,
            blocks: document.blocks,
            hazards: document.hazards,
            interrupted: Vec::new(),
            migrations: Vec::new(),
            routing: RoutingChanges::default(),
            steps: document.steps,
            compared_objects: document.compared_objects,
            compared_bindings: 0,
            desired: Arc::new(Desired { topology: Topology::of_cluster(records), scope, sources }),
        })
    }
}
