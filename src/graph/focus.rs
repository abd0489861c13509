//! Selects the neighborhood of a queue or an exchange: the given number of arrows away, in either direction.

use super::fold::Folds;
use super::raw::Raw;
use crate::model::{ExchangeName, ObjectId, QueueName};
use std::collections::BTreeSet;

/// A queue or an exchange, and how far around it is looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// Its name, for one of a queue's tiers the queue's, too; both where there are a queue and an exchange of that name.
    pub name: String,
    /// In arrows; a queue with its retries counts as one.
    pub depth: usize,
}

/// All that is near it in a folded picture; `None` where nothing has that name.
pub(super) fn near(folded: &Raw, folds: &Folds, focus: &Focus) -> Option<BTreeSet<ObjectId>> {
    let named: [ObjectId; 2] =
        [ObjectId::Queue(QueueName::new(&focus.name)), ObjectId::Exchange(ExchangeName::new(&focus.name))];
    let drawn = named.iter().map(|id| folds.get(id).unwrap_or(id)).filter(|id| folded.nodes.contains_key(*id));
    let mut near: BTreeSet<&ObjectId> = drawn.collect();
    (!near.is_empty()).then_some(())?;
    let neighbours = folded.neighbours();
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
