//! Finds limits that are reached as soon as they are set: the broker then refuses new connections or queues.

use super::VhostPlan;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange};
use super::hazard::HazardKind;
use crate::model::count::count;
use crate::model::{Object, Record, RecordKind};

const CONNECTIONS: &str = "max-connections";
const QUEUES: &str = "max-queues";

/// Returns true if the plan sets or lowers the limit of connections. Only then their number matters.
pub fn limits_connections(part: &VhostPlan) -> bool {
    lowered(&part.changes).any(|(_, record)| record.id.setting() == Some(CONNECTIONS))
}

/// Adds the hazards of limits that are set or lowered.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let found: Vec<_> = lowered(&builder.changes)
        .filter_map(|(change, record)| {
            let (limit, setting) = (record.limit()?, record.id.setting()?);
            let (existing, thing) = match setting {
                CONNECTIONS => (context.activity.connections, "connection"),
                QUEUES => (Some(queues(&builder.changes, context)), "queue"),
                _ => return None,
            };
            // Treats an unknown number as a reached limit.
            if existing.is_some_and(|existing| existing < limit) {
                return None;
            }
            if existing == Some(0) {
                let text = format!("{setting} becomes {limit}: the broker refuses every {thing}");
                return Some((change.address.clone(), text));
            }
            let existing = existing.map_or_else(|| format!("an unknown number of {thing}s"), |many| count(many, thing));
            let also = if setting == QUEUES { ", also the lock of topo" } else { "" };
            let text = format!(
                "{setting} becomes {limit}, and the vhost has {existing}: they stay, and the broker refuses new ones{also}"
            );
            Some((change.address.clone(), text))
        })
        .collect();
    for (address, text) in found {
        builder.hazard(HazardKind::LimitReached, &address, text, None);
    }
}

/// Returns the limits of vhosts that are set or lowered.
fn lowered(changes: &[PlannedChange]) -> impl Iterator<Item = (&PlannedChange, &Record)> {
    changes.iter().filter_map(|change| {
        let after = limit(change.after.as_ref())?;
        let before = limit(change.before.as_ref()).and_then(Record::limit).unwrap_or(u64::MAX);
        (after.limit()? < before).then_some((change, after))
    })
}

fn limit(object: Option<&Object>) -> Option<&Record> {
    match object? {
        Object::Record(record) => (record.id.kind == RecordKind::VhostLimit).then_some(record),
        Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) => None,
    }
}

/// Returns the number of queues after the plan, without topo's own queues.
fn queues(changes: &[PlannedChange], context: &PlanContext<'_>) -> u64 {
    let is_queue = |object: &Option<Object>| matches!(object, Some(Object::Queue(..)));
    let created = changes.iter().filter(|it| it.kind == ChangeKind::Create && is_queue(&it.after)).count();
    let deleted = changes.iter().filter(|it| it.kind == ChangeKind::Delete && is_queue(&it.before)).count();
    let current = context.current.queues.values().filter(|queue| !queue.is_created_by_topo()).count();
    (current + created).saturating_sub(deleted) as u64
}
