//! Reduces the number of boxes and arrows in a large graph. Similar queues become one box. The corresponding objects
//! that are linked only to these queues also become one box. For an arrow between two groups, one end is replaced with
//! a small copy next to the other end, so that no arrow connects the groups.

use super::groups::Groups;
use super::parts::{ArrowKind, Kind, Mark, Node};
use super::raw::{Link, Raw};
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of boxes in a graph without stacks.
const MANY: usize = 60;
/// The minimum number of similar queues in a stack.
const MIN_SIMILAR: usize = 6;

/// The appearance of a box, except for its name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Appearance<'a> {
    kind: Kind,
    words: &'a str,
    notes: &'a [String],
    mark: Option<Mark>,
    tiers: Vec<(&'a str, Option<Mark>)>,
}

/// A link from the perspective of one of its ends.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Way<'a> {
    is_out: bool,
    kind: ArrowKind,
    mark: Option<Mark>,
    other: Other<'a>,
}

/// The other end of a link.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Other<'a> {
    /// An object with several neighbors, or a queue.
    Shared(&'a ObjectId),
    /// An object whose only neighbor is this queue.
    Own(Appearance<'a>),
}

/// A queue, and the objects whose only neighbor is this queue, in the order of the queue's links.
struct Member<'a> {
    id: &'a ObjectId,
    own: Vec<&'a ObjectId>,
}

/// Replaces each group of similar queues with one box, if the graph is large.
pub(super) fn stack_similar(raw: Raw) -> Raw {
    if raw.nodes.len() <= MANY {
        return raw;
    }
    let representatives = representatives(&raw);
    let of = |id: &ObjectId| representatives.get(id).unwrap_or(id).clone();
    let mut stacks: BTreeMap<&ObjectId, Vec<String>> = BTreeMap::new();
    for (id, first) in &representatives {
        stacks.entry(first).or_default().extend(raw.nodes.get(id).map(|node| node.name.clone()));
    }
    let links = raw.links.iter().map(|link| Link { from: of(&link.from), to: of(&link.to), ..link.clone() }).collect();
    let is_drawn = |id: &ObjectId| representatives.get(id).is_none_or(|first| first == id);
    let drawn = raw.nodes.iter().filter(|(id, _)| is_drawn(id));
    let stack = |(id, node): (&ObjectId, &Node)| {
        let names = stacks.get(id).cloned().unwrap_or_default();
        (id.clone(), Node { stacks: names, ..node.clone() })
    };
    Raw { nodes: drawn.map(stack).collect(), links, effective: raw.effective }
}

/// Maps each stacked object to the object that is drawn in its place.
fn representatives(raw: &Raw) -> BTreeMap<ObjectId, ObjectId> {
    let neighbors = raw.neighbors();
    let is_queue =
        |id: &ObjectId| raw.nodes.get(id).is_some_and(|node| matches!(node.kind, Kind::Queue | Kind::Stream));
    // Returns true if an object has only one neighbor, and is neither a queue nor a stream.
    let is_own = |id: &ObjectId| !is_queue(id) && neighbors.get(id).is_some_and(|others| others.len() == 1);
    let mut links: BTreeMap<&ObjectId, Vec<&Link>> = BTreeMap::new();
    for link in &raw.links {
        for end in [&link.from, &link.to] {
            links.entry(end).or_default().push(link);
        }
    }
    let mut groups: BTreeMap<(Appearance<'_>, Vec<Way<'_>>), Vec<Member<'_>>> = BTreeMap::new();
    for (id, node) in raw.nodes.iter().filter(|(id, _)| is_queue(id)) {
        let way = |link: &&'_ Link| {
            let is_out = link.from == *id;
            let end = raw.nodes.get_key_value(if is_out { &link.to } else { &link.from })?;
            let other = if is_own(end.0) { Other::Own(appearance(end.1)) } else { Other::Shared(end.0) };
            Some((Way { is_out, kind: link.kind, mark: link.mark, other }, end.0))
        };
        // Identical bindings to the same object count as one link.
        let ways: BTreeSet<(Way<'_>, &ObjectId)> = links.get(id).into_iter().flatten().filter_map(way).collect();
        let is_to_own = |(way, _): &&(Way<'_>, &ObjectId)| matches!(way.other, Other::Own(_));
        let own = ways.iter().filter(is_to_own).map(|(_, end)| *end).collect();
        let key = (appearance(node), ways.into_iter().map(|(way, _)| way).collect());
        groups.entry(key).or_default().push(Member { id, own });
    }
    let mut representatives = BTreeMap::new();
    for group in groups.into_values().filter(|group| group.len() >= MIN_SIMILAR) {
        let Some(first) = group.first() else { continue };
        for member in &group {
            let pairs =
                [(member.id, first.id)].into_iter().chain(member.own.iter().copied().zip(first.own.iter().copied()));
            representatives.extend(pairs.map(|(id, first)| (id.clone(), first.clone())));
        }
    }
    representatives
}

fn appearance(node: &Node) -> Appearance<'_> {
    let tiers = node.retries.iter().flat_map(|retries| &retries.tiers);
    let tiers = tiers.map(|tier| (tier.delay.as_str(), tier.mark)).collect();
    Appearance { kind: node.kind, words: &node.words, notes: &node.notes, mark: node.mark, tiers }
}

/// An object with at least this many binding sources is copied next to each source. If an object has fewer sources, its
/// sources are copied next to the object.
const MANY_SOURCES: usize = 8;

/// Separates the groups: replaces one end of each link between two groups with a copy.
pub(super) fn separate_groups(raw: Raw) -> Raw {
    let groups = Groups::of(&raw);
    let group = |id: &ObjectId| groups.group_of.get(id).copied().unwrap_or_default();
    let is_across = |link: &&Link| group(&link.from) != group(&link.to);
    let across: BTreeSet<&Link> = raw.links.iter().filter(is_across).collect();
    let placement = CopyPlacement::of(&across, &groups);
    let mut nodes = raw.nodes.clone();
    let mut links: BTreeSet<Link> = raw.links.iter().filter(|link| !is_across(link)).cloned().collect();
    for link in across {
        let (from, to) = placement.ends(link, &groups);
        for (original, drawn) in [(&link.from, &from), (&link.to, &to)] {
            if let Some(node) = raw.nodes.get(original).filter(|_| original != drawn) {
                nodes.entry(drawn.clone()).or_insert_with(|| Node { is_copy: true, retries: None, ..node.clone() });
            }
        }
        links.insert(Link { from, to, ..link.clone() });
    }
    Raw { nodes, links, effective: raw.effective }
}

/// The data that determines which end of a link is copied.
struct CopyPlacement<'a> {
    /// The destinations of bindings, by source and by group of the destination.
    heads: BTreeMap<(&'a ObjectId, usize), BTreeSet<&'a ObjectId>>,
    /// The sources of bindings, by destination.
    sources: BTreeMap<&'a ObjectId, BTreeSet<&'a ObjectId>>,
    /// The number of queues in each group.
    queues: BTreeMap<usize, usize>,
}

impl<'a> CopyPlacement<'a> {
    fn of(across: &BTreeSet<&'a Link>, groups: &Groups<'_>) -> Self {
        let mut placement = Self { heads: BTreeMap::new(), sources: BTreeMap::new(), queues: BTreeMap::new() };
        for link in across.iter().filter(|link| link.kind == ArrowKind::Binding) {
            let group = groups.group_of.get(&link.to).copied().unwrap_or_default();
            placement.heads.entry((&link.from, group)).or_default().insert(&link.to);
            placement.sources.entry(&link.to).or_default().insert(&link.from);
        }
        for (id, group) in &groups.group_of {
            *placement.queues.entry(*group).or_default() += usize::from(matches!(id, ObjectId::Queue(_)));
        }
        placement
    }

    /// Returns the two boxes between which a link is drawn. Both boxes are in the same group.
    fn ends(&self, link: &Link, groups: &Groups<'_>) -> (ObjectId, ObjectId) {
        let of = |id: &ObjectId| groups.group_of.get(id).copied().unwrap_or_default();
        let (here, there) = (of(&link.from), of(&link.to));
        let is_home = groups.home.get(&link.to) == Some(&&link.from);
        let has_many_sources = self.sources.get(&link.to).is_some_and(|from| from.len() >= MANY_SOURCES);
        // Dead-letter exchanges and alternate exchanges have many sources, so the destination is copied.
        if !is_home && (link.kind != ArrowKind::Binding || has_many_sources) {
            return (link.from.clone(), copy(&link.to, here, None));
        }
        let heads = self.heads.get(&(&link.from, there)).map_or(0, BTreeSet::len);
        // If at least half of the queues in a group are bound to the source, they share one copy of the source.
        let is_shared = is_home || 2 * heads >= self.queues.get(&there).copied().unwrap_or_default().max(4);
        (copy(&link.from, there, (!is_shared).then_some(&link.to)), link.to.clone())
    }
}

/// Returns the ID of a copy. NUL characters distinguish the ID from the name of every object.
fn copy(id: &ObjectId, group: usize, neighbor: Option<&ObjectId>) -> ObjectId {
    let neighbor = neighbor.and_then(ObjectId::name).unwrap_or_default();
    let name = format!("{}\0{group:06}\0{neighbor}", id.name().unwrap_or_default());
    match id {
        ObjectId::Exchange(_) => ObjectId::Exchange(ExchangeName::new(name)),
        ObjectId::Queue(_) => ObjectId::Queue(QueueName::new(name)),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => id.clone(),
    }
}
