//! Orders the steps of records: each is written or deleted at one of three moments of a plan.

use super::super::Action;
use super::super::document::{ChangeKind, PlannedChange};
use super::Layout;
use crate::model::record_kinds::Layout as RecordLayout;
use crate::model::{Object, ObjectId, Record};

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
