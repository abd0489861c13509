//! Defines the part of a plan for one vhost or for the cluster: changes, hazards and steps.

use super::action::Action;
use super::activity::QueueActivity;
use super::hazard::{Hazard, HazardKind};
use super::migrate::{Goal, Migration, Stage};
use super::request::Request;
use super::resolution::Resolution;
use super::routing_changes::RoutingChanges;
use super::verdict::Verdict;
use crate::model::{
    Address, ArgumentValue, Binding, Desired, Object, ObjectId, OnConflict, QueueName, Source, TopicPermission,
    VhostName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The plan of one vhost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VhostPlan {
    /// The name of the vhost.
    pub vhost: VhostName,
    /// The objects that differ.
    pub changes: Vec<PlannedChange>,
    /// Unmanaged objects that match `owns`. topo keeps these objects, because `--prune` does not include their kind.
    pub unmanaged: Vec<Unmanaged>,
    /// Notes that do not block the plan.
    pub infos: Vec<Info>,
    /// Blockers that `--allow` does not resolve: they require an edit or a different flag.
    pub blocks: Vec<Block>,
    /// The hazards of the plan, most severe first.
    pub hazards: Vec<Hazard>,
    /// The interrupted migrations.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub interrupted: Vec<InterruptedMigration>,
    /// The migrations that the steps execute.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub migrations: Vec<Migration>,
    /// The messages that reach different queues after the steps.
    #[serde(skip_serializing_if = "RoutingChanges::is_empty", default)]
    pub routing: RoutingChanges,
    /// The steps that `topo apply` executes, in order.
    pub steps: Vec<Step>,
    /// The number of objects that were compared, excluding bindings.
    pub compared_objects: usize,
    /// The number of bindings that were compared.
    pub compared_bindings: usize,
    /// The desired topology, from which topo can recompute a saved plan.
    // Shared, because the desired topology of a large spec is large.
    #[serde(with = "shared")]
    #[schemars(with = "Desired")]
    pub desired: Arc<Desired>,
}

/// Serializes an `Arc` as the value that it contains.
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

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// The object is created.
    Create,
    /// The object is changed in place.
    Change,
    /// The object is deleted and created again, and its bindings are restored.
    Recreate,
    /// The object is deleted.
    Delete,
    /// The object differs in a setting that cannot change in place.
    Conflict,
}

/// The planned change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// The address of the object, in the form that `--target` and `--allow` accept.
    pub address: Address,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The current object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Object>,
    /// The desired object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Object>,
    /// The fields that differ; empty for creates and deletes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldVerdict>,
    /// The conflict, if the object cannot change in place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conflict: Option<Conflict>,
    /// The activity of the current queue, if it is known. Set only if the queue is deleted, recreated or in conflict.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub live: Option<QueueActivity>,
    /// The bindings to restore after the object is recreated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kept: Option<KeptBindings>,
    /// The current bindings that the broker deletes together with the object. Set only for deletes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unbound: Vec<Binding>,
    /// The origin of the object in the spec.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// The reason for a deletion: `removed`, `unset`, `unmanaged` or `retired`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<crate::diff::DeleteReason>,
    /// For a retired object, the queue whose retries the object belongs to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retires: Option<QueueName>,
}

impl PlannedChange {
    /// Returns the object that changes; `None` if the change contains neither a current nor a desired object.
    pub fn id(&self) -> Option<ObjectId> {
        self.after.as_ref().or(self.before.as_ref()).map(Object::id)
    }
}

/// One field that differs, with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldVerdict {
    /// The name of the field in RabbitMQ.
    pub field: String,
    /// The current value; `null` if the field is absent.
    pub before: Option<ArgumentValue>,
    /// The desired value; `null` if the field is absent.
    pub after: Option<ArgumentValue>,
    /// The broker's response to the difference.
    pub verdict: Verdict,
}

/// A change that the broker refuses or ignores on an existing object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The broker's error message for an application that declares the desired object now. `null` for drift: the broker
    /// accepts the declaration and changes nothing. The type of an integer in the message depends on the client.
    pub broker_error: Option<String>,
    /// The broker's error message for an application that still declares the current settings after the object is
    /// recreated. A passive declaration does not cause this error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_after_recreate: Option<String>,
    /// The result of a declaration without `x-queue-type`, if the broker's default type makes a difference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub typeless_declare: Option<String>,
    /// The `onConflict` setting of the object, from `--recreate` or the spec. The default is `refuse`.
    pub on_conflict: OnConflict,
    /// The possible resolutions, least disruptive first. Set only if the conflict blocks the plan.
    pub resolutions: Vec<Resolution>,
}

/// The bindings and topic permissions to restore after an object is recreated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptBindings {
    /// The number of bindings that the spec declares.
    pub declared: usize,
    /// The bindings that the spec does not declare.
    pub unmanaged: Vec<Binding>,
    /// The topic permissions on an exchange. Set only if the broker deletes topic permissions together with their
    /// exchange and the connected user may read topic permissions.
    #[serde(rename = "topicPermissions", skip_serializing_if = "Option::is_none", default)]
    pub topic_permissions: Option<Vec<TopicPermission>>,
}

/// An unmanaged object that matches `owns`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Unmanaged {
    /// The address of the object.
    pub address: Address,
    /// The object.
    pub object: ObjectId,
}

/// A note that does not block the plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    /// The address of the object.
    pub address: Address,
    /// The note, in one sentence.
    pub text: String,
}

/// A migration that was started but not completed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct InterruptedMigration {
    /// The address of the queue.
    pub address: Address,
    /// The state of the migration, and how to complete the migration.
    pub text: String,
    /// The holder of the vhost's lock, if another apply is running. That apply may be migrating the queue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applying: Option<String>,
}

impl InterruptedMigration {
    /// Returns the label that plans show. Returns `migrating` if another apply is running, because that apply may be
    /// migrating the queue. Otherwise, returns `interrupted`.
    pub fn label(&self) -> &'static str {
        if self.applying.is_some() { "migrating" } else { "interrupted" }
    }
}

/// A blocker that no allowance resolves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// The address of the object.
    pub address: Address,
    /// The reason, in one sentence.
    pub text: String,
    /// The remedy: a command to run or an edit to make.
    pub remedy: Option<String>,
    /// The flag that resolves the blocker, if a flag alone is enough and no messages are lost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub flag: Option<String>,
}

/// One operation of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The number of the step, starting from 1.
    pub id: usize,
    /// The wave of the step. Steps of one wave may run concurrently, except that the steps of one migration run in
    /// sequence. Waves run in sequence.
    pub wave: usize,
    /// The numbers of the steps that must be completed before this step.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<usize>,
    /// The object that this step helps to recreate. Once topo starts to recreate an object, it completes the recreation
    /// even if the user interrupts the apply.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recreate: Option<ObjectId>,
    /// The migration stage to which this step belongs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stage: Option<Stage>,
    /// True if the step belongs to the cluster and runs after the steps of all vhosts. Deferred steps are the last
    /// steps of the cluster.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_deferred: bool,
    /// The address of the object that the step changes.
    pub address: Address,
    /// The operation.
    pub action: Action,
    /// The request that performs the operation. Absent if the operation moves messages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<Request>,
}

impl VhostPlan {
    /// Returns true if the plan creates the vhost, because the vhost does not exist or is not visible to the user.
    pub fn creates_vhost(&self) -> bool {
        let is_vhost = |change: &PlannedChange| matches!(change.after, Some(Object::Vhost(_)));
        self.changes.iter().any(|change| is_vhost(change) && change.kind == ChangeKind::Create)
    }

    /// Returns true if the plan migrates the queue at `address` with `goal`.
    pub fn is_migrated(&self, address: &Address, goal: Goal) -> bool {
        self.migrations.iter().any(|migration| {
            let queue = ObjectId::Queue(migration.queue.clone());
            migration.goal == goal && Address::of(&self.vhost, &queue) == *address
        })
    }

    /// Returns true if topo may delete the object while the object has bindings. topo may delete an exchange with
    /// bindings only if the plan contains a `routing-gap` hazard for the exchange. Other objects are not restricted.
    pub fn may_be_bound(&self, address: &Address) -> bool {
        let exchange = self
            .changes
            .iter()
            .any(|change| change.address == *address && matches!(change.before, Some(Object::Exchange(..))));
        let known = |hazard: &Hazard| hazard.kind == HazardKind::RoutingGap && hazard.address == *address;
        !exchange || self.hazards.iter().any(known)
    }
}
