//! Adds hazards for dynamic shovels that use a queue that a plan deletes or recreates.
//!
//! A shovel declares its queues itself whenever it connects (all versions). So a deleted source exists again within
//! seconds, with the default type and no arguments. Then the broker refuses the desired queue, or a deleted queue is
//! back. Messages that a shovel publishes to a missing queue are lost.

use super::activity::{ShovelEnd, Shovels};
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange, VhostPlan};
use super::hazard::{Hazard, HazardKind};
use super::migrate::{Goal, Migration};
use crate::model::count::count;
use crate::model::{ObjectId, QueueName};
use std::collections::BTreeMap;

/// Returns true if a plan deletes or recreates a queue. topo reads the shovels only in that case.
pub fn deletes_queues(part: &VhostPlan) -> bool {
    !deleted(&part.changes, &part.migrations).is_empty()
}

/// Returns the deleted queues, with true for each that is declared again.
fn deleted<'p>(changes: &'p [PlannedChange], migrations: &'p [Migration]) -> BTreeMap<QueueName, bool> {
    let of_changes = changes.iter().filter_map(|change| match (change.kind, change.id()?) {
        (ChangeKind::Delete, ObjectId::Queue(name)) => Some((name, false)),
        (ChangeKind::Recreate, ObjectId::Queue(name)) => Some((name, true)),
        (_, _) => None,
    });
    let of_migrations = migrations
        .iter()
        .filter(|migration| migration.goal == Goal::Recreate)
        .map(|migration| (migration.queue.clone(), true));
    of_changes.chain(of_migrations).collect()
}

/// Adds a hazard for each queue that a shovel uses, or one hazard if the shovels are unknown.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let deleted = deleted(&builder.changes, &builder.migrations);
    let ends = match &context.activity.shovels {
        Shovels::NotRead => return,
        Shovels::Hidden if deleted.is_empty() => return,
        Shovels::Hidden => {
            let queues = count(deleted.len() as u64, "queue");
            let text = format!(
                "topo cannot check whether a shovel uses the {queues} that the plan deletes or recreates: this user may not \
                 read parameters (tag `policymaker`)"
            );
            builder.hazards.push(Hazard {
                kind: HazardKind::ShovelInterference,
                address: context.address(&ObjectId::Vhost),
                text,
                messages: None,
                must_be_allowed: false,
            });
            return;
        }
        Shovels::Known(ends) => ends,
    };
    for end in ends {
        let Some(is_recreated) = deleted.get(&end.queue) else { continue };
        let address = context.address(&ObjectId::Queue(end.queue.clone()));
        builder.hazard(HazardKind::ShovelInterference, &address, text(end, *is_recreated), None);
    }
}

fn text(end: &ShovelEnd, is_recreated: bool) -> String {
    let ShovelEnd { shovel, vhost, is_source, .. } = end;
    let redeclares = "with the default type and no arguments";
    let effect = match (is_source, is_recreated) {
        (true, false) => format!("reads from it: within seconds, it declares the queue again, {redeclares}"),
        (true, true) => format!(
            "reads from it: while the queue does not exist, it can declare the queue {redeclares}, and the broker then \
             refuses the new one"
        ),
        (false, false) => format!(
            "writes to it: its messages are lost, and when it connects again, it declares the queue {redeclares}"
        ),
        (false, true) => "writes to it: its messages are lost while the queue does not exist".to_owned(),
    };
    format!("shovel {shovel} of vhost {vhost} {effect}; delete the shovel first, and create it again afterwards")
}
