//! The plan as a value: what is shown, saved, gated and carried out. `--format json` and `--out` write it as it is.

use super::hazard::{Hazard, HazardKind};
use super::resolution::Resolution;
use super::{Action, Goal, Migration, QueueActivity, Request, Stage, Verdict};
use crate::model::{
    Address, ArgumentValue, Binding, Object, ObjectId, ObjectKind, OnConflict, QueueName, TopicPermission, VhostName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use crate::model::{Desired, Source};

/// The version of the document's format; a change that breaks readers raises it.
pub const FORMAT_VERSION: u32 = 1;

/// What apply would do, for every vhost of a spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The broker that it was made for.
    pub target: Target,
    /// What it was asked to do beyond the spec.
    pub options: Options,
    /// A hash of all changes and steps, for this cluster; not of message counts, nor of objects that do not change.
    pub fingerprint: String,
    /// Numbers over all vhosts.
    pub summary: Summary,
    /// One a vhost, by name.
    pub vhosts: Vec<VhostPlan>,
    /// A hash of the whole document without this field. Only a saved plan has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_hash: String,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The management API, without user info; or what stands for a broker: `empty`, a definitions file.
    pub url: String,
    /// The cluster's name.
    pub cluster: String,
    /// `RabbitMQ`, as a rule.
    pub product: String,
    /// Its version, as it reports it.
    pub version: String,
}

/// What a plan is asked to do beyond the spec. No allowance is in it: those are given when it is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// Kinds of unmanaged objects to delete (`--prune`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prune: BTreeSet<ObjectKind>,
    /// What to do with single conflicts, instead of what the spec says (`--recreate`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recreate: BTreeMap<Address, OnConflict>,
    /// Address globs; with any, only what they match, and what that needs, is planned (`--target`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<crate::model::Glob>,
    /// Queues whose migration is undone, and nothing else (`--abort`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub abort: BTreeSet<Address>,
}

/// Numbers over changes. A recreate is counted as a recreate, and bindings apart.
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
    /// Objects that differ and cannot be changed as things are: the plan is blocked by them.
    pub conflict: usize,
    /// Bindings to add; those that a recreate restores are not in it.
    pub bind: usize,
    /// Bindings to remove.
    pub unbind: usize,
}

impl Summary {
    /// Whether anything differs, conflicts included.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The plan of one vhost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VhostPlan {
    /// Its name.
    pub vhost: VhostName,
    /// What differs, by kind and name.
    pub changes: Vec<PlannedChange>,
    /// What is live, owned and not declared, and stays because `--prune` was not said.
    pub unmanaged: Vec<Unmanaged>,
    /// Worth knowing, and no obstacle.
    pub infos: Vec<Info>,
    /// What only an edit or another flag lifts; no `--allow` does.
    pub blocks: Vec<Block>,
    /// What can be lost or disturbed, gravest first.
    pub hazards: Vec<Hazard>,
    /// Migrations that were begun and not finished, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub interrupted: Vec<InterruptedMigration>,
    /// The migrations among the steps.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub migrations: Vec<Migration>,
    /// What apply does, in order.
    pub steps: Vec<Step>,
    /// How many objects, bindings not counted, were compared.
    pub compared_objects: usize,
    /// How many bindings were compared.
    pub compared_bindings: usize,
    /// What it was computed from, so that a saved plan can be computed again.
    // Shared, because of a large spec it is much.
    #[serde(with = "shared")]
    #[schemars(with = "Desired")]
    pub desired: Arc<Desired>,
}

/// In a document, what is shared is the value itself.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<T: Serialize, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// What shall happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// It is made.
    Create,
    /// It is changed in place.
    Change,
    /// It is deleted and made again, with all its bindings.
    Recreate,
    /// It is deleted.
    Delete,
    /// It cannot be changed as things are.
    Conflict,
}

/// One object that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// Its address, as `--target` and `--allow` take it.
    pub address: Address,
    /// What happens.
    pub kind: ChangeKind,
    /// As it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Object>,
    /// As it shall be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Object>,
    /// The fields that differ; empty for creates and deletes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldVerdict>,
    /// What the broker would say, and the ways out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conflict: Option<Conflict>,
    /// What the live queue was doing; only where something may be lost or disturbed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub live: Option<QueueActivity>,
    /// The bindings that a recreate restores.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kept: Option<KeptBindings>,
    /// The live bindings that go with what is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unbound: Vec<Binding>,
    /// Where it stands in the spec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// Why a deletion is made: `removed`, `unmanaged` or `retired`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<crate::diff::DeleteReason>,
    /// The queue whose retries it was generated for, if it is retired.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retires: Option<QueueName>,
}

impl PlannedChange {
    /// What it is about.
    pub fn id(&self) -> Option<ObjectId> {
        self.after.as_ref().or(self.before.as_ref()).map(Object::id)
    }
}

/// One field that differs, and what that means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldVerdict {
    /// RabbitMQ's name for it.
    pub field: String,
    /// The live value; `null` is absent.
    pub before: Option<ArgumentValue>,
    /// The desired value; `null` is absent.
    pub after: Option<ArgumentValue>,
    /// What the broker makes of it.
    pub verdict: Verdict,
}

/// Why an object cannot change in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// What an application gets that declares the desired object now; the broker's own sentence. `None` for drift:
    /// the broker answers "done" and changes nothing.
    pub broker_error: Option<String>,
    /// What an application gets that still declares the live object once it has been recreated; the broker's own
    /// sentence. A passive declare is not compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_after_recreate: Option<String>,
    /// What becomes of a declare without `x-queue-type`, where the broker's default makes a difference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub typeless_declare: Option<String>,
    /// What is to be done with it.
    pub on_conflict: OnConflict,
    /// What one can do, most gentle first; only where the plan is blocked by it.
    pub resolutions: Vec<Resolution>,
}

/// The bindings and topic permissions that a recreate restores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptBindings {
    /// How many of them the spec declares.
    pub declared: usize,
    /// Those that somebody else made.
    pub unmanaged: Vec<Binding>,
    /// The topic permissions on an exchange; only where the broker deletes them with it, and this user may read them.
    #[serde(rename = "topicPermissions", skip_serializing_if = "Option::is_none", default)]
    pub topic_permissions: Option<Vec<TopicPermission>>,
}

/// Something live and owned that the spec does not declare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Unmanaged {
    /// Its address.
    pub address: Address,
    /// What it is.
    pub object: ObjectId,
}

/// Something worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    /// What it is about.
    pub address: Address,
    /// In one sentence.
    pub text: String,
}

/// A migration that was begun and not finished.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct InterruptedMigration {
    /// The queue.
    pub address: Address,
    /// What is left to do, in one sentence.
    pub text: String,
    /// The holder of the vhost's lock, if another apply runs now: it may be the one that migrates.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applying: Option<String>,
}

impl InterruptedMigration {
    /// What a plan calls it: no other apply runs that could be its own.
    pub fn label(&self) -> &'static str {
        if self.applying.is_some() { "migrating" } else { "interrupted" }
    }
}

/// Something that no allowance lifts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// What it is about.
    pub address: Address,
    /// Why, in one sentence.
    pub text: String,
    /// What lifts it, as something to type or to edit.
    pub remedy: Option<String>,
    /// The flag that lifts it, where a flag alone does and nothing is lost by it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flag: Option<String>,
}

/// One operation of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// From 1, in order.
    pub id: usize,
    /// Steps of one wave do not depend on each other and may run at once; waves run one after another.
    pub wave: usize,
    /// The steps whose effect this one needs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<usize>,
    /// The object whose recreate it is part of: once such a recreate has begun it is finished, also on an interrupt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recreate: Option<ObjectId>,
    /// Where it stands in the migration that it is part of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stage: Option<Stage>,
    /// The object that it is about.
    pub address: Address,
    /// The operation.
    pub action: Action,
    /// The request that is sent for it; a transport has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<Request>,
}

impl VhostPlan {
    /// Whether the vhost does not exist yet, or is not visible to the user.
    pub fn creates_vhost(&self) -> bool {
        let is_vhost = |change: &PlannedChange| matches!(change.after, Some(Object::Vhost(_)));
        self.changes.iter().any(|change| is_vhost(change) && change.kind == ChangeKind::Create)
    }

    /// Whether the queue of that address is migrated, with that goal.
    pub fn is_migrated(&self, address: &Address, goal: Goal) -> bool {
        self.migrations.iter().any(|migration| {
            let queue = ObjectId::Queue(migration.queue.clone());
            migration.goal == goal && Address::of(&self.vhost, &queue) == *address
        })
    }

    /// Whether the plan knows that an object to be deleted is bound, and says so as a hazard (or deletes a queue, whose
    /// bindings are expected to go with it).
    pub fn may_be_bound(&self, address: &Address) -> bool {
        let exchange = self
            .changes
            .iter()
            .any(|change| change.address == *address && matches!(change.before, Some(Object::Exchange(..))));
        let known = |hazard: &Hazard| hazard.kind == HazardKind::RoutingGap && hazard.address == *address;
        !exchange || self.hazards.iter().any(known)
    }
}

impl Plan {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.summary.is_empty() && self.vhosts.iter().all(|part| part.steps.is_empty() && part.blocks.is_empty())
    }

    /// All hazards with the vhost's plan that they are in.
    pub fn hazards(&self) -> impl Iterator<Item = &Hazard> {
        self.vhosts.iter().flat_map(|part| &part.hazards)
    }

    /// All blocks.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.vhosts.iter().flat_map(|part| &part.blocks)
    }

    /// How many steps there are.
    pub fn step_count(&self) -> usize {
        self.vhosts.iter().map(|part| part.steps.len()).sum()
    }
}
