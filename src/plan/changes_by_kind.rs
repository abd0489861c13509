//! Collects the parts of a plan before its steps are ordered, and groups its changes by operation. The groups do not
//! include conflicts.

use super::document::{Block, ChangeKind, Info, InterruptedMigration, PlannedChange, Summary, Unmanaged, VhostPlan};
use super::hazard::{Hazard, HazardKind};
use super::migrate::Migration;
use crate::model::{
    Address, Binding, Exchange, ExchangeName, Object, ObjectId, Policy, PolicyName, Queue, QueueName, Vhost,
};
use std::collections::{BTreeMap, BTreeSet};

/// The changes of a plan, grouped by operation. Does not contain conflicts or records that are created or changed.
#[derive(Default)]
pub(super) struct ChangesByKind {
    pub(super) vhost: Option<Vhost>,
    pub(super) exchanges: BTreeMap<ExchangeName, Exchange>,
    pub(super) policies: BTreeMap<PolicyName, Policy>,
    pub(super) queues: BTreeMap<QueueName, Queue>,
    pub(super) bindings: BTreeSet<Binding>,
    pub(super) recreates: Vec<Object>,
    pub(super) deletions: Vec<Object>,
}

impl ChangesByKind {
    /// Groups the changes of a plan by operation.
    pub(super) fn group(changes: &[PlannedChange]) -> Self {
        let mut grouped = Self::default();
        for change in changes {
            match (change.kind, &change.before, &change.after) {
                (ChangeKind::Create | ChangeKind::Change, before, Some(after)) => grouped.put(before.as_ref(), after),
                (ChangeKind::Recreate, _, Some(after)) => grouped.recreates.push(after.clone()),
                (ChangeKind::Delete, Some(before), _) => grouped.deletions.push(before.clone()),
                (
                    ChangeKind::Create
                    | ChangeKind::Change
                    | ChangeKind::Recreate
                    | ChangeKind::Delete
                    | ChangeKind::Conflict,
                    _,
                    _,
                ) => {}
            }
        }
        grouped
    }

    fn put(&mut self, before: Option<&Object>, after: &Object) {
        match after {
            Object::Vhost(desired) => {
                let live = match before {
                    Some(Object::Vhost(live)) => live.clone(),
                    Some(
                        Object::Exchange(..)
                        | Object::Policy(..)
                        | Object::Queue(..)
                        | Object::Binding(_)
                        | Object::Record(_),
                    )
                    | None => Vhost::default(),
                };
                // A PUT clears a missing description and missing tags on RabbitMQ 3.10 and later, and resets a missing
                // default queue type on 4.1.1 and later.
                self.vhost = Some(Vhost {
                    description: desired.description.clone().or(live.description),
                    tags: desired.tags.clone().or(live.tags),
                    default_queue_type: desired.default_queue_type.clone().or(live.default_queue_type),
                });
            }
            Object::Exchange(name, exchange) => {
                self.exchanges.insert(name.clone(), exchange.clone());
            }
            Object::Policy(name, policy) => {
                self.policies.insert(name.clone(), policy.clone());
            }
            Object::Queue(name, queue) => {
                self.queues.insert(name.clone(), queue.clone());
            }
            Object::Binding(binding) => {
                self.bindings.insert(binding.clone());
            }
            // `order` reads the records directly from the changes.
            Object::Record(_) => {}
        }
    }
}

/// The parts of a plan before its steps are ordered.
#[derive(Default)]
pub(super) struct PlanBuilder {
    pub(super) changes: Vec<PlannedChange>,
    pub(super) unmanaged: Vec<Unmanaged>,
    pub(super) infos: Vec<Info>,
    pub(super) blocks: Vec<Block>,
    pub(super) hazards: Vec<Hazard>,
    pub(super) migrations: Vec<Migration>,
    pub(super) interrupted: Vec<InterruptedMigration>,
}

impl PlanBuilder {
    pub(super) fn hazard(&mut self, kind: HazardKind, address: &Address, text: String, messages: Option<u64>) {
        let must_be_allowed = kind != HazardKind::PolicyShift;
        self.hazards.push(Hazard { kind, address: address.clone(), text, messages, must_be_allowed });
    }

    pub(super) fn block(&mut self, address: &Address, text: String, remedy: Option<String>) {
        self.blocks.push(Block { address: address.clone(), text, remedy, flag: None });
    }

    pub(super) fn info(&mut self, address: &Address, text: String) {
        self.infos.push(Info { address: address.clone(), text });
    }

    /// Returns the objects that the plan deletes with separate changes. A recreation is not a deletion.
    pub(super) fn deleted_ids(&self) -> BTreeSet<ObjectId> {
        self.changes.iter().filter(|change| change.kind == ChangeKind::Delete).filter_map(PlannedChange::id).collect()
    }

    /// Returns the bindings that the plan deletes with separate changes, not together with their source or destination.
    pub(super) fn undesired_bindings(&self) -> BTreeSet<Binding> {
        self.changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Delete)
            .filter_map(|change| match &change.before {
                Some(Object::Binding(binding)) => Some(binding.clone()),
                Some(
                    Object::Vhost(_)
                    | Object::Exchange(..)
                    | Object::Policy(..)
                    | Object::Queue(..)
                    | Object::Record(_),
                )
                | None => None,
            })
            .collect()
    }
}

/// Returns the number of changes of each kind across all parts.
pub(super) fn summary<'a>(parts: impl Iterator<Item = &'a VhostPlan>) -> Summary {
    let mut summary = Summary::default();
    for change in parts.flat_map(|part| &part.changes) {
        let is_binding = matches!(change.id(), Some(ObjectId::Binding(_)));
        let count = match change.kind {
            ChangeKind::Create if is_binding => &mut summary.bind,
            ChangeKind::Create => &mut summary.create,
            ChangeKind::Delete if is_binding => &mut summary.unbind,
            ChangeKind::Delete => &mut summary.delete,
            ChangeKind::Change => &mut summary.change,
            ChangeKind::Recreate => &mut summary.recreate,
            ChangeKind::Conflict => &mut summary.conflict,
        };
        *count += 1;
    }
    summary
}
