//! Retries that somebody made by hand: what a queue rejects waits in another one until it dies of age, and comes back. To
//! the broker both ways are dead-lettering, to a reader neither is an end.

use super::ArrowKind;
use super::raw::{Link, Raw};
use crate::model::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// Draws them as retries. `ages` are the queues in which messages die of age, with the milliseconds.
pub(super) fn tell_apart(raw: &mut Raw, ages: &BTreeMap<ObjectId, i64>) {
    let ways = Ways::of(raw);
    let mut comes_back: BTreeMap<&ObjectId, BTreeSet<&ObjectId>> = BTreeMap::new();
    for (wait, age) in ages {
        // Of two that lead to each other, messages wait in the one that keeps them for a shorter time.
        let is_longer = |queue: &ObjectId| ages.get(queue).is_none_or(|other| other > age);
        for queue in ways.letters(wait) {
            if queue != wait && is_longer(queue) && ways.letters(queue).contains(wait) {
                comes_back.entry(queue).or_default().insert(wait);
            }
        }
    }
    let waits: BTreeSet<&ObjectId> = comes_back.values().flatten().copied().collect();
    let is_retry = |link: &Link| {
        let goes_out =
            comes_back.get(&link.from).is_some_and(|waits| ways.behind(&link.to).iter().all(|to| waits.contains(to)));
        link.kind == ArrowKind::DeadLetter && (goes_out || waits.contains(&link.from))
    };
    let retries: Vec<Link> = raw.links.iter().filter(|link| is_retry(link)).cloned().collect();
    for link in retries {
        raw.links.remove(&link);
        raw.links.insert(Link { kind: ArrowKind::Retry, ..link });
    }
}

/// Where messages go by themselves, whatever their key.
struct Ways {
    /// From each object, by dead-lettering and by bindings.
    from: BTreeMap<ObjectId, Vec<ObjectId>>,
}

impl Ways {
    fn of(raw: &Raw) -> Self {
        let mut from: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
        for link in &raw.links {
            from.entry(link.from.clone()).or_default().push(link.to.clone());
        }
        Self { from }
    }

    /// The queues that the dead letters of a queue may come to.
    fn letters(&self, queue: &ObjectId) -> BTreeSet<&ObjectId> {
        self.from.get(queue).into_iter().flatten().flat_map(|to| self.behind(to)).collect()
    }

    /// The queues behind an exchange, or the queue itself.
    fn behind<'a>(&'a self, id: &'a ObjectId) -> BTreeSet<&'a ObjectId> {
        let (mut queues, mut seen, mut todo) = (BTreeSet::new(), BTreeSet::new(), vec![id]);
        while let Some(id) = todo.pop() {
            match id {
                ObjectId::Queue(_) => drop(queues.insert(id)),
                _ if !seen.insert(id) => {}
                ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) => {
                    todo.extend(self.from.get(id).into_iter().flatten());
                }
            }
        }
        queues
    }
}
