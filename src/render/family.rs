//! Renders the retries of a queue: one line for all generated objects, or all of them below the queue, in the order in
//! which a failed message passes them.

use super::change_text::{details, place};
use super::style::{DIM, GREEN, Painted, RED, clean, columns, wrap};
use crate::model::binding::KeyAndArguments;
use crate::model::naming::{self, TierName};
use crate::model::retry::counted;
use crate::model::{Binding, Destination, ExchangeName, Family, Object, ObjectId, QueueName};
use crate::plan::{ChangeKind, PlannedChange, VhostPlan};
use anstyle::Style;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What tells where the rest is.
const HOW_TO_SEE: &str = "--show all lists them";

/// The members of families that a plan makes or retires: they are shown with their queue, and nowhere else.
pub(super) struct Folded<'a> {
    families: BTreeMap<&'a QueueName, Shown<'a>>,
    hidden: BTreeSet<ObjectId>,
    /// Whether each of them is listed.
    all: bool,
}

/// What is shown of one queue's retries.
pub(super) struct Shown<'a> {
    queue: &'a QueueName,
    /// How the queue retries; `None`: not any more.
    family: Option<&'a Family>,
    made: BTreeMap<ObjectId, &'a PlannedChange>,
    retired: BTreeMap<ObjectId, &'a PlannedChange>,
}

/// Members of a family that share a fate.
pub(super) struct Part<'a> {
    /// `ladder: 4 exchanges, 3 tier queues, 8 bindings`.
    pub(super) what: String,
    pub(super) style: Style,
    pub(super) sign: &'static str,
    pub(super) members: &'a BTreeMap<ObjectId, &'a PlannedChange>,
}

impl<'a> Folded<'a> {
    /// Of one vhost. Only what is created or retired is folded: whatever is changed, deleted or in conflict is looked at
    /// one by one.
    pub(super) fn of(part: &'a VhostPlan, all: bool) -> Self {
        let none = |queue| Shown { queue, family: None, made: BTreeMap::new(), retired: BTreeMap::new() };
        let mut families: BTreeMap<&QueueName, Shown<'_>> = BTreeMap::new();
        let created = part.changes.iter().filter(|change| change.kind == ChangeKind::Create);
        let created: BTreeMap<ObjectId, &PlannedChange> =
            created.filter_map(|change| Some((change.id()?, change))).collect();
        for family in &part.desired.scope.families {
            let made = family.members.iter().filter_map(|id| Some((id.clone(), *created.get(id)?))).collect();
            families.insert(&family.queue, Shown { family: Some(family), made, ..none(&family.queue) });
        }
        for change in &part.changes {
            if let (Some(queue), Some(id)) = (&change.retires, change.id()) {
                families.entry(queue).or_insert_with(|| none(queue)).retired.insert(id, change);
            }
        }
        let hidden = families.values().flat_map(|it| it.made.keys().chain(it.retired.keys())).cloned().collect();
        Self { families, hidden, all }
    }

    /// Whether an object is shown with its family.
    pub(super) fn hides(&self, id: &ObjectId) -> bool {
        self.hidden.contains(id)
    }

    /// Whether each member is listed.
    pub(super) fn lists_all(&self) -> bool {
        self.all
    }

    /// The queues that have something to show, whether they change themselves or not.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.families.iter().filter(|(_, it)| !it.made.is_empty() || !it.retired.is_empty()).map(|(queue, _)| *queue)
    }

    /// How a queue retries, and what is made and retired for it.
    pub(super) fn get(&self, id: &ObjectId) -> Option<&Shown<'a>> {
        match id {
            ObjectId::Queue(name) => self.families.get(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        }
    }
}

impl Shown<'_> {
    /// `retries 3: 5s → 30s → 5m → orders.dead`.
    pub(super) fn way(&self) -> Option<String> {
        self.family.map(|family| clean(&format!("retries {}: {}", family.retries, family.path)))
    }

    /// `+ ladder: 4 exchanges, 3 tier queues, 8 bindings` and `- retired: 1 tier queue`, where anything is; with `all`,
    /// each of them below.
    pub(super) fn lines(&self, text: &mut String, width: usize, all: bool) {
        for Part { what, style, sign, members } in self.parts() {
            let at = members.values().find_map(|change| place(change));
            let remark = if all { at.unwrap_or_default() } else { HOW_TO_SEE.to_owned() };
            line(text, (style, sign), &what, &remark, width);
            if all {
                self.list(text, (style, sign), members, width);
            }
        }
    }

    /// The members that are created and those that are retired, where there are any.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let parts = [
            (self.family.map(|family| family.strategy.as_str()), GREEN, "+", &self.made),
            (Some("retired"), RED, "-", &self.retired),
        ];
        parts.into_iter().filter_map(|(word, style, sign, members)| {
            let word = word.filter(|_| !members.is_empty())?;
            let what = format!("{word}: {}", counted(&members.keys().cloned().collect()));
            Some(Part { what, style, sign, members })
        })
    }

    /// The members, each with the bindings that lead on from it.
    fn list(
        &self,
        text: &mut String,
        (style, sign): (Style, &str),
        members: &BTreeMap<ObjectId, &PlannedChange>,
        width: usize,
    ) {
        let mut from: BTreeMap<&ExchangeName, Vec<&Binding>> = BTreeMap::new();
        let mut stations: BTreeSet<(Station, ObjectId)> = BTreeSet::new();
        for (id, change) in members {
            match change.after.as_ref().or(change.before.as_ref()) {
                Some(Object::Binding(binding)) => {
                    from.entry(&binding.source).or_default().push(binding);
                    let source = ObjectId::Exchange(binding.source.clone());
                    stations.insert((self.station(&source), source));
                }
                Some(_) | None => {
                    stations.insert((self.station(id), id.clone()));
                }
            }
        }
        for (_, id) in stations {
            let change = members.get(&id);
            let mark = change.map_or_else(|| " ".to_owned(), |_| Painted(style, sign).to_string());
            let _ = writeln!(text, "        {mark} {}", clean(&id.to_string()));
            // Below the name: generated names are long.
            let said = change.map_or_else(|| vec!["unchanged".to_owned()], |change| details(change));
            for line in wrap(&said, " · ", width.saturating_sub(BELOW.len())) {
                let _ = writeln!(text, "{BELOW}{line}");
            }
            let ObjectId::Exchange(name) = &id else { continue };
            for binding in from.remove(name).unwrap_or_default() {
                let verb = if sign == "-" { "unbind" } else { "bind" };
                let to = match &binding.destination {
                    Destination::Queue(name) => format!("→ queue {name}"),
                    Destination::Exchange(name) => format!("→ exchange {name}"),
                };
                let to = [format!("{verb} {}", KeyAndArguments(binding)), to];
                let lines = wrap(&to.map(|part| clean(&part)), " ", width.saturating_sub(BELOW.len() + 4));
                let _ = writeln!(text, "{BELOW}{} {}", Painted(style, sign), lines.join(&format!("\n{BELOW}    ")));
            }
        }
    }

    /// When a message that fails comes by.
    fn station(&self, id: &ObjectId) -> Station {
        let queue = self.queue;
        let (retry, first) = (naming::retry_exchange(queue), naming::first_exchange(queue));
        match id {
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => Station::Wiring,
            ObjectId::Queue(name) => {
                let tier = TierName::parse(name);
                tier.map_or(Station::Wiring, |tier| Station::Tier(tier.number, tier.generation))
            }
            ObjectId::Exchange(name) => match name {
                name if *name == naming::guard_exchange(queue) => Station::Guard,
                name if *name == retry || *name == naming::switch_of(&retry) => Station::Entrance,
                name if *name == naming::over_exchange(queue) => Station::Over,
                name if *name == first || *name == naming::switch_of(&first) => Station::First,
                name if *name == naming::return_exchange(queue) => Station::Return,
                _ => Station::Wiring,
            },
        }
    }
}

/// Where a member is on the way of a message that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Station {
    /// What is no place: a policy.
    Wiring,
    /// Parts the deaths.
    Guard,
    /// Takes what is tried again.
    Entrance,
    /// Takes what is tried often enough.
    Over,
    /// Leads to the first tier.
    First,
    /// Holds it for a while.
    Tier(u32, u32),
    /// Hands it back.
    Return,
}

/// Where what is said of a member begins.
const BELOW: &str = "            ";

fn line(text: &mut String, (style, sign): (Style, &str), what: &str, remark: &str, width: usize) {
    let _ = write!(text, "      {} {what}", Painted(style, sign));
    let room = width.checked_sub(8 + columns(what) + columns(remark)).filter(|room| *room >= 2);
    if let Some(room) = room.filter(|_| !remark.is_empty()) {
        let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, remark));
    }
    text.push('\n');
}
