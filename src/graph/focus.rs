//! Selects the neighborhood of a queue or an exchange: the given number of arrows away, in either direction.

use super::fold::Folds;
use super::raw::Raw;
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::BTreeSet;

/// A queue or an exchange, and the size of the neighborhood to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// The name of the queue or exchange; the name of a tier selects its queue. If a queue and an exchange have this
    /// name, both are selected.
    pub name: String,
    /// The number of arrows; a queue with its retries counts as one box.
    pub depth: usize,
}

/// Returns the neighborhood in a folded graph, or `None` if no object has the name.
pub(super) fn near(folded: &Raw, folds: &Folds, focus: &Focus) -> Option<BTreeSet<ObjectId>> {
    let named: [ObjectId; 2] =
        [ObjectId::Queue(QueueName::new(&focus.name)), ObjectId::Exchange(ExchangeName::new(&focus.name))];
    let drawn = named.iter().map(|id| folds.get(id).unwrap_or(id)).filter(|id| folded.nodes.contains_key(*id));
    let mut near: BTreeSet<&ObjectId> = drawn.collect();
    (!near.is_empty()).then_some(())?;
    let neighbors = folded.neighbors();
    let mut edge = near.clone();
    for _ in 0..focus.depth {
        let next: BTreeSet<&ObjectId> = edge.iter().filter_map(|id| neighbors.get(id)).flatten().copied().collect();
        edge = next.difference(&near).copied().collect();
        if edge.is_empty() {
            break;
        }
        near.extend(&edge);
    }
    Some(near.into_iter().cloned().collect())
}
