//! Groups the boxes of a large graph. A queue is in the group of the exchange that is closest to it by name and by
//! bindings. The objects that both lead to are in the same group. A group has at most as many boxes as fit below each
//! other.

use super::parts::{ArrowKind, Node};
use super::raw::Raw;
use crate::model::ObjectId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The maximum number of rows of boxes in a group. A connected part that fits into these rows is not divided.
const MOST_ROWS: usize = 28;

/// The groups of a graph.
pub(super) struct Groups<'a> {
    /// By box, the number of its group, or 0 if its connected part is not divided.
    pub(super) of: BTreeMap<&'a ObjectId, usize>,
    /// By box, the box that it belongs to: for a queue its exchange, for a dead-letter queue a queue that dead-letters
    /// to it.
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
        Self { home: home.collect(), of: ids.iter().copied().zip(group).collect() }
    }
}

/// The links from one box to another, counted.
#[derive(Clone, Copy, Default)]
struct Way {
    bindings: usize,
    others: usize,
}

/// Boxes, each below the box that it belongs to. The numbers of boxes follow the order of their IDs, and so of their
/// names.
struct Forest<'a> {
    ids: Vec<&'a ObjectId>,
    nodes: Vec<&'a Node>,
    /// By box, the links that lead to it, by source; then the links that lead from it, by destination.
    into: Vec<BTreeMap<usize, Way>>,
    out: Vec<BTreeMap<usize, Way>>,
    parent: Vec<Option<usize>>,
}

impl<'a> Forest<'a> {
    fn of(raw: &'a Raw) -> Self {
        let places: BTreeMap<&ObjectId, usize> = raw.nodes.keys().zip(0..).collect();
        let count = places.len();
        let (mut into, mut out) = (vec![BTreeMap::new(); count], vec![BTreeMap::new(); count]);
        for link in raw.links.iter().filter(|link| link.from != link.to) {
            let (Some(from), Some(to)) = (places.get(&link.from), places.get(&link.to)) else { continue };
            for way in [into[*to].entry(*from), out[*from].entry(*to)] {
                let way: &mut Way = way.or_default();
                *(if link.kind == ArrowKind::Binding { &mut way.bindings } else { &mut way.others }) += 1;
            }
        }
        let (ids, nodes) = raw.nodes.iter().unzip();
        Self { ids, nodes, into, out, parent: vec![None; count] }
    }

    /// Sets parents by bindings first, then by other links. Many queues share a dead-letter exchange, so it is a weaker
    /// hint.
    fn set_parents(&mut self) {
        for is_binding in [true, false] {
            for place in 0..self.ids.len() {
                if self.parent[place].is_none() {
                    let counts = |way: &Way| if is_binding { way.bindings } else { way.others };
                    self.parent[place] = self.closest(place, &self.into[place], counts);
                }
            }
        }
    }

    /// Sets the parent of each exchange without a source to the closest of its destinations. The destination must be at
    /// least as close by name as the exchange's own objects: `team.events` joins `team.commands`.
    fn attach_sources(&mut self) {
        let mut own: Vec<Option<usize>> = vec![None; self.ids.len()];
        for (place, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = parent {
                own[*parent] = own[*parent].max(Some(self.likeness(place, *parent).0)).max(Some(1));
            }
        }
        for place in 0..self.ids.len() {
            if self.parent[place].is_none() {
                let is_as_close = |other| own[place].is_none_or(|own| self.likeness(place, other).0 >= own);
                let out = self.out[place].iter().filter(|(other, _)| is_as_close(**other));
                self.parent[place] = self.closest(place, out, |way| way.bindings + way.others);
            }
        }
    }

    /// Returns the closest box: by name, then by the number of links, then by the fewest links to other boxes.
    fn closest<'b>(
        &self,
        place: usize,
        ways: impl IntoIterator<Item = (&'b usize, &'b Way)>,
        counts: impl Fn(&Way) -> usize,
    ) -> Option<usize> {
        let ways = ways.into_iter().filter(|(_, way)| counts(way) > 0);
        let rank = |(other, way): (&usize, &Way)| {
            (Reverse((self.likeness(place, *other), counts(way))), self.out[*other].len(), *other)
        };
        let mut found: Vec<_> = ways.map(rank).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, other)| other).find(|other| !self.is_below(*other, place))
    }

    /// Returns the number of leading words that two names share, and the number of words that are in both.
    fn likeness(&self, one: usize, other: usize) -> (usize, usize) {
        let (one, other) = (words(&self.nodes[one].name), words(&self.nodes[other].name));
        let leading = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        (leading, one.iter().filter(|word| other.contains(word)).count())
    }

    fn is_below(&self, place: usize, above: usize) -> bool {
        std::iter::successors(Some(place), |place| self.parent[*place]).any(|it| it == above)
    }

    /// Returns the group of each box.
    fn divide(&self) -> Vec<usize> {
        let count = self.ids.len();
        let mut children = vec![Vec::new(); count];
        for (place, parent) in self.parent.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(place);
            }
        }
        let mut walk: Vec<usize> = (0..count).filter(|place| self.parent[*place].is_none()).rev().collect();
        let mut order = Vec::new();
        while let Some(place) = walk.pop() {
            order.push(place);
            walk.extend(children[place].iter().rev());
        }
        let is_large = self.find_large(&children, &order);
        // From the bottom up: the rows of the boxes below a box, without the boxes that have a group already.
        let mut rows = vec![0; count];
        let mut group = vec![0; count];
        let mut next = 1;
        for place in order.iter().rev().filter(|place| is_large[**place]) {
            let open: Vec<usize> = children[*place].iter().copied().filter(|child| group[*child] == 0).collect();
            let sum: usize = open.iter().map(|child| rows[*child]).sum();
            rows[*place] = sum.max(self.own_rows(*place));
            if sum <= MOST_ROWS {
                continue;
            }
            let each = sum.div_ceil(sum.div_ceil(MOST_ROWS));
            group[*place] = next;
            let mut filled = 0;
            for child in open {
                if filled > 0 && (filled >= each || filled + rows[child] > MOST_ROWS) {
                    (next, filled) = (next + 1, 0);
                }
                group[child] = next;
                filled += rows[child];
            }
            next += 1;
        }
        for place in order.iter().filter(|place| is_large[**place]) {
            if group[*place] == 0 {
                group[*place] = match self.parent[*place] {
                    Some(parent) => group[parent],
                    None => next,
                };
                next += usize::from(self.parent[*place].is_none());
            }
        }
        group
    }

    /// Returns true for each box whose connected part needs more rows than a page has.
    fn find_large(&self, children: &[Vec<usize>], order: &[usize]) -> Vec<bool> {
        let mut rows = vec![0; self.ids.len()];
        for place in order.iter().rev() {
            let below: usize = children[*place].iter().map(|child| rows[*child]).sum();
            rows[*place] = below.max(1);
        }
        let mut is_large = vec![false; self.ids.len()];
        let mut is_seen = is_large.clone();
        for start in 0..self.ids.len() {
            let (mut part, mut open) = (Vec::new(), vec![start]);
            while let Some(place) = open.pop() {
                if !std::mem::replace(&mut is_seen[place], true) {
                    part.push(place);
                    open.extend(self.into[place].keys().chain(self.out[place].keys()));
                }
            }
            let all: usize = part.iter().filter(|it| self.parent[**it].is_none()).map(|root| rows[*root]).sum();
            if all > MOST_ROWS {
                part.into_iter().for_each(|place| is_large[place] = true);
            }
        }
        is_large
    }

    /// Returns the rows of a box itself: one, and half a row for each copy of another source.
    fn own_rows(&self, place: usize) -> usize {
        let bound = self.into[place].iter().filter(|(_, way)| way.bindings > 0).count();
        1 + bound.saturating_sub(1) / 2
    }
}

/// Returns the words of a name: `orders.work` shares a word with `orders`, and `order-items` does not.
fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}
