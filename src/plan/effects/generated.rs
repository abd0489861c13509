//! Finds unmanaged policies that break objects that this plan generates for retries and dead-lettering. Examples are a
//! tier that returns messages too early or drops them, and a dead-letter queue that deletes its messages. Measured: a
//! TTL by a policy on `^w` cut a tier of 300 ms to 110 ms, and one on `^orders\.` deleted dead-lettered messages. Such
//! policies of the spec itself are a lint finding.

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{Object, ObjectId, Queue, QueueName};
use crate::plan::HazardKind;
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::document::{ChangeKind, PlannedChange};
use crate::rabbitmq::Effective;
use std::collections::{BTreeMap, BTreeSet};

/// The purpose of a generated queue.
#[derive(Clone, Copy)]
enum Role {
    Tier,
    DeadLetters,
}

pub(super) fn hazards(builder: &mut PlanBuilder, sides: &Sides<'_>, changes: &BTreeMap<ObjectId, PlannedChange>) {
    let members: BTreeSet<&ObjectId> =
        sides.context.desired.scope.families.iter().flat_map(|family| &family.members).collect();
    for (id, change) in changes.iter().filter(|(_, change)| change.kind == ChangeKind::Create) {
        let Some(Object::Queue(name, queue)) = &change.after else { continue };
        let is_dead_letter_queue = change.source.as_ref().is_some_and(|source| source.part_of.as_ref() == Some(name));
        let role = match (members.contains(id), is_dead_letter_queue) {
            (true, _) => Role::Tier,
            (false, true) => Role::DeadLetters,
            (false, false) => continue,
        };
        for (kind, text) in broken(sides, role, (name, queue)) {
            builder.hazard(kind, &change.address, text, None);
        }
    }
}

fn broken(sides: &Sides<'_>, role: Role, (name, queue): (&QueueName, &Queue)) -> BTreeSet<(HazardKind, String)> {
    let mut found = BTreeSet::new();
    for (_, settings) in sides.governors().possible(name, queue) {
        for (key, holds) in settings.iter() {
            let Some(by) = sides.unmanaged_policy(name, queue, key, &holds.source) else { continue };
            found.extend(sentence(role, key, holds, queue).map(|(kind, text)| (kind, format!("{by} {text}"))));
        }
    }
    found
}

fn sentence(role: Role, key: &str, holds: &Effective, queue: &Queue) -> Option<(HazardKind, String)> {
    let value = with_unit(key, &holds.value);
    match (key, role) {
        ("message-ttl", Role::Tier) => {
            let delay = queue.arguments.get("x-message-ttl").map(|delay| with_unit(key, delay)).unwrap_or_default();
            Some((HazardKind::PolicyShift, format!("ends the wait in this tier after {value} instead of {delay}")))
        }
        ("message-ttl", Role::DeadLetters) if !queue.arguments.contains_key("x-dead-letter-exchange") => {
            Some((HazardKind::MessageDrop, format!("deletes dead-lettered messages after {value}")))
        }
        // These queues have no consumers, so they count as unused even if they hold messages.
        ("expires", _) => {
            Some((HazardKind::MessageDrop, format!("deletes this queue, with its messages, after {value}")))
        }
        ("max-length" | "max-length-bytes", _) => {
            Some((HazardKind::MessageDrop, format!("drops messages from this queue: {key} {value}")))
        }
        (_, Role::Tier | Role::DeadLetters) => None,
    }
}
