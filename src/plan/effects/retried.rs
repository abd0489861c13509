//! Finds unmanaged policies that break the retries of a queue: under them, messages that return from a tier are lost.
//! The expansion refuses such policies of the spec itself by the same rules (`expand::ladder`, `expand::case`).

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{Family, Object, ObjectId, Queue, QueueName, QueueType, Strategy, naming};
use crate::plan::HazardKind;
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, Options};
use crate::rabbitmq::EffectiveSettings;
use std::collections::BTreeSet;

/// Adds a hazard if the plan creates or changes such retries or their wiring. Otherwise the problem already exists, and
/// is reported as a note.
pub(super) fn hazards(builder: &mut PlanBuilder, sides: &Sides<'_>, options: &Options) {
    for family in sides.context.desired.scope.families.iter().filter(|family| !family.members.is_empty()) {
        let is_touched = is_touched(builder, family);
        let address = sides.context.address(&ObjectId::Queue(family.queue.clone()));
        // With a target, other retries are not checked.
        if !is_touched && !options.targets.is_empty() {
            continue;
        }
        let Some(queue) = sides.queue_after(builder, &family.queue) else { continue };
        for text in broken(sides, family, &queue) {
            if is_touched {
                builder.hazard(HazardKind::MessageDrop, &address, text, None);
            } else {
                builder.info(&address, text);
            }
        }
    }
}

fn is_touched(builder: &PlanBuilder, family: &Family) -> bool {
    let own = [ObjectId::Queue(family.queue.clone()), ObjectId::Policy(naming::dead_letter_policy(&family.queue))];
    let is_part = |id: &ObjectId| own.contains(id) || family.members.contains(id);
    builder.changes.iter().any(|it| it.kind != ChangeKind::Delete && it.id().is_some_and(|id| is_part(&id)))
}

fn broken(sides: &Sides<'_>, family: &Family, queue: &Queue) -> BTreeSet<String> {
    let name = &family.queue;
    let mut found = BTreeSet::new();
    for (_, settings) in sides.governors().possible(name, queue) {
        for (key, holds) in settings.iter() {
            let Some(why) = loses(sides, family, queue, &settings, key) else { continue };
            if let Some(by) = sides.unmanaged_policy(name, queue, key, &holds.source) {
                found.insert(format!("{by} sets {key} {}: {why}", with_unit(key, &holds.value)));
            }
        }
    }
    found
}

/// Returns the effect of an effective setting on the retries of a queue, if they lose messages.
fn loses(sides: &Sides<'_>, family: &Family, queue: &Queue, settings: &EffectiveSettings, key: &str) -> Option<String> {
    let is_classic = queue.queue_type() == Some(QueueType::Classic);
    let rejects = settings.overflow_behavior().rejects();
    let version = sides.context.profile.version;
    let is_unguarded = family.strategy == Strategy::Ladder && !version.is_at_least(3, 13);
    match key {
        "overflow" if rejects && is_classic => Some("a retry that returns while the queue is full is lost".to_owned()),
        "message-ttl" | "delivery-limit" if is_unguarded => Some(cycle(version)),
        "max-length" | "max-length-bytes" if is_unguarded && !rejects => Some(cycle(version)),
        _ => None,
    }
}

fn cycle(version: crate::model::BrokerVersion) -> String {
    format!(
        "RabbitMQ {version} treats a message that this setting dead-letters after a retry as a cycle, and drops it; \
         from 3.13 on, topo prevents this"
    )
}

impl Sides<'_> {
    /// Returns a desired queue after the plan. Returns `None` if the queue does not exist then, or is in conflict,
    /// which is already reported.
    pub(super) fn queue_after(&self, builder: &PlanBuilder, name: &QueueName) -> Option<Queue> {
        let id = ObjectId::Queue(name.clone());
        match builder.changes.iter().find(|change| change.id().as_ref() == Some(&id)) {
            None => self.context.current.queues.get(name).cloned(),
            Some(change) => match (change.kind, &change.after) {
                (ChangeKind::Create | ChangeKind::Change | ChangeKind::Recreate, Some(Object::Queue(_, after))) => {
                    Some(after.clone())
                }
                (_, _) => None,
            },
        }
    }
}
