//! The retries of a queue on a screen: one line that stands for all that is made for them.

use super::style::{DIM, GREEN, Painted, RED, clean, columns};
use crate::model::retry::counted;
use crate::model::{Family, ObjectId, QueueName};
use crate::plan::{ChangeKind, VhostPlan};
use anstyle::Style;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What tells where the rest is.
const HOW_TO_SEE: &str = "--show all lists them";

/// The members of families that a plan makes or retires, to be shown as one line each.
pub(super) struct Folded<'a> {
    families: BTreeMap<&'a QueueName, Shown<'a>>,
    hidden: BTreeSet<ObjectId>,
}

/// What is shown of one queue's retries.
#[derive(Default)]
pub(super) struct Shown<'a> {
    /// How the queue retries; `None`: not any more.
    family: Option<&'a Family>,
    made: BTreeSet<ObjectId>,
    retired: BTreeSet<ObjectId>,
}

impl<'a> Folded<'a> {
    /// Of one vhost. Only what is created or retired is folded: whatever is changed, deleted or in conflict is looked at
    /// one by one.
    pub(super) fn of(part: &'a VhostPlan, all: bool) -> Self {
        let mut families: BTreeMap<&QueueName, Shown<'_>> = BTreeMap::new();
        let is_created = |kind| kind == ChangeKind::Create && !all;
        let created: BTreeSet<ObjectId> =
            part.changes.iter().filter(|change| is_created(change.kind)).filter_map(|change| change.id()).collect();
        for family in &part.wanted.scope.families {
            let made = family.members.intersection(&created).cloned().collect();
            families.insert(&family.queue, Shown { family: Some(family), made, retired: BTreeSet::new() });
        }
        for change in part.changes.iter().filter(|_| !all) {
            if let (Some(queue), Some(id)) = (&change.retires, change.id()) {
                families.entry(queue).or_default().retired.insert(id);
            }
        }
        let hidden = families.values().flat_map(|it| it.made.union(&it.retired)).cloned().collect();
        Self { families, hidden }
    }

    /// Whether an object is shown by the line of its family.
    pub(super) fn hides(&self, id: &ObjectId) -> bool {
        self.hidden.contains(id)
    }

    /// The queues that have something to show, whether they change themselves or not.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.families.iter().filter(|(_, it)| !it.made.is_empty() || !it.retired.is_empty()).map(|(queue, _)| *queue)
    }

    /// How a queue retries, and what is made and retired for it.
    pub(super) fn get(&self, id: &ObjectId) -> Option<&Shown<'a>> {
        match id {
            ObjectId::Queue(name) => self.families.get(name),
            ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => None,
        }
    }
}

impl Shown<'_> {
    /// `retries 3: 5s → 30s → 5m → orders.dead`.
    pub(super) fn way(&self) -> Option<String> {
        self.family.map(|family| clean(&format!("retries {}: {}", family.retries, family.path)))
    }

    /// `+ ladder: 4 exchanges, 3 tier queues, 8 bindings` and `- retired: 1 tier queue`, where anything is.
    pub(super) fn lines(&self, text: &mut String, width: usize) {
        if let Some(family) = self.family.filter(|_| !self.made.is_empty()) {
            line(text, (GREEN, "+"), &format!("{}: {}", family.strategy, counted(&self.made)), width);
        }
        if !self.retired.is_empty() {
            line(text, (RED, "-"), &format!("retired: {}", counted(&self.retired)), width);
        }
    }
}

fn line(text: &mut String, (style, sign): (Style, &str), what: &str, width: usize) {
    let _ = write!(text, "      {} {what}", Painted(style, sign));
    let room = width.checked_sub(8 + columns(what) + columns(HOW_TO_SEE)).filter(|room| *room >= 2);
    if let Some(room) = room {
        let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, HOW_TO_SEE));
    }
    text.push('\n');
}
