//! Orders the deletions at the end of a plan: first undesired bindings, then undesired objects one by one.
//!
//! Orders the steps of records: each is written or deleted at one of three moments of a plan.

use super::layout::Layout;
use crate::model::record_kinds::Layout as RecordLayout;
use crate::model::{Binding, Object, ObjectId, QueueName, Record};
use crate::plan::action::{Action, Guard};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, PlannedChange};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the undesired bindings that are deleted on their own. The bindings of a retired exchange are deleted with
/// it, after the tiers have returned their messages. But a binding into a tier is deleted immediately.
pub(super) fn unbound(builder: &PlanBuilder) -> BTreeSet<Binding> {
    let retired = retiring(builder);
    let mut unbound = builder.undesired_bindings();
    unbound.retain(|binding| {
        let leads_into_tier = retired.contains_key(&binding.destination.id());
        leads_into_tier || !retired.contains_key(&ObjectId::Exchange(binding.source.clone()))
    });
    unbound
}

/// Returns the retired queues and exchanges, with the queue whose retries they belong to.
pub(super) fn retiring(builder: &PlanBuilder) -> BTreeMap<ObjectId, QueueName> {
    let retired = builder.changes.iter().filter_map(|change| Some((change.id()?, change.retires.clone()?)));
    retired.filter(|(id, _)| !matches!(id, ObjectId::Binding(_))).collect()
}

impl Layout<'_> {
    /// Adds the deletions one by one; each is verified before the next. Tiers come first, because their returned
    /// messages need the objects that are deleted later: the queue, and the exchanges of its retries.
    pub(super) fn deletions(&mut self, deletions: &[Object], retired: &BTreeMap<ObjectId, QueueName>) {
        let guard = |id: &ObjectId| if retired.contains_key(id) { Guard::Drained } else { Guard::Empty };
        let deletion = |object: &Object| match object {
            Object::Queue(name, _) => Some(Action::DeleteQueue { name: name.clone(), guard: guard(&object.id()) }),
            Object::Exchange(name, _) => Some(Action::DeleteExchange { name: name.clone() }),
            Object::Policy(name, _) => Some(Action::DeletePolicy { name: name.clone() }),
            // The steps of records are in `records`.
            Object::Vhost(_) | Object::Binding(_) | Object::Record(_) => None,
        };
        let is_retired = |id: &ObjectId| retired.contains_key(id);
        let families: BTreeSet<ObjectId> = retired.values().cloned().map(ObjectId::Queue).collect();
        let rank = |object: &Object| match object {
            Object::Binding(_) => 0,
            Object::Queue(..) if is_retired(&object.id()) => 1,
            // While the queue exists, its dead-lettered messages need a destination, and it may turn out not to be
            // empty.
            Object::Queue(..) if families.contains(&object.id()) => 2,
            // The entry before the exchanges behind it: a publisher gets an error instead of losing messages.
            Object::Exchange(..) if is_retired(&object.id()) => 3,
            Object::Queue(..) => 4,
            Object::Exchange(..) => 5,
            Object::Policy(..) | Object::Record(_) => 6,
            Object::Vhost(_) => 7,
        };
        let mut ordered: Vec<&Object> = deletions.iter().collect();
        ordered.sort_by_key(|object| {
            let (rank, id) = (rank(object), object.id());
            let forward = (rank == 3).then(|| id.clone());
            (rank, forward, std::cmp::Reverse(id))
        });
        let mut before: BTreeMap<&QueueName, Vec<usize>> = BTreeMap::new();
        for object in ordered {
            let Some(action) = deletion(object) else { continue };
            let family = retired.get(&object.id()).or(match object {
                Object::Queue(name, _) => Some(name),
                Object::Vhost(_)
                | Object::Exchange(..)
                | Object::Policy(..)
                | Object::Binding(_)
                | Object::Record(_) => None,
            });
            self.wave(|layout| layout.push(action, None));
            let Some(step) = self.steps.last_mut() else { continue };
            let Some(queue) = family else { continue };
            let before = before.entry(queue).or_default();
            match &step.action {
                Action::DeleteQueue { guard: Guard::Drained, .. } => before.push(step.id),
                Action::DeleteQueue { .. } => {
                    step.after.extend(before.iter());
                    before.push(step.id);
                }
                Action::DeleteExchange { .. }
                | Action::DeletePolicy { .. }
                | Action::MoveMessages { .. }
                | Action::DeclareExchange { .. }
                | Action::DeclareQueue { .. }
                | Action::Bind { .. }
                | Action::Unbind { .. }
                | Action::PutTopicPermission { .. }
                | Action::PutPolicy { .. }
                | Action::PutVhost { .. }
                | Action::PutRecord { .. }
                | Action::DeleteRecord { .. } => step.after.extend(before.iter()),
            }
        }
    }
}

/// A moment of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// After the vhost and before everything else: raised limits, because later steps need the room.
    WithVhost,
    /// With the policies and before queues, so that a new queue is governed from the start.
    WithPolicies,
    /// After all deletions: lowered limits, and deletions of records.
    Last,
}

impl Layout<'_> {
    /// Adds the steps of the records that belong to a moment.
    pub(super) fn records(&mut self, changes: &[PlannedChange], moment: Moment) {
        let actions = changes.iter().filter_map(|change| of(change, moment));
        let (settings, whole): (Vec<Action>, Vec<Action>) = actions.partition(is_of_setting);
        self.wave(|layout| whole.into_iter().for_each(|action| layout.push(action, None)));
        // The broker stores all settings of an owner in one parameter, which it reads and writes back. Of two
        // concurrent requests, it can lose one (measured on 3.8.9 and 4.3.6).
        for action in settings {
            self.wave(|layout| layout.push(action, None));
        }
    }
}

fn is_of_setting(action: &Action) -> bool {
    matches!(action.object(), ObjectId::Record(id) if id.setting().is_some())
}

/// Returns the action of a change, if it belongs to that moment.
fn of(change: &PlannedChange, moment: Moment) -> Option<Action> {
    let record = |object: &Option<Object>| match object {
        Some(Object::Record(record)) => Some(record.clone()),
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_))
        | None => None,
    };
    let (before, after) = (record(&change.before), record(&change.after));
    let record = after.as_ref().or(before.as_ref())?;
    let is_done = matches!(change.kind, ChangeKind::Create | ChangeKind::Change | ChangeKind::Delete);
    if !is_done || moment != moment_of(record, before.as_ref(), after.as_ref()) {
        return None;
    }
    Some(match after {
        Some(record) => Action::PutRecord { record },
        None => Action::DeleteRecord { id: record.id.clone() },
    })
}

fn moment_of(record: &Record, before: Option<&Record>, after: Option<&Record>) -> Moment {
    let limit = |record: Option<&Record>| record.and_then(Record::limit).unwrap_or(u64::MAX);
    match record.id.kind.row().layout {
        RecordLayout::Fields(_) if after.is_some() => Moment::WithPolicies,
        RecordLayout::Fields(_) => Moment::Last,
        RecordLayout::Settings(_) if limit(after) > limit(before) => Moment::WithVhost,
        RecordLayout::Settings(_) => Moment::Last,
    }
}
