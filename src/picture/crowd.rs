//! What everything leads to would tie a large picture into one knot, and cross it with arrows. It is drawn several times
//! instead: once beside each part that leads to it.

use super::Node;
use super::raw::{Link, Raw};
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::{BTreeMap, BTreeSet};

/// With fewer boxes, each is drawn once.
const MANY: usize = 100;
/// With fewer others that lead to it, it is drawn once.
const LEAST_SOURCES: usize = 8;

/// With copies of what everything leads to.
pub(super) fn thinned(raw: Raw) -> Raw {
    if raw.nodes.len() <= MANY {
        return raw;
    }
    let crowded = crowded(&raw);
    let parts = parts(&raw, &crowded);
    let mut nodes = raw.nodes.clone();
    let mut links = BTreeSet::new();
    for link in &raw.links {
        let part = parts.get(&link.from).filter(|_| crowded.contains(&link.to));
        let Some((part, node)) = part.zip(raw.nodes.get(&link.to)) else {
            links.insert(link.clone());
            continue;
        };
        let to = copy(&link.to, *part);
        nodes.remove(&link.to);
        nodes.entry(to.clone()).or_insert_with(|| Node { is_copy: true, ..node.clone() });
        links.insert(Link { to, ..link.clone() });
    }
    Raw { nodes, links }
}

/// Where many lead to and nothing leads on from.
fn crowded(raw: &Raw) -> BTreeSet<ObjectId> {
    let leads_on: BTreeSet<&ObjectId> = raw.links.iter().map(|link| &link.from).collect();
    let mut sources: BTreeMap<&ObjectId, BTreeSet<&ObjectId>> = BTreeMap::new();
    for link in raw.links.iter().filter(|link| !leads_on.contains(&link.to)) {
        sources.entry(&link.to).or_default().insert(&link.from);
    }
    sources.into_iter().filter(|(_, from)| from.len() >= LEAST_SOURCES).map(|(id, _)| id.clone()).collect()
}

/// The number of the part to which each of the others belongs.
fn parts(raw: &Raw, without: &BTreeSet<ObjectId>) -> BTreeMap<ObjectId, usize> {
    let neighbours = raw.neighbours();
    let mut parts = BTreeMap::new();
    let starts = raw.nodes.keys().filter(|id| !without.contains(id));
    for (number, start) in starts.enumerate() {
        let mut open = vec![start];
        while let Some(id) = open.pop() {
            if !without.contains(id) && !parts.contains_key(id) {
                parts.insert(id.clone(), number);
                open.extend(neighbours.get(id).into_iter().flatten());
            }
        }
    }
    parts
}

/// A key of its own, beside that of the original: no name has a NUL in it.
fn copy(id: &ObjectId, part: usize) -> ObjectId {
    match id {
        ObjectId::Exchange(name) => ObjectId::Exchange(ExchangeName::new(format!("{name}\0{part:06}"))),
        ObjectId::Queue(name) => ObjectId::Queue(QueueName::new(format!("{name}\0{part:06}"))),
        ObjectId::Vhost | ObjectId::Policy(_) | ObjectId::Binding(_) => id.clone(),
    }
}
