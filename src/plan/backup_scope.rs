//! Collects the current objects that a plan deletes or changes, for a backup.

use super::action::Action;
use super::document::{ChangeKind, VhostPlan};
use super::migrate::remove_migration_objects;
use super::migrate::{Goal, Migration};
use crate::model::{Binding, Object, ObjectId, RecordId, Topology};
use std::collections::BTreeSet;

impl VhostPlan {
    /// Returns true if the plan deletes or recreates objects, removes bindings, or changes a policy or a record. The
    /// spec cannot restore the state that such a plan removes. A plan that only rolls back migrations is not
    /// destructive.
    pub fn is_destructive(&self) -> bool {
        let changes_policy = |change: &super::PlannedChange| {
            change.kind == ChangeKind::Change && matches!(change.before, Some(Object::Policy(..) | Object::Record(_)))
        };
        let is_deletion = |action: &Action| match action {
            Action::Unbind { .. }
            | Action::DeleteQueue { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::DeleteRecord { .. } => true,
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::MoveMessages { .. }
            | Action::PutRecord { .. } => false,
        };
        let is_only_rollback =
            self.migrations.iter().all(|migration| migration.goal == Goal::RollBack) && self.changes.is_empty();
        !is_only_rollback
            && (self.steps.iter().any(|step| is_deletion(&step.action)) || self.changes.iter().any(changes_policy))
    }

    /// Returns the current objects that the plan changes, deletes or recreates, and the settings of the vhost. The
    /// result includes all bindings of these objects, including unmanaged bindings. It contains migrated queues in
    /// their state before the migration.
    pub fn affected_objects(&self, live: &Topology) -> Topology {
        let deleted_object = |action: &Action| match action {
            Action::DeleteQueue { .. }
            | Action::DeleteExchange { .. }
            | Action::DeletePolicy { .. }
            | Action::DeleteRecord { .. }
            | Action::Unbind { .. } => Some(action.object()),
            Action::PutVhost { .. }
            | Action::DeclareExchange { .. }
            | Action::PutTopicPermission { .. }
            | Action::PutPolicy { .. }
            | Action::DeclareQueue { .. }
            | Action::Bind { .. }
            | Action::MoveMessages { .. }
            | Action::PutRecord { .. } => None,
        };
        let mut ids: BTreeSet<ObjectId> = self.steps.iter().filter_map(|step| deleted_object(&step.action)).collect();
        ids.extend(self.changes.iter().filter(|change| change.before.is_some()).filter_map(super::PlannedChange::id));
        ids.extend(self.migrations.iter().map(|Migration { queue, .. }| ObjectId::Queue(queue.clone())));
        let mut affected = Topology::missing(live.vhost.clone());
        affected.settings.clone_from(&live.settings);
        let (exchanges, queues, policies) = (live.exchanges.iter(), live.queues.iter(), live.policies.iter());
        let is_in = |id: ObjectId| ids.contains(&id);
        affected.exchanges = exchanges
            .filter(|(name, _)| is_in(ObjectId::Exchange((*name).clone())))
            .map(|(name, exchange)| (name.clone(), exchange.clone()))
            .collect();
        affected.queues = queues
            .filter(|(name, _)| is_in(ObjectId::Queue((*name).clone())))
            .map(|(name, queue)| (name.clone(), queue.clone()))
            .collect();
        affected.policies = policies
            .filter(|(name, _)| is_in(ObjectId::Policy((*name).clone())))
            .map(|(name, policy)| (name.clone(), policy.clone()))
            .collect();
        // A definitions file stores all settings of an owner together, so the backup includes all of them.
        let is_of = |owner: &RecordId, id: &RecordId| owner.kind == id.kind && owner.name() == id.name();
        let is_touched = |id: &RecordId| ids.iter().any(|it| matches!(it, ObjectId::Record(owner) if is_of(owner, id)));
        let records = live.records.iter().filter(|(id, _)| is_touched(id));
        affected.records = records.map(|(id, record)| (id.clone(), record.clone())).collect();
        let involves = |binding: &&Binding| {
            ids.contains(&ObjectId::Binding((*binding).clone())) || ids.iter().any(|id| binding.involves(id))
        };
        affected.bindings = live.bindings.iter().filter(involves).cloned().collect();
        for migration in &self.migrations {
            remove_migration_objects(&mut affected, &migration.queue);
            if let Some(old) = migration.old_queue(live) {
                affected.queues.insert(migration.queue.clone(), old);
            }
        }
        affected
    }
}
