//! Groups the boxes of a large graph. A box is in the group of its closest source: the source with the most similar
//! name and the most links. The number of rows in a group is limited, so that a group fits on a page.

use super::parts::{ArrowKind, Node};
use super::raw::Raw;
use crate::model::ObjectId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The maximum number of rows of boxes in a group. A connected part with at most this many rows is not divided.
const MAX_ROWS: usize = 28;

/// The groups of a graph.
pub(super) struct Groups<'a> {
    /// The group number of each box. The number is 0 if the connected part that contains the box is not divided.
    pub(super) group_of: BTreeMap<&'a ObjectId, usize>,
    /// A map from each box to the box that it belongs to, such as from a queue to its exchange, or from a dead-letter
    /// queue to a queue that dead-letters to it.
    pub(super) home: BTreeMap<&'a ObjectId, &'a ObjectId>,
}

impl<'a> Groups<'a> {
    pub(super) fn of(raw: &'a Raw) -> Self {
        let mut forest = Forest::of(raw);
        forest.set_parents();
        forest.attach_sources();
        let group = forest.divide();
        let ids = forest.ids;
        let home = forest.parent.iter().zip(&ids).filter_map(|(parent, id)| Some((*id, ids[(*parent)?])));
        Self { home: home.collect(), group_of: ids.iter().copied().zip(group).collect() }
    }
}

/// The number of links from one box to another box, by kind.
#[derive(Clone, Copy, Default)]
struct Way {
    bindings: usize,
    /// The number of links that are not bindings.
    others: usize,
}

/// Trees of boxes, in which each box is below the box that it belongs to. The indexes of boxes follow the order of
/// their IDs.
struct Forest<'a> {
    ids: Vec<&'a ObjectId>,
    nodes: Vec<&'a Node>,
    /// The links to each box, by source.
    into: Vec<BTreeMap<usize, Way>>,
    /// The links from each box, by destination.
    out: Vec<BTreeMap<usize, Way>>,
    /// The box that each box belongs to.
    parent: Vec<Option<usize>>,
}

impl<'a> Forest<'a> {
    fn of(raw: &'a Raw) -> Self {
        let indexes: BTreeMap<&ObjectId, usize> = raw.nodes.keys().zip(0..).collect();
        let count = indexes.len();
        let (mut into, mut out) = (vec![BTreeMap::new(); count], vec![BTreeMap::new(); count]);
        for link in raw.links.iter().filter(|link| link.from != link.to) {
            let (Some(from), Some(to)) = (indexes.get(&link.from), indexes.get(&link.to)) else { continue };
            for way in [into[*to].entry(*from), out[*from].entry(*to)] {
                let way: &mut Way = way.or_default();
                *(if link.kind == ArrowKind::Binding { &mut way.bindings } else { &mut way.others }) += 1;
            }
        }
        let (ids, nodes) = raw.nodes.iter().unzip();
        Self { ids, nodes, into, out, parent: vec![None; count] }
    }

    /// Sets the parent of each box based on the bindings to the box, or on the other links if there are no bindings.
    /// Other links are a weaker hint, because many queues share a dead-letter exchange.
    fn set_parents(&mut self) {
        for is_binding in [true, false] {
            for index in 0..self.ids.len() {
                if self.parent[index].is_none() {
                    let counts = |way: &Way| if is_binding { way.bindings } else { way.others };
                    self.parent[index] = self.closest(index, &self.into[index], counts);
                }
            }
        }
    }

    /// For each box that does not have a parent yet, makes the closest destination its parent. If the box has children,
    /// the destination's name must be at least as similar to the box's name as any child's name is. For example,
    /// exchange `team.events` joins exchange `team.commands`.
    fn attach_sources(&mut self) {
        let mut child_similarity: Vec<Option<usize>> = vec![None; self.ids.len()];
        for (index, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = parent {
                let similarity = self.name_similarity(index, *parent).0.max(1);
                child_similarity[*parent] = child_similarity[*parent].max(Some(similarity));
            }
        }
        for (index, least) in child_similarity.into_iter().enumerate() {
            if self.parent[index].is_none() {
                let is_as_close = |other| least.is_none_or(|least| self.name_similarity(index, other).0 >= least);
                let out = self.out[index].iter().filter(|(other, _)| is_as_close(**other));
                self.parent[index] = self.closest(index, out, |way| way.bindings + way.others);
            }
        }
    }

    /// Returns the closest box. Prefers the box with the most similar name, then the box with the most links, then the
    /// box with links to the fewest other boxes. Excludes boxes below `index`. Returns `None` if there is no such box.
    fn closest<'b>(
        &self,
        index: usize,
        ways: impl IntoIterator<Item = (&'b usize, &'b Way)>,
        counts: impl Fn(&Way) -> usize,
    ) -> Option<usize> {
        let ways = ways.into_iter().filter(|(_, way)| counts(way) > 0);
        let rank = |(other, way): (&usize, &Way)| {
            (Reverse((self.name_similarity(index, *other), counts(way))), self.out[*other].len(), *other)
        };
        let mut found: Vec<_> = ways.map(rank).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, other)| other).find(|other| !self.is_below(*other, index))
    }

    /// Returns the number of leading words that two names share, and the total number of words that they share.
    fn name_similarity(&self, one: usize, other: usize) -> (usize, usize) {
        let (one, other) = (words(&self.nodes[one].name), words(&self.nodes[other].name));
        let leading = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        (leading, one.iter().filter(|word| other.contains(word)).count())
    }

    fn is_below(&self, index: usize, above: usize) -> bool {
        std::iter::successors(Some(index), |index| self.parent[*index]).any(|it| it == above)
    }

    /// Returns the group of each box.
    fn divide(&self) -> Vec<usize> {
        let count = self.ids.len();
        let mut children = vec![Vec::new(); count];
        for (index, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(index);
            }
        }
        let mut walk: Vec<usize> = (0..count).filter(|index| self.parent[*index].is_none()).rev().collect();
        let mut order = Vec::new();
        while let Some(index) = walk.pop() {
            order.push(index);
            walk.extend(children[index].iter().rev());
        }
        let is_large = self.find_large(&children, &order);
        // From the bottom up, computes the rows of the boxes below each box, excluding boxes that already have a group.
        let mut rows = vec![0; count];
        let mut group = vec![0; count];
        let mut next = 1;
        for index in order.iter().rev().filter(|index| is_large[**index]) {
            let open: Vec<usize> = children[*index].iter().copied().filter(|child| group[*child] == 0).collect();
            let sum: usize = open.iter().map(|child| rows[*child]).sum();
            rows[*index] = sum.max(self.own_rows(*index));
            if sum <= MAX_ROWS {
                continue;
            }
            let each = sum.div_ceil(sum.div_ceil(MAX_ROWS));
            group[*index] = next;
            let mut filled = 0;
            for child in open {
                if filled > 0 && (filled >= each || filled + rows[child] > MAX_ROWS) {
                    (next, filled) = (next + 1, 0);
                }
                group[child] = next;
                filled += rows[child];
            }
            next += 1;
        }
        for index in order.iter().filter(|index| is_large[**index]) {
            if group[*index] == 0 {
                group[*index] = match self.parent[*index] {
                    Some(parent) => group[parent],
                    None => next,
                };
                next += usize::from(self.parent[*index].is_none());
            }
        }
        group
    }

    /// Returns true for each box whose connected part has more than [`MAX_ROWS`] rows.
    fn find_large(&self, children: &[Vec<usize>], order: &[usize]) -> Vec<bool> {
        let mut rows = vec![0; self.ids.len()];
        for index in order.iter().rev() {
            let below: usize = children[*index].iter().map(|child| rows[*child]).sum();
            rows[*index] = below.max(1);
        }
        let mut is_large = vec![false; self.ids.len()];
        let mut is_seen = is_large.clone();
        for start in 0..self.ids.len() {
            let (mut part, mut open) = (Vec::new(), vec![start]);
            while let Some(index) = open.pop() {
                if !std::mem::replace(&mut is_seen[index], true) {
                    part.push(index);
                    open.extend(self.into[index].keys().chain(self.out[index].keys()));
                }
            }
            let all: usize = part.iter().filter(|it| self.parent[**it].is_none()).map(|root| rows[*root]).sum();
            if all > MAX_ROWS {
                part.into_iter().for_each(|index| is_large[index] = true);
            }
        }
        is_large
    }

    /// Returns the number of rows that a box itself occupies: one, plus half a row for the copy of each additional
    /// source.
    fn own_rows(&self, index: usize) -> usize {
        let bound = self.into[index].iter().filter(|(_, way)| way.bindings > 0).count();
        1 + bound.saturating_sub(1) / 2
    }
}

/// Returns the words of a name. `orders.work` shares a word with `orders`, but `order-items` does not.
fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}
