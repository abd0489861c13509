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
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Looks<'a> {
    kind: Kind,
    words: &'a str,
    notes: &'a [String],
    mark: Option<Mark>,
    tiers: Vec<(&'a str, Option<Mark>)>,
}

/// One way that leads from it or to it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Way<'a> {
    is_out: bool,
    kind: ArrowKind,
    mark: Option<Mark>,
    other: Other<'a>,
}

/// What is at the other end.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Other<'a> {
    /// What others are linked to, too.
    Shared(&'a ObjectId),
    /// What it has for itself.
    Own(Looks<'a>),
}

/// A queue, and what it has for itself, in the order of its ways.
struct Member<'a> {
    id: &'a ObjectId,
    own: Vec<&'a ObjectId>,
}

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
    Raw { nodes: drawn.map(stack).collect(), links, holds: raw.holds }
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
    let mut groups: BTreeMap<(Looks<'_>, Vec<Way<'_>>), Vec<Member<'_>>> = BTreeMap::new();
    for (id, node) in raw.nodes.iter().filter(|(id, _)| is_queue(id)) {
        let way = |link: &&'_ Link| {
            let is_out = link.from == *id;
            let end = raw.nodes.get_key_value(if is_out { &link.to } else { &link.from })?;
            let other = if is_own(end.0) { Other::Own(looks(end.1)) } else { Other::Shared(end.0) };
            Some((Way { is_out, kind: link.kind, mark: link.mark, other }, end.0))
        };
        // Several bindings to one are as good as one.
        let ways: BTreeSet<(Way<'_>, &ObjectId)> = links.get(id).into_iter().flatten().filter_map(way).collect();
        let is_to_own = |(way, _): &&(Way<'_>, &ObjectId)| matches!(way.other, Other::Own(_));
        let own = ways.iter().filter(is_to_own).map(|(_, end)| *end).collect();
        let key = (looks(node), ways.into_iter().map(|(way, _)| way).collect());
        groups.entry(key).or_default().push(Member { id, own });
    }
    let mut stands_for = BTreeMap::new();
    for group in groups.into_values().filter(|group| group.len() >= LEAST_ALIKE) {
        let Some(first) = group.first() else { continue };
        for member in &group {
            let pairs =
                [(member.id, first.id)].into_iter().chain(member.own.iter().copied().zip(first.own.iter().copied()));
            stands_for.extend(pairs.map(|(id, first)| (id.clone(), first.clone())));
        }
    }
    stands_for
}

fn looks(node: &Node) -> Looks<'_> {
    let tiers = node.retries.iter().flat_map(|retries| &retries.tiers);
    let tiers = tiers.map(|tier| (tier.delay.as_str(), tier.mark)).collect();
    Looks { kind: node.kind, words: &node.words, notes: &node.notes, mark: node.mark, tiers }
}
