//! Renders the changes to the retries of a queue: a summary line for the created objects, and a summary line for the
//! retired objects. Optionally lists each object, in the order in which a failed message passes through the objects.

use super::change_details::{details, spec_line};
use super::style::{DIM, GREEN, Painted, RED, clean, columns, wrap};
use crate::model::binding::KeyAndArguments;
use crate::model::naming::{self, TierName};
use crate::model::retry::count_by_kind;
use crate::model::{Binding, Destination, ExchangeName, Family, Object, ObjectId, QueueName};
use crate::plan::{ChangeKind, PlannedChange, VhostPlan};
use anstyle::Style;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The remark on a line that summarizes generated objects.
const HOW_TO_SEE: &str = "--show all lists them";

/// The objects that topo generates for retries. Contains only objects that a plan creates or retires. The plan text
/// shows these objects with their queue.
pub(super) struct FoldedRetries<'a> {
    families: BTreeMap<&'a QueueName, RetryChanges<'a>>,
    /// The IDs of the objects that the plan text shows only as part of their family.
    hidden: BTreeSet<ObjectId>,
    /// True to list each generated object.
    all: bool,
}

/// The changes to the retries of one queue.
pub(super) struct RetryChanges<'a> {
    queue: &'a QueueName,
    /// The retries in the spec, or `None` if the spec no longer declares retries.
    family: Option<&'a Family>,
    created: BTreeMap<ObjectId, &'a PlannedChange>,
    retired: BTreeMap<ObjectId, &'a PlannedChange>,
}

/// Either the created or the retired objects of a family.
pub(super) struct Summary<'a> {
    /// The summary, such as `ladder: 4 exchanges, 3 tier queues, 8 bindings`.
    pub(super) what: String,
    pub(super) style: Style,
    pub(super) sign: &'static str,
    pub(super) members: &'a BTreeMap<ObjectId, &'a PlannedChange>,
}

impl<'a> FoldedRetries<'a> {
    /// Collects the families of one vhost. Folds only objects that are created or retired. The plan text shows other
    /// changes individually.
    pub(super) fn of(part: &'a VhostPlan, all: bool) -> Self {
        let empty = |queue| RetryChanges { queue, family: None, created: BTreeMap::new(), retired: BTreeMap::new() };
        let mut families: BTreeMap<&QueueName, RetryChanges<'_>> = BTreeMap::new();
        let creations = part.changes.iter().filter(|change| change.kind == ChangeKind::Create);
        let creations: BTreeMap<ObjectId, &PlannedChange> =
            creations.filter_map(|change| Some((change.id()?, change))).collect();
        for family in &part.desired.scope.families {
            let created = family.members.iter().filter_map(|id| Some((id.clone(), *creations.get(id)?))).collect();
            let changes = RetryChanges { family: Some(family), created, ..empty(&family.queue) };
            families.insert(&family.queue, changes);
        }
        for change in &part.changes {
            if let (Some(queue), Some(id)) = (&change.retires, change.id()) {
                families.entry(queue).or_insert_with(|| empty(queue)).retired.insert(id, change);
            }
        }
        let hidden = families.values().flat_map(|it| it.created.keys().chain(it.retired.keys())).cloned().collect();
        Self { families, hidden, all }
    }

    /// Returns true if the plan text shows an object only as part of its family.
    pub(super) fn hides(&self, id: &ObjectId) -> bool {
        self.hidden.contains(id)
    }

    /// Returns true if the plan text lists each generated object.
    pub(super) fn lists_all(&self) -> bool {
        self.all
    }

    /// Returns the queues with created or retired objects, including queues that are otherwise unchanged.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.families.iter().filter(|(_, it)| !it.created.is_empty() || !it.retired.is_empty()).map(|(queue, _)| *queue)
    }

    /// Returns the changes to the retries of a queue. Returns `None` if the object is not a queue, or if the queue has
    /// no retries and no retired objects.
    pub(super) fn get(&self, id: &ObjectId) -> Option<&RetryChanges<'a>> {
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

impl RetryChanges<'_> {
    /// Describes the retries, as in `retries 3: 5s → 30s → 5m → orders.dead`. Returns `None` if the spec no longer
    /// declares retries.
    pub(super) fn path(&self) -> Option<String> {
        self.family.map(|family| clean(&format!("retries {}: {}", family.retries, family.path)))
    }

    /// Writes a summary line for the created objects, such as `+ ladder: 4 exchanges, 3 tier queues, 8 bindings`, and a
    /// summary line for the retired objects, such as `- retired: 1 tier queue`. If `all` is true, lists the objects
    /// below their summary line.
    pub(super) fn lines(&self, text: &mut String, width: usize, all: bool) {
        for Summary { what, style, sign, members } in self.parts() {
            let at = members.values().find_map(|change| spec_line(change));
            let remark = if all { at.unwrap_or_default() } else { HOW_TO_SEE.to_owned() };
            line(text, (style, sign), &what, &remark, width);
            if all {
                self.list(text, (style, sign), members, width);
            }
        }
    }

    /// Returns the summaries of the created and the retired objects, if there are any.
    pub(super) fn parts(&self) -> impl Iterator<Item = Summary<'_>> {
        let parts = [
            (self.family.map(|family| family.strategy.as_str()), GREEN, "+", &self.created),
            (Some("retired"), RED, "-", &self.retired),
        ];
        parts.into_iter().filter_map(|(word, style, sign, members)| {
            let word = word.filter(|_| !members.is_empty())?;
            let what = format!("{word}: {}", count_by_kind(&members.keys().cloned().collect()));
            Some(Summary { what, style, sign, members })
        })
    }

    /// Lists the objects and, below each exchange, the bindings whose source is this exchange.
    fn list(
        &self,
        text: &mut String,
        (style, sign): (Style, &str),
        members: &BTreeMap<ObjectId, &PlannedChange>,
        width: usize,
    ) {
        let mut from: BTreeMap<&ExchangeName, Vec<&Binding>> = BTreeMap::new();
        let mut ordered: BTreeSet<(Stage, ObjectId)> = BTreeSet::new();
        for (id, change) in members {
            match change.after.as_ref().or(change.before.as_ref()) {
                Some(Object::Binding(binding)) => {
                    from.entry(&binding.source).or_default().push(binding);
                    let source = ObjectId::Exchange(binding.source.clone());
                    ordered.insert((self.stage(&source), source));
                }
                Some(_) | None => {
                    ordered.insert((self.stage(id), id.clone()));
                }
            }
        }
        for (_, id) in ordered {
            let change = members.get(&id);
            let mark = change.map_or_else(|| " ".to_owned(), |_| Painted(style, sign).to_string());
            let _ = writeln!(text, "        {mark} {}", clean(&id.to_string()));
            // Generated names are long, so the details are below the name.
            let details = change.map_or_else(|| vec!["unchanged".to_owned()], |change| details(change));
            for line in wrap(&details, " · ", width.saturating_sub(BELOW.len())) {
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

    /// Returns the position of an object on the path of a failed message.
    fn stage(&self, id: &ObjectId) -> Stage {
        let queue = self.queue;
        let (retry, first) = (naming::retry_exchange(queue), naming::first_exchange(queue));
        match id {
            ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => Stage::Wiring,
            ObjectId::Queue(name) => {
                let tier = TierName::parse(name);
                tier.map_or(Stage::Wiring, |tier| Stage::Tier(tier.number, tier.generation))
            }
            ObjectId::Exchange(name) => match name {
                name if *name == naming::guard_exchange(queue) => Stage::Guard,
                name if *name == retry || *name == naming::switch_exchange(&retry) => Stage::Entrance,
                name if *name == naming::exhausted_exchange(queue) => Stage::Exhausted,
                name if *name == first || *name == naming::switch_exchange(&first) => Stage::First,
                name if *name == naming::return_exchange(queue) => Stage::Return,
                _ => Stage::Wiring,
            },
        }
    }
}

/// The position of an object on the path of a failed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// An object that is not on the path, such as a policy.
    Wiring,
    /// The exchange that separates rejected messages from other dead-lettered messages.
    Guard,
    /// An exchange that receives the messages to retry.
    Entrance,
    /// The exchange that receives the messages after their last retry.
    Exhausted,
    /// An exchange that routes messages to the first tier.
    First,
    /// The tier queue with this number and generation.
    Tier(u32, u32),
    /// The exchange that returns the messages to the queue.
    Return,
}

/// The indentation of an object's details.
const BELOW: &str = "            ";

fn line(text: &mut String, (style, sign): (Style, &str), what: &str, remark: &str, width: usize) {
    let _ = write!(text, "      {} {what}", Painted(style, sign));
    let room = width.checked_sub(8 + columns(what) + columns(remark)).filter(|room| *room >= 2);
    if let Some(room) = room.filter(|_| !remark.is_empty()) {
        let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, remark));
    }
    text.push('\n');
}
