//! Orders the deletions at the end of a plan: first undesired bindings, then undesired objects one by one.

use super::super::builder::PlanBuilder;
use super::super::{Action, Guard};
use super::Layout;
use crate::model::{Binding, Object, ObjectId, QueueName};
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
