//! What is near a queue: as many arrows away as is asked for, whichever way they point.

use super::fold::Folds;
use super::raw::Raw;
use crate::model::{ObjectId, QueueName};
use std::collections::BTreeSet;

/// A queue, and how far around it is looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// The queue; one of its tiers is as good.
    pub queue: QueueName,
    /// In arrows; a queue with its retries counts as one.
    pub depth: usize,
}

/// All that is near it in a folded picture; `None` where there is no such queue.
pub(super) fn near(folded: &Raw, folds: &Folds, focus: &Focus) -> Option<BTreeSet<ObjectId>> {
    let queue = ObjectId::Queue(focus.queue.clone());
    let start = folds.get(&queue).unwrap_or(&queue);
    folded.nodes.contains_key(start).then_some(())?;
    let neighbours = folded.neighbours();
    let mut near: BTreeSet<&ObjectId> = [start].into();
    let mut edge = near.clone();
    for _ in 0..focus.depth {
        let next: BTreeSet<&ObjectId> = edge.iter().filter_map(|id| neighbours.get(id)).flatten().copied().collect();
        edge = next.difference(&near).copied().collect();
        if edge.is_empty() {
            break;
        }
        near.extend(&edge);
    }
    Some(near.into_iter().cloned().collect())
}
