//! Finds unmanaged policies and operator policies that break retries, or that break the tiers and dead-letter queues
//! that the plan creates.
//!
//! With such a policy, messages that return from a tier are lost, a tier returns messages too early or drops them, or a
//! dead-letter queue deletes its messages. Measured: the TTL in a policy for `^w` shortened the delay of a tier from
//! 300 ms to 110 ms, and the TTL in a policy for `^orders\.` deleted dead-lettered messages.
//!
//! This module does not check the user policies in the spec. The expansion refuses such a policy if it breaks retries
//! (`expand::ladder`, `expand::case`), and lint rules report the other problems.

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{Family, Object, ObjectId, Queue, QueueName, QueueType, Strategy, naming};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, Options, PlannedChange};
use crate::plan::hazard::HazardKind;
use crate::rabbitmq::{Effective, EffectiveSettings};
use std::collections::{BTreeMap, BTreeSet};

/// Adds a hazard for each unmanaged policy or operator policy that breaks retries, if the plan creates or changes these
/// retries or their wiring. Otherwise, adds a note.
pub(super) fn add_retry_hazards(builder: &mut PlanBuilder, sides: &Sides<'_>, options: &Options) {
    for family in sides.context.desired.scope.families.iter().filter(|family| !family.members.is_empty()) {
        let has_changes = has_changes(builder, family);
        let address = sides.context.address(&ObjectId::Queue(family.queue.clone()));
        // A plan with targets does not check unchanged retries.
        if !has_changes && !options.targets.is_empty() {
            continue;
        }
        let Some(queue) = sides.queue_after(builder, &family.queue) else { continue };
        for text in retry_problems(sides, family, &queue) {
            if has_changes {
                builder.hazard(HazardKind::MessageDrop, &address, text, None);
            } else {
                builder.info(&address, text);
            }
        }
    }
}

fn has_changes(builder: &PlanBuilder, family: &Family) -> bool {
    let own = [ObjectId::Queue(family.queue.clone()), ObjectId::Policy(naming::dead_letter_policy(&family.queue))];
    let is_part = |id: &ObjectId| own.contains(id) || family.members.contains(id);
    builder.changes.iter().any(|it| it.kind != ChangeKind::Delete && it.id().is_some_and(|id| is_part(&id)))
}

fn retry_problems(sides: &Sides<'_>, family: &Family, queue: &Queue) -> BTreeSet<String> {
    let name = &family.queue;
    let mut found = BTreeSet::new();
    for (_, settings) in sides.governors().possible(name, queue) {
        for (key, setting) in settings.iter() {
            let Some(why) = message_loss(sides, family, queue, &settings, key) else { continue };
            if let Some(by) = sides.unmanaged_policy(name, queue, key, &setting.source) {
                found.insert(format!("{by} sets {key} {}: {why}", with_unit(key, &setting.value)));
            }
        }
    }
    found
}

/// Describes how an effective setting makes the retries of a queue lose messages; `None` if the setting is harmless.
fn message_loss(
    sides: &Sides<'_>,
    family: &Family,
    queue: &Queue,
    settings: &EffectiveSettings,
    key: &str,
) -> Option<String> {
    let is_classic = queue.queue_type() == Some(QueueType::Classic);
    let rejects = settings.overflow_behavior().rejects();
    let version = sides.context.profile.version;
    let is_unguarded = family.strategy == Strategy::Ladder && !version.is_at_least(3, 13);
    match key {
        "overflow" if rejects && is_classic => {
            Some("a message that returns from a tier while the queue is full will be lost".to_owned())
        }
        "message-ttl" | "delivery-limit" if is_unguarded => Some(cycle_text(version)),
        "max-length" | "max-length-bytes" if is_unguarded && !rejects => Some(cycle_text(version)),
        _ => None,
    }
}

fn cycle_text(version: crate::model::BrokerVersion) -> String {
    format!(
        "RabbitMQ {version} treats a message that this setting dead-letters after a retry as a cycle, and drops it; \
         on RabbitMQ 3.13 and later, topo prevents this"
    )
}

impl Sides<'_> {
    /// Returns a queue as it will be after the plan is applied; `None` if the queue will not exist, or if the queue is
    /// in conflict, because the plan already reports the conflict.
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

/// The purpose of a generated queue.
#[derive(Clone, Copy)]
enum Role {
    /// A tier of a retry ladder.
    Tier,
    /// A dead-letter queue.
    DeadLetterQueue,
}

/// Adds the hazards of unmanaged policies and operator policies that govern tiers and dead-letter queues that the plan
/// creates.
pub(super) fn add_generated_queue_hazards(
    builder: &mut PlanBuilder,
    sides: &Sides<'_>,
    changes: &BTreeMap<ObjectId, PlannedChange>,
) {
    let members: BTreeSet<&ObjectId> =
        sides.context.desired.scope.families.iter().flat_map(|family| &family.members).collect();
    for (id, change) in changes.iter().filter(|(_, change)| change.kind == ChangeKind::Create) {
        let Some(Object::Queue(name, queue)) = &change.after else { continue };
        let is_dead_letter_queue = change.source.as_ref().is_some_and(|source| source.part_of.as_ref() == Some(name));
        let role = match (members.contains(id), is_dead_letter_queue) {
            (true, _) => Role::Tier,
            (false, true) => Role::DeadLetterQueue,
            (false, false) => continue,
        };
        for (kind, text) in queue_problems(sides, role, (name, queue)) {
            builder.hazard(kind, &change.address, text, None);
        }
    }
}

fn queue_problems(
    sides: &Sides<'_>,
    role: Role,
    (name, queue): (&QueueName, &Queue),
) -> BTreeSet<(HazardKind, String)> {
    let mut found = BTreeSet::new();
    for (_, settings) in sides.governors().possible(name, queue) {
        for (key, setting) in settings.iter() {
            let Some(by) = sides.unmanaged_policy(name, queue, key, &setting.source) else { continue };
            found.extend(problem_text(role, key, setting, queue).map(|(kind, text)| (kind, format!("{by} {text}"))));
        }
    }
    found
}

fn problem_text(role: Role, key: &str, setting: &Effective, queue: &Queue) -> Option<(HazardKind, String)> {
    let value = with_unit(key, &setting.value);
    match (key, role) {
        ("message-ttl", Role::Tier) => {
            let delay = queue.arguments.get("x-message-ttl").map(|delay| with_unit(key, delay)).unwrap_or_default();
            Some((HazardKind::PolicyShift, format!("ends the wait in this tier after {value} instead of {delay}")))
        }
        ("message-ttl", Role::DeadLetterQueue) if !queue.arguments.contains_key("x-dead-letter-exchange") => {
            Some((HazardKind::MessageDrop, format!("deletes dead-lettered messages after {value}")))
        }
        // Tiers have no consumers, and dead-letter queues usually have none, so the broker treats these queues as
        // unused even if they contain messages.
        ("expires", _) => Some((
            HazardKind::MessageDrop,
            format!("deletes this queue and its messages after it has been unused for {value}"),
        )),
        ("max-length" | "max-length-bytes", _) => Some((
            HazardKind::MessageDrop,
            format!("removes or rejects messages when this queue exceeds {key} {value}"),
        )),
        (_, Role::Tier | Role::DeadLetterQueue) => None,
    }
}
