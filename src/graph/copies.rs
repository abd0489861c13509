//! Copies nodes for arrows between groups of a large graph, which would otherwise tie it into one knot. The other end
//! is drawn again, small, next to the box that it belongs to.

use super::groups::Groups;
use super::raw::{Link, Raw};
use super::{ArrowKind, Node};
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// What is bound to so many others is drawn beside each of them, not each of them beside it.
const MANY_SOURCES: usize = 8;

/// Each group for itself.
pub(super) fn apart(raw: Raw) -> Raw {
    let groups = Groups::of(&raw);
    let group = |id: &ObjectId| groups.of.get(id).copied().unwrap_or_default();
    let is_across = |link: &&Link| group(&link.from) != group(&link.to);
    let across: BTreeSet<&Link> = raw.links.iter().filter(is_across).collect();
    let beside = Beside::of(&across, &groups);
    let mut nodes = raw.nodes.clone();
    let mut links: BTreeSet<Link> = raw.links.iter().filter(|link| !is_across(link)).cloned().collect();
    for link in across {
        let (from, to) = beside.ends(link, &groups);
        for (original, drawn) in [(&link.from, &from), (&link.to, &to)] {
            if let Some(node) = raw.nodes.get(original).filter(|_| original != drawn) {
                nodes.entry(drawn.clone()).or_insert_with(|| Node { is_copy: true, retries: None, ..node.clone() });
            }
        }
        links.insert(Link { from, to, ..link.clone() });
    }
    Raw { nodes, links, holds: raw.holds }
}

/// Where copies are.
struct Beside<'a> {
    /// By where bindings lead from and the group they lead to, where in it.
    heads: BTreeMap<(&'a ObjectId, usize), BTreeSet<&'a ObjectId>>,
    /// By where bindings lead to, where from.
    sources: BTreeMap<&'a ObjectId, BTreeSet<&'a ObjectId>>,
    /// How many queues each group has.
    queues: BTreeMap<usize, usize>,
}

impl<'a> Beside<'a> {
    fn of(across: &BTreeSet<&'a Link>, groups: &Groups<'_>) -> Self {
        let mut beside = Self { heads: BTreeMap::new(), sources: BTreeMap::new(), queues: BTreeMap::new() };
        for link in across.iter().filter(|link| link.kind == ArrowKind::Binding) {
            let group = groups.of.get(&link.to).copied().unwrap_or_default();
            beside.heads.entry((&link.from, group)).or_default().insert(&link.to);
            beside.sources.entry(&link.to).or_default().insert(&link.from);
        }
        for (id, group) in &groups.of {
            *beside.queues.entry(*group).or_default() += usize::from(matches!(id, ObjectId::Queue(_)));
        }
        beside
    }

    /// Between which two boxes of one group an arrow is drawn.
    fn ends(&self, link: &Link, groups: &Groups<'_>) -> (ObjectId, ObjectId) {
        let of = |id: &ObjectId| groups.of.get(id).copied().unwrap_or_default();
        let (here, there) = (of(&link.from), of(&link.to));
        let is_home = groups.home.get(&link.to) == Some(&&link.from);
        let has_many_sources = self.sources.get(&link.to).is_some_and(|from| from.len() >= MANY_SOURCES);
        // What is not bound is led to from many: dead letters, and what cannot be routed.
        if !is_home && (link.kind != ArrowKind::Binding || has_many_sources) {
            return (link.from.clone(), copy(&link.to, here, None));
        }
        let heads = self.heads.get(&(&link.from, there)).map_or(0, BTreeSet::len);
        // What half of a group hears is drawn once for all.
        let is_shared = is_home || 2 * heads >= self.queues.get(&there).copied().unwrap_or_default().max(4);
        (copy(&link.from, there, (!is_shared).then_some(&link.to)), link.to.clone())
    }
}

/// A key of its own, beside that of the original: no name has a NUL in it.
fn copy(id: &ObjectId, group: usize, beside: Option<&ObjectId>) -> ObjectId {
    let beside = beside.and_then(ObjectId::name).unwrap_or_default();
    let name = format!("{}\0{group:06}\0{beside}", id.name().unwrap_or_default());
    match id {
        ObjectId::Exchange(_) => ObjectId::Exchange(ExchangeName::new(name)),
        ObjectId::Queue(_) => ObjectId::Queue(QueueName::new(name)),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => id.clone(),
    }
}
