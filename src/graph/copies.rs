//! Draws copies of nodes for arrows between the groups of a large graph. A copy is small and next to the box that the
//! arrow belongs to, so the groups need no arrows between them.

use super::groups::Groups;
use super::raw::{Link, Raw};
use super::{ArrowKind, Node};
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of sources of an object that is copied next to each source. With fewer sources, the sources are
/// copied.
const MANY_SOURCES: usize = 8;

/// Separates the groups: replaces one end of each link between two groups by a copy.
pub(super) fn separate_groups(raw: Raw) -> Raw {
    let groups = Groups::of(&raw);
    let group = |id: &ObjectId| groups.of.get(id).copied().unwrap_or_default();
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

/// The data that decides which end of a link is copied.
struct CopyPlacement<'a> {
    /// By source of bindings and group of their destinations, these destinations.
    heads: BTreeMap<(&'a ObjectId, usize), BTreeSet<&'a ObjectId>>,
    /// By destination of bindings, their sources.
    sources: BTreeMap<&'a ObjectId, BTreeSet<&'a ObjectId>>,
    /// By group, the number of queues.
    queues: BTreeMap<usize, usize>,
}

impl<'a> CopyPlacement<'a> {
    fn of(across: &BTreeSet<&'a Link>, groups: &Groups<'_>) -> Self {
        let mut placement = Self { heads: BTreeMap::new(), sources: BTreeMap::new(), queues: BTreeMap::new() };
        for link in across.iter().filter(|link| link.kind == ArrowKind::Binding) {
            let group = groups.of.get(&link.to).copied().unwrap_or_default();
            placement.heads.entry((&link.from, group)).or_default().insert(&link.to);
            placement.sources.entry(&link.to).or_default().insert(&link.from);
        }
        for (id, group) in &groups.of {
            *placement.queues.entry(*group).or_default() += usize::from(matches!(id, ObjectId::Queue(_)));
        }
        placement
    }

    /// Returns the two boxes of one group between which a link is drawn.
    fn ends(&self, link: &Link, groups: &Groups<'_>) -> (ObjectId, ObjectId) {
        let of = |id: &ObjectId| groups.of.get(id).copied().unwrap_or_default();
        let (here, there) = (of(&link.from), of(&link.to));
        let is_home = groups.home.get(&link.to) == Some(&&link.from);
        let has_many_sources = self.sources.get(&link.to).is_some_and(|from| from.len() >= MANY_SOURCES);
        // Dead-letter exchanges and alternate exchanges have many sources, so the destination is copied.
        if !is_home && (link.kind != ArrowKind::Binding || has_many_sources) {
            return (link.from.clone(), copy(&link.to, here, None));
        }
        let heads = self.heads.get(&(&link.from, there)).map_or(0, BTreeSet::len);
        // If at least half of the queues of a group are bound to the source, they share one copy.
        let is_shared = is_home || 2 * heads >= self.queues.get(&there).copied().unwrap_or_default().max(4);
        (copy(&link.from, there, (!is_shared).then_some(&link.to)), link.to.clone())
    }
}

/// Returns the key of a copy. The NUL characters keep it different from the name of any object.
fn copy(id: &ObjectId, group: usize, neighbor: Option<&ObjectId>) -> ObjectId {
    let neighbor = neighbor.and_then(ObjectId::name).unwrap_or_default();
    let name = format!("{}\0{group:06}\0{neighbor}", id.name().unwrap_or_default());
    match id {
        ObjectId::Exchange(_) => ObjectId::Exchange(ExchangeName::new(name)),
        ObjectId::Queue(_) => ObjectId::Queue(QueueName::new(name)),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => id.clone(),
    }
}
