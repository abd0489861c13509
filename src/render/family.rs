//! The retries of a queue on a screen: one line that stands for all that is made for them.

use super::style::{DIM, GREEN, Painted, clean, columns};
use crate::model::{Family, ObjectId, QueueName};
use crate::plan::{ChangeKind, VhostPlan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What tells where the rest is.
const HOW_TO_SEE: &str = "--show all lists them";

/// The members of families that are made by a plan, to be shown as one line each.
pub(super) struct Folded<'a> {
    families: BTreeMap<&'a QueueName, (&'a Family, Family)>,
    hidden: BTreeSet<ObjectId>,
}

impl<'a> Folded<'a> {
    /// Of one vhost. Only what is created is folded: whatever is changed, deleted or in conflict is looked at one by one.
    pub(super) fn of(part: &'a VhostPlan, all: bool) -> Self {
        let is_created = |kind| kind == ChangeKind::Create && !all;
        let created: BTreeSet<ObjectId> =
            part.changes.iter().filter(|change| is_created(change.kind)).filter_map(|change| change.id()).collect();
        let mut folded = Self { families: BTreeMap::new(), hidden: BTreeSet::new() };
        for family in &part.wanted.scope.families {
            let members: BTreeSet<ObjectId> = family.members.intersection(&created).cloned().collect();
            folded.hidden.extend(members.iter().cloned());
            folded.families.insert(&family.queue, (family, Family { members, ..family.clone() }));
        }
        folded
    }

    /// Whether an object is shown by the line of its family.
    pub(super) fn hides(&self, id: &ObjectId) -> bool {
        self.hidden.contains(id)
    }

    /// The queues that have something to show, whether they change themselves or not.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.families.iter().filter(|(_, (_, made))| !made.members.is_empty()).map(|(queue, _)| *queue)
    }

    /// How a queue retries, and what is made for it.
    pub(super) fn get(&self, id: &ObjectId) -> Option<&(&'a Family, Family)> {
        match id {
            ObjectId::Queue(name) => self.families.get(name),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => None,
        }
    }
}

/// `retries 3: 5s → 30s → 5m → orders.dead`.
pub(super) fn way(family: &Family) -> String {
    clean(&format!("retries {}: {}", family.retries, family.path))
}

/// `+ ladder: 4 exchanges, 3 tier queues, 8 bindings`, where anything is made.
pub(super) fn line(text: &mut String, made: &Family, width: usize) {
    if made.members.is_empty() {
        return;
    }
    let what = format!("{}: {}", made.strategy, made.counted());
    let _ = write!(text, "      {} {what}", Painted(GREEN, "+"));
    let room = width.checked_sub(8 + columns(&what) + columns(HOW_TO_SEE)).filter(|room| *room >= 2);
    if let Some(room) = room {
        let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, HOW_TO_SEE));
    }
    text.push('\n');
}
