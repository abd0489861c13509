//! Folds the generated objects of retries into their queue, and the exchange of a dead-letter queue into that queue.

use super::raw::{Link, Raw, members};
use super::{ArrowKind, Mark, Retries, Tier};
use crate::model::naming::TierName;
use crate::model::units::duration;
use crate::model::{ObjectId, QueueName, Strategy};
use crate::plan::{Desired, PlannedChange};
use std::collections::{BTreeMap, BTreeSet};

/// Maps each folded object to the object that it is drawn in.
pub(super) type Folds = BTreeMap<ObjectId, ObjectId>;

/// Returns the objects to fold.
pub(super) fn find_folds(raw: &Raw, desired: &Desired, changes: &[PlannedChange]) -> Folds {
    let generated = members(desired).into_iter().map(|(id, queue)| (id.clone(), queue.clone()));
    let retired = changes.iter().filter_map(|change| Some((change.id()?, change.retires.clone()?)));
    let mut folds: Folds = generated.chain(retired).map(|(id, queue)| (id, ObjectId::Queue(queue))).collect();
    // If the plan deletes the queue itself, the rest of its retries is not folded.
    folds.retain(|id, queue| raw.nodes.contains_key(queue) && !matches!(id, ObjectId::Binding(_)));
    folds.extend(dead_letter_exchanges(raw, desired));
    folds
}

/// Returns the exchanges whose only destination is a dead-letter queue. An exchange whose mark differs from the mark of
/// the queue is not folded, so that both marks are visible. A change of the queue by a policy does not count.
fn dead_letter_exchanges<'a>(raw: &'a Raw, desired: &'a Desired) -> impl Iterator<Item = (ObjectId, ObjectId)> + 'a {
    let mut onward: BTreeMap<&ObjectId, Vec<&Link>> = BTreeMap::new();
    for link in &raw.links {
        onward.entry(&link.from).or_default().push(link);
    }
    desired.sources.iter().filter_map(move |(id, source)| {
        let queue = ObjectId::Queue(source.part_of.clone()?);
        let (exchange, behind) = (raw.nodes.get(id)?, raw.nodes.get(&queue)?);
        let mark = behind.mark.filter(|mark| *mark != Mark::Changed);
        let leads_there = |link: &&Link| link.to == queue && link.mark == mark;
        let is_part = exchange.kind.is_exchange()
            && exchange.mark == mark
            && onward.get(id).is_some_and(|links| links.iter().all(leads_there));
        is_part.then(|| (id.clone(), queue))
    })
}

/// Returns the graph without the folded objects.
pub(super) fn fold(raw: &Raw, folds: &Folds, desired: &Desired, changes: &[PlannedChange]) -> Raw {
    let of = |id: &ObjectId| folds.get(id).unwrap_or(id).clone();
    let mut nodes = raw.nodes.clone();
    nodes.retain(|id, _| !folds.contains_key(id));
    for (queue, retries) in retries(raw, folds, desired, changes) {
        if let Some(node) = nodes.get_mut(&queue) {
            node.retries = Some(retries);
        }
    }
    let generated = members(desired);
    let declared: BTreeSet<&ObjectId> = desired.sources.iter().map(|(id, _)| id).collect();
    // True for a dead-letter queue that dead-letters to its own exchange: its dead-lettered messages return.
    let returns = |link: &Link| {
        let is_from_queue = link.kind == ArrowKind::DeadLetter && !folds.contains_key(&link.from);
        is_from_queue && declared.contains(&link.to) && !generated.contains_key(&link.to)
    };
    let is_shown = |link: &&Link| link.from == link.to || of(&link.from) != of(&link.to) || returns(link);
    let link = |link: &Link| {
        let is_from_retries = link.from != of(&link.from);
        // The routing key of the last tier does not matter to a reader.
        let label = link.label.clone().filter(|_| !is_from_retries);
        Link { from: of(&link.from), to: of(&link.to), label, ..link.clone() }
    };
    let links: BTreeSet<Link> = raw.links.iter().filter(is_shown).map(link).collect();
    Raw { nodes, links, effective: raw.effective.clone() }
}

/// Returns the tiers of each queue that has or had tiers.
fn retries(raw: &Raw, folds: &Folds, desired: &Desired, changes: &[PlannedChange]) -> BTreeMap<ObjectId, Retries> {
    let mut tiers: BTreeMap<ObjectId, BTreeMap<(u32, u32, i64), Tier>> = BTreeMap::new();
    let mut marks: BTreeMap<ObjectId, Vec<Option<Mark>>> = BTreeMap::new();
    for (id, queue) in folds {
        let Some(node) = raw.nodes.get(id) else { continue };
        let tier = match id {
            ObjectId::Queue(name) => TierName::parse(name),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Binding(_)
            | ObjectId::Record(_) => None,
        };
        if let Some(tier) = tier {
            let delay = duration(tier.delay).unwrap_or_else(|| "0ms".to_owned());
            let place = (tier.number, tier.generation, tier.delay);
            let tier = Tier { number: tier.number, name: node.name.clone(), delay, mark: node.mark };
            tiers.entry(queue.clone()).or_default().insert(place, tier);
        }
        marks.entry(queue.clone()).or_default().push(node.mark);
    }
    for change in changes {
        // A binding of the family that is added or deleted is a change of the retries.
        let id = change.id();
        let family =
            desired.scope.families.iter().find(|family| id.as_ref().is_some_and(|id| family.members.contains(id)));
        let queue = family.map(|family| &family.queue).or(change.retires.as_ref());
        if let (Some(ObjectId::Binding(_)), Some(queue)) = (&id, queue) {
            marks.entry(ObjectId::Queue(queue.clone())).or_default().push(Some(Mark::of(change.kind)));
        }
    }
    let strategies: BTreeMap<&QueueName, Strategy> =
        desired.scope.families.iter().map(|family| (&family.queue, family.strategy)).collect();
    let entry = |queue: &ObjectId| match queue {
        ObjectId::Queue(name) => match strategies.get(name) {
            Some(Strategy::Republish) => "republished",
            Some(Strategy::Ladder | Strategy::Redeliver | Strategy::Delayed) => "rejected",
            None => "retired",
        },
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            "retired"
        }
    };
    let retries = |(queue, tiers): (ObjectId, BTreeMap<_, Tier>)| {
        let mark = Mark::joined(marks.remove(&queue).unwrap_or_default());
        let out = entry(&queue).to_owned();
        (queue, Retries { out, mark, tiers: tiers.into_values().collect() })
    };
    tiers.into_iter().map(retries).collect()
}
