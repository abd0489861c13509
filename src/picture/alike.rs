//! Queues that are alike, each with what it has for itself, are drawn as one where there are too many boxes otherwise.

use super::raw::{Link, Raw};
use super::{ArrowKind, Kind, Mark, Node};
use crate::model::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// With fewer boxes, each is drawn.
const MANY: usize = 60;
/// With fewer of them, each is drawn.
const LEAST_ALIKE: usize = 6;

/// What a box looks like without its name.
type Looks<'a> = (Kind, &'a str, &'a [String], Option<Mark>, Vec<(&'a str, Option<Mark>)>);

/// What leads from it and to it, and where; nothing for what it has for itself.
type Ways<'a> = Vec<(bool, ArrowKind, Option<Mark>, Option<&'a ObjectId>, Option<Looks<'a>>)>;

/// With one box for those that are alike.
pub(super) fn stacked(raw: Raw) -> Raw {
    if raw.nodes.len() <= MANY {
        return raw;
    }
    let stands_for = stands_for(&raw);
    let of = |id: &ObjectId| stands_for.get(id).unwrap_or(id).clone();
    let mut alike: BTreeMap<&ObjectId, Vec<String>> = BTreeMap::new();
    for (id, first) in &stands_for {
        alike.entry(first).or_default().extend(raw.nodes.get(id).map(|node| node.name.clone()));
    }
    let links = raw.links.iter().map(|link| Link { from: of(&link.from), to: of(&link.to), ..link.clone() }).collect();
    let is_drawn = |id: &ObjectId| stands_for.get(id).is_none_or(|first| first == id);
    let drawn = raw.nodes.iter().filter(|(id, _)| is_drawn(id));
    let stack = |(id, node): (&ObjectId, &Node)| {
        let names = alike.get(id).cloned().unwrap_or_default();
        (id.clone(), Node { alike: names, ..node.clone() })
    };
    Raw { nodes: drawn.map(stack).collect(), links }
}

/// Of each that is drawn with others, the one that is drawn.
fn stands_for(raw: &Raw) -> BTreeMap<ObjectId, ObjectId> {
    let neighbours = raw.neighbours();
    let is_queue =
        |id: &ObjectId| raw.nodes.get(id).is_some_and(|node| matches!(node.kind, Kind::Queue | Kind::Stream));
    // What only this queue is linked to.
    let is_own = |id: &ObjectId| !is_queue(id) && neighbours.get(id).is_some_and(|others| others.len() == 1);
    let mut links: BTreeMap<&ObjectId, Vec<&Link>> = BTreeMap::new();
    for link in &raw.links {
        for end in [&link.from, &link.to] {
            links.entry(end).or_default().push(link);
        }
    }
    let ways = |id: &ObjectId| -> (Ways<'_>, Vec<ObjectId>) {
        let mut ways = BTreeSet::new();
        for link in links.get(id).into_iter().flatten() {
            let is_out = link.from == *id;
            let other = if is_out { &link.to } else { &link.from };
            let looks = raw.nodes.get(other).filter(|_| is_own(other)).map(looks);
            let shared = looks.is_none().then_some(other);
            ways.insert((is_out, link.kind, link.mark, shared, looks, other));
        }
        let own = ways.iter().filter(|way| way.3.is_none()).map(|way| way.5.clone()).collect();
        (
            ways.into_iter()
                .map(|(is_out, kind, mark, shared, looks, _)| (is_out, kind, mark, shared, looks))
                .collect(),
            own,
        )
    };
    let mut groups: BTreeMap<(Looks<'_>, Ways<'_>), Vec<(&ObjectId, Vec<ObjectId>)>> = BTreeMap::new();
    for (id, node) in raw.nodes.iter().filter(|(id, _)| is_queue(id)) {
        let (ways, own) = ways(id);
        groups.entry((looks(node), ways)).or_default().push((id, own));
    }
    let mut stands_for = BTreeMap::new();
    for group in groups.into_values().filter(|group| group.len() >= LEAST_ALIKE) {
        let Some((first, first_own)) = group.first().cloned() else { continue };
        for (id, own) in group {
            stands_for.insert(id.clone(), first.clone());
            stands_for.extend(own.into_iter().zip(first_own.iter().cloned()));
        }
    }
    stands_for
}

fn looks(node: &Node) -> Looks<'_> {
    let tiers = node.retries.iter().flat_map(|retries| &retries.tiers);
    (node.kind, &node.words, &node.notes, node.mark, tiers.map(|tier| (tier.delay.as_str(), tier.mark)).collect())
}
