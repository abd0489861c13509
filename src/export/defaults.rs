//! Moves settings that all queues have in common into the defaults. A queue cannot unset a default, so every queue that
//! supports the setting must have it. The type is an exception: a queue can set its own, so the most frequent type
//! becomes the default.

use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::yaml::{Entry, Tree, entry};
use crate::model::{QueueName, QueueType};
use crate::plan::spec_keys::{QueueKeys, RetryKeys};
use std::collections::BTreeMap;

/// The minimum number of queues for a default. Fewer queues are easier to read without one.
const FEWEST: usize = 3;

/// Moves common settings out of the queues. Returns `defaults`, if there are common settings.
pub(super) fn extract_defaults(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let mut of_queue: Vec<Entry> = queue_type(queues).into_iter().collect();
    of_queue.extend(KNOWN_ARGUMENTS.iter().filter_map(|known| argument(queues, known)));
    let mut defaults = Vec::new();
    if !of_queue.is_empty() {
        defaults.push(entry("queue", Tree::table(of_queue)));
    }
    // Dead-letter queues and streams do not support these settings.
    let supports = |queue: &&mut QueueKeys| !queue.is_dead_letter_queue && queue.kind != Some(QueueType::Stream);
    let supporting: Vec<&mut QueueKeys> = queues.values_mut().filter(supports).collect();
    if supporting.len() >= FEWEST {
        let (first, rest) = (&supporting[0], &supporting[1..]);
        let dead_letter =
            first.dead_letter.clone().filter(|it| rest.iter().all(|other| other.dead_letter.as_ref() == Some(it)));
        let retry = first.retry.clone();
        let is_one_retry = retry.is_some() && rest.iter().all(|other| other.retry == retry);
        defaults.extend(dead_letter.clone().map(|it| entry("deadLetter", it)));
        if is_one_retry {
            defaults.extend(retry.iter().flat_map(RetryKeys::entries));
        }
        for queue in supporting {
            if dead_letter.is_some() {
                queue.dead_letter = None;
            }
            if is_one_retry {
                queue.retry = None;
            }
        }
    }
    (!defaults.is_empty()).then(|| entry("defaults", Tree::table(defaults)))
}

fn queue_type(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let count = |kind: QueueType| queues.values().filter(|queue| queue.kind == Some(kind)).count();
    // If two types are equally frequent, the first in the order of the enum wins.
    let most =
        QueueType::ALL.into_iter().rev().max_by_key(|kind| count(*kind)).filter(|kind| count(*kind) >= FEWEST)?;
    for queue in queues.values_mut().filter(|queue| queue.kind == Some(most)) {
        queue.queue_type = None;
    }
    Some(entry("type", Tree::plain(most)))
}

fn argument(queues: &mut BTreeMap<QueueName, QueueKeys>, known: &KnownArgument) -> Option<Entry> {
    let supports = |queue: &QueueKeys| queue.kind.is_some_and(|kind| known.support_for(kind).is_some());
    let mut supporting = queues.values().filter(|queue| supports(queue));
    let value = supporting.next()?.keys.get(known.name)?.clone();
    let others = supporting.map(|queue| queue.keys.get(known.name) == Some(&value)).collect::<Vec<_>>();
    if others.len() + 1 < FEWEST || others.contains(&false) {
        return None;
    }
    for queue in queues.values_mut() {
        queue.keys.remove(known.name);
    }
    Some(entry(known.key, value))
}
