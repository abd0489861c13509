//! Moves settings that all queues have in common into the defaults. No queue could undo a default, so every queue that
//! accepts the setting must have it; only for the type, which each queue can set itself, the most frequent value is
//! enough.

use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{QueueName, QueueType};
use crate::plan::spec_keys::{QueueKeys, RetryKeys};
use std::collections::BTreeMap;

/// So many must say it, or it is sooner said than looked up.
const FEWEST: usize = 3;

/// Takes out of the queues what is said in `defaults`, which is returned if anything is.
pub(super) fn factored(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let mut of_queue: Vec<Entry> = queue_type(queues).into_iter().collect();
    of_queue.extend(KNOWN_ARGUMENTS.iter().filter_map(|known| argument(queues, known)));
    let mut defaults = Vec::new();
    if !of_queue.is_empty() {
        defaults.push(entry("queue", Tree::table(of_queue)));
    }
    // Neither dead-letter queues nor streams have these.
    let takes = |said: &&mut QueueKeys| !said.is_dead_letter_queue && said.kind != Some(QueueType::Stream);
    let taking: Vec<&mut QueueKeys> = queues.values_mut().filter(takes).collect();
    if taking.len() >= FEWEST {
        let (first, rest) = (&taking[0], &taking[1..]);
        let dead_letter =
            first.dead_letter.clone().filter(|it| rest.iter().all(|other| other.dead_letter.as_ref() == Some(it)));
        let retry = first.retry.clone();
        let is_one_retry = retry.is_some() && rest.iter().all(|other| other.retry == retry);
        defaults.extend(dead_letter.clone().map(|it| entry("deadLetter", it)));
        if is_one_retry {
            defaults.extend(retry.iter().flat_map(RetryKeys::entries));
        }
        for said in taking {
            if dead_letter.is_some() {
                said.dead_letter = None;
            }
            if is_one_retry {
                said.retry = None;
            }
        }
    }
    (!defaults.is_empty()).then(|| entry("defaults", Tree::table(defaults)))
}

fn queue_type(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let count = |kind: QueueType| queues.values().filter(|said| said.kind == Some(kind)).count();
    // Of two that are as frequent, the first: the order of the types is that in which people are told of them.
    let most =
        QueueType::ALL.into_iter().rev().max_by_key(|kind| count(*kind)).filter(|kind| count(*kind) >= FEWEST)?;
    for said in queues.values_mut().filter(|said| said.kind == Some(most)) {
        said.queue_type = None;
    }
    Some(entry("type", Tree::plain(most)))
}

fn argument(queues: &mut BTreeMap<QueueName, QueueKeys>, known: &KnownArgument) -> Option<Entry> {
    let takes = |said: &QueueKeys| said.kind.is_some_and(|kind| known.support_for(kind).is_some());
    let mut taking = queues.values().filter(|said| takes(said));
    let value = taking.next()?.keys.get(known.name)?.clone();
    let others = taking.map(|said| said.keys.get(known.name) == Some(&value)).collect::<Vec<_>>();
    if others.len() + 1 < FEWEST || others.contains(&false) {
        return None;
    }
    for said in queues.values_mut() {
        said.keys.remove(known.name);
    }
    Some(entry(known.key, value))
}
