//! Orders the deletions at the end of a plan: first undesired bindings, then undesired objects one by one. Also orders
//! the steps for records: each record is written or deleted at one of five moments.

use super::layout::Layout;
use crate::model::record_kinds::{Comparison, FieldShape, Layout as RecordLayout, RecordField, WriteOrder};
use crate::model::{ArgumentValue, Binding, Object, ObjectId, QueueName, Record, RecordId, RecordKind};
use crate::plan::action::{Action, Guard};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, PlannedChange};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the undesired bindings that need their own steps. The broker deletes the bindings from a retired exchange
/// together with the exchange, after the tiers have returned their messages. A binding to a retired tier always needs
/// its own step.
pub(super) fn bindings_to_delete(builder: &PlanBuilder) -> BTreeSet<Binding> {
    let retired = retired_objects(builder);
    let mut unbound = builder.undesired_bindings();
    unbound.retain(|binding| {
        let leads_into_tier = retired.contains_key(&binding.destination.id());
        leads_into_tier || !retired.contains_key(&ObjectId::Exchange(binding.source.clone()))
    });
    unbound
}

/// Returns the retired queues and exchanges, each with the queue whose retries it belongs to.
pub(super) fn retired_objects(builder: &PlanBuilder) -> BTreeMap<ObjectId, QueueName> {
    let retired = builder.changes.iter().filter_map(|change| Some((change.id()?, change.retires.clone()?)));
    retired.filter(|(id, _)| !matches!(id, ObjectId::Binding(_))).collect()
}

impl Layout<'_> {
    /// Adds the deletions one by one, so that topo verifies each deletion before the next. Tiers come first, because
    /// the messages that a tier returns still need the queue and its retry exchanges.
    pub(super) fn deletions(&mut self, deletions: &[Object], retired: &BTreeMap<ObjectId, QueueName>) {
        let guard = |id: &ObjectId| if retired.contains_key(id) { Guard::Drained } else { Guard::Empty };
        let deletion = |object: &Object| match object {
            Object::Queue(name, _) => Some(Action::DeleteQueue { name: name.clone(), guard: guard(&object.id()) }),
            Object::Exchange(name, _) => Some(Action::DeleteExchange { name: name.clone() }),
            Object::Policy(name, _) => Some(Action::DeletePolicy { name: name.clone() }),
            // `records` adds the steps for records.
            Object::Vhost(_) | Object::Binding(_) | Object::Record(_) => None,
        };
        let is_retired = |id: &ObjectId| retired.contains_key(id);
        let families: BTreeSet<ObjectId> = retired.values().cloned().map(ObjectId::Queue).collect();
        let rank = |object: &Object| match object {
            Object::Binding(_) => 0,
            Object::Queue(..) if is_retired(&object.id()) => 1,
            // A queue comes before its retry exchanges. While the queue exists, its dead-lettered messages require a
            // destination, and topo can delete the queue only if it is empty.
            Object::Queue(..) if families.contains(&object.id()) => 2,
            // The entry exchange comes first, so that a publisher receives an error instead of losing messages.
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

/// The moment at which a plan writes or deletes a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// After the vhost and before all other objects: users and raised limits, because later steps may require them.
    WithVhost,
    /// After the exchanges and before the policies: federation upstreams and upstream sets, which policies can use.
    BeforePolicies,
    /// With the policies and before the queues: other created and changed records, such as operator policies, which
    /// govern a new queue from the start.
    WithPolicies,
    /// After all other objects are created and changed, and before the deletions at the end of the plan: permissions,
    /// topic permissions, shovels and parameters for other plugins, including deletions of these records.
    AfterObjects,
    /// After all objects are deleted: lowered limits, deletions of other records, and the password of the user that
    /// topo connects as.
    Last,
}

impl Layout<'_> {
    /// Adds the steps for the records that are written or deleted at this moment.
    pub(super) fn records(&mut self, changes: &[PlannedChange], moment: Moment) {
        let own = self.context.records.user.as_deref();
        let actions = changes.iter().filter_map(|change| record_action(change, moment, own));
        let (settings, whole): (Vec<_>, Vec<_>) = actions.partition(|(_, action)| writes_setting(action));
        let mut by_rank: BTreeMap<i16, Vec<Action>> = BTreeMap::new();
        whole.into_iter().for_each(|(rank, action)| by_rank.entry(rank).or_default().push(action));
        let deferred = by_rank.split_off(&DEFERRED);
        for actions in by_rank.into_values() {
            self.wave(|layout| actions.into_iter().for_each(|action| layout.push(action, None)));
        }
        // The broker stores all settings of an owner in one parameter, which it reads and then overwrites. Therefore,
        // one of two concurrent changes can be lost (measured on 3.8.9 and 4.3.6).
        for (_, action) in settings {
            self.wave(|layout| layout.push(action, None));
        }
        let first = self.steps.len();
        for actions in deferred.into_values() {
            self.wave(|layout| actions.into_iter().for_each(|action| layout.push(action, None)));
        }
        self.steps.iter_mut().skip(first).for_each(|step| step.is_deferred = true);
    }
}

/// The lowest rank of the cluster's deferred steps, which follow the steps of all vhosts.
const DEFERRED: i16 = i16::MAX - 1;
/// The rank of a change to the password of the user that topo connects as. After this step, topo uses the new password.
const OWN_PASSWORD: i16 = i16::MAX;

/// Returns the rank of an action within its moment. Actions with a lower rank come first.
fn rank(action: &Action) -> i16 {
    let of_kind = |id: &RecordId| match id.kind.row().order {
        WriteOrder::First => 0,
        WriteOrder::BeforeQueues => 2,
        WriteOrder::BeforePolicies { rank } | WriteOrder::AfterObjects { rank } => i16::from(rank) + 2,
    };
    match (action, action.object()) {
        (Action::DeleteRecord { .. }, ObjectId::Record(id)) => DEFERRED - of_kind(&id),
        (_, ObjectId::Record(id)) => of_kind(&id),
        (_, _) => 0,
    }
}

fn writes_setting(action: &Action) -> bool {
    matches!(action.object(), ObjectId::Record(id) if id.setting().is_some())
}

/// Returns the rank and the action for a change to a record, if the record is written or deleted at this moment.
fn record_action(change: &PlannedChange, moment: Moment, own: Option<&str>) -> Option<(i16, Action)> {
    let record = |object: &Option<Object>| match object {
        Some(Object::Record(record)) => Some(record.clone()),
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_))
        | None => None,
    };
    let (before, after) = (record(&change.before), record(&change.after));
    let record = after.as_ref().or(before.as_ref())?;
    let has_step = matches!(change.kind, ChangeKind::Create | ChangeKind::Change | ChangeKind::Delete);
    let keeps_password = after.as_ref().is_some_and(|after| keeps_password(before.as_ref(), after));
    let is_own_password = record.id.kind == RecordKind::User
        && record.id.name() == own
        && before.is_some()
        && after.is_some()
        && !keeps_password;
    let moment_of_record = match is_own_password {
        true => Moment::Last,
        false => moment_of(record, before.as_ref(), after.as_ref()),
    };
    if !has_step || moment != moment_of_record {
        return None;
    }
    let loses_access = record.id.kind == RecordKind::User && loses_access(before.as_ref(), after.as_ref());
    let action = match after {
        Some(record) => Action::PutRecord { record, keeps_password },
        None => Action::DeleteRecord { id: record.id.clone() },
    };
    // A user that loses a tag or its password comes after the other users, so that another user can become an
    // administrator first.
    let rank = if is_own_password { OWN_PASSWORD } else { rank(&action) + i16::from(loses_access) };
    Some((rank, action))
}

/// Returns true if an existing user loses a tag or its password.
fn loses_access(before: Option<&Record>, after: Option<&Record>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let has_tags = after.fields.contains_key("tags");
    let is_none = |user: &Record| user.fields.get("password").and_then(ArgumentValue::as_text) == Some("none");
    has_tags && before.tags().any(|tag| !after.has_tag(tag)) || is_none(after) && !is_none(before)
}

/// Returns true if a write keeps the current password of an existing user: the spec sets the same password, or no
/// password that topo compares.
fn keeps_password(before: Option<&Record>, after: &Record) -> bool {
    let is_same = |before: &Record, field: &RecordField| {
        field.comparison != Comparison::IfSet
            || after.fields.get(field.name).is_none_or(|value| before.fields.get(field.name) == Some(value))
    };
    let is_password = |field: &&RecordField| matches!(field.shape, FieldShape::Secret { .. });
    let is_user = after.id.kind == RecordKind::User;
    is_user
        && before.is_some_and(|before| after.id.fields().iter().filter(is_password).all(|field| is_same(before, field)))
}

fn moment_of(record: &Record, before: Option<&Record>, after: Option<&Record>) -> Moment {
    let limit = |record: Option<&Record>| record.and_then(Record::limit).unwrap_or(u64::MAX);
    let row = record.id.kind.row();
    match row.layout {
        _ if matches!(row.order, WriteOrder::AfterObjects { .. }) => Moment::AfterObjects,
        _ if row.order == WriteOrder::First && after.is_some() => Moment::WithVhost,
        _ if matches!(row.order, WriteOrder::BeforePolicies { .. }) && after.is_some() => Moment::BeforePolicies,
        RecordLayout::Fields(_) | RecordLayout::Value(_) if after.is_some() => Moment::WithPolicies,
        RecordLayout::Fields(_) | RecordLayout::Value(_) => Moment::Last,
        RecordLayout::Settings(_) if limit(after) > limit(before) => Moment::WithVhost,
        RecordLayout::Settings(_) => Moment::Last,
    }
}
