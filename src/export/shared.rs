//! Moves common settings out of the queues. Settings that all queues share become defaults. Settings that several
//! queues share move to a shared mapping that these queues refer to.
//!
//! A queue cannot unset a default, so a setting becomes a default only if every queue that supports the setting has the
//! same value. The exception is the type. A queue can override the type, so the most frequent type becomes the default.

use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::yaml::{Entry, Tree, entry, merge_key};
use crate::model::{ObjectId, QueueName, QueueType};
use crate::plan::spec_keys::{QueueKeys, RetryKeys};
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of queues for a shared mapping.
const MIN_QUEUES: usize = 3;
/// The minimum number of keys for a shared mapping.
const MIN_KEYS: usize = 3;

/// The shared mappings, keyed by their entries.
#[derive(Default)]
pub(super) struct Shared(BTreeMap<Vec<Entry>, Mapping>);

struct Mapping {
    name: String,
    /// The first queue that refers to the mapping. Mismatches in the mapping are attributed to this queue.
    first: QueueName,
}

impl Shared {
    /// Finds the shared mappings. A mapping contains all keys of its queues, or all keys except `deadLetter`, which
    /// each queue then sets itself.
    pub(super) fn of(queues: &BTreeMap<QueueName, QueueKeys>) -> Self {
        let plain = queues.iter().filter(|(_, keys)| !keys.is_dead_letter_queue);
        let entries: Vec<(&QueueName, Vec<Entry>)> = plain.map(|(name, keys)| (name, keys.entries())).collect();
        let (mut groups, others) = group_equal(entries);
        let without_dead_letter = |(name, entries): (&'_ QueueName, Vec<Entry>)| {
            let (entries, dead_letter) = split(&entries);
            dead_letter.map(|_| (name.clone(), entries.to_vec()))
        };
        let others: Vec<(QueueName, Vec<Entry>)> = others.into_iter().filter_map(without_dead_letter).collect();
        let others = others.iter().map(|(name, entries)| (name, entries.clone())).collect();
        for (entries, names) in group_equal(others).0 {
            groups.entry(entries).or_default().extend(names);
        }
        let mut used_names = BTreeSet::new();
        let mut shared = BTreeMap::new();
        for (entries, names) in groups {
            let stem = stem(&names);
            let others = (2..).map(|number| format!("{stem}-{number}"));
            let name = [stem.clone()]
                .into_iter()
                .chain(others)
                .find(|name| used_names.insert(name.clone()))
                .unwrap_or_default();
            shared.insert(entries, Mapping { name, first: names[0].clone() });
        }
        Self(shared)
    }

    /// Replaces entries with a reference to their shared mapping. Returns the entries unchanged if they have no shared
    /// mapping.
    pub(super) fn replace(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let (common, dead_letter) = split(&entries);
        match (self.0.get(&entries), self.0.get(common)) {
            (Some(mapping), _) => vec![merge_key(&mapping.name)],
            (None, Some(mapping)) => [merge_key(&mapping.name)].into_iter().chain(dead_letter.cloned()).collect(),
            (None, None) => entries,
        }
    }

    /// Returns the spec sections that define the shared mappings.
    pub(super) fn sections(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter().map(|(entries, Mapping { name, first })| {
            let tree = Tree::table(entries).with_anchor(&name).about(ObjectId::Queue(first));
            entry(&format!("x-{name}"), tree)
        })
    }
}

type Groups<'q> = BTreeMap<Vec<Entry>, Vec<&'q QueueName>>;

/// Groups queues with identical entries. Returns the groups that are large enough, and the other queues.
fn group_equal(all: Vec<(&QueueName, Vec<Entry>)>) -> (Groups<'_>, Vec<(&QueueName, Vec<Entry>)>) {
    let mut groups = Groups::new();
    for (name, entries) in all {
        groups.entry(entries).or_default().push(name);
    }
    let (large, others): (Groups<'_>, Groups<'_>) =
        groups.into_iter().partition(|(entries, names)| entries.len() >= MIN_KEYS && names.len() >= MIN_QUEUES);
    let others = others.into_iter().flat_map(|(entries, names)| names.into_iter().map(move |it| (it, entries.clone())));
    (large, others.collect())
}

/// Splits off the last entry if it is `deadLetter`.
fn split(entries: &[Entry]) -> (&[Entry], Option<&Entry>) {
    match entries.split_last() {
        Some((last, before)) if last.key() == "deadLetter" => (before, Some(last)),
        Some(_) | None => (entries, None),
    }
}

/// Returns the common prefix of the names, without dashes or digits at either end. Dashes replace all characters that
/// are not ASCII alphanumeric. Returns `shared` if nothing remains.
fn stem(names: &[&QueueName]) -> String {
    let first = names[0].as_str();
    let is_common = |length: &usize| names.iter().all(|name| name.as_str().starts_with(&first[..*length]));
    let char_ends = first.char_indices().map(|(at, c)| at + c.len_utf8());
    let common = char_ends.take_while(is_common).last().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let stem: String = first[..common].chars().map(plain).collect();
    let stem = stem.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    if stem.is_empty() { "shared".to_owned() } else { stem.to_owned() }
}

/// The minimum number of queues for a default. Fewer queues are easier to read without a default.
const MIN_QUEUES_FOR_DEFAULT: usize = 3;

/// Moves common settings out of the queues. Returns the `defaults` section; `None` if there are no common settings.
pub(super) fn extract_defaults(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let mut of_queue: Vec<Entry> = extract_queue_type(queues).into_iter().collect();
    of_queue.extend(KNOWN_ARGUMENTS.iter().filter_map(|known| extract_argument(queues, known)));
    let mut defaults = Vec::new();
    if !of_queue.is_empty() {
        defaults.push(entry("queue", Tree::table(of_queue)));
    }
    // Dead-letter queues and streams do not support these settings.
    let supports = |queue: &&mut QueueKeys| !queue.is_dead_letter_queue && queue.kind != Some(QueueType::Stream);
    let supporting: Vec<&mut QueueKeys> = queues.values_mut().filter(supports).collect();
    if supporting.len() >= MIN_QUEUES_FOR_DEFAULT {
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

fn extract_queue_type(queues: &mut BTreeMap<QueueName, QueueKeys>) -> Option<Entry> {
    let count = |kind: QueueType| queues.values().filter(|queue| queue.kind == Some(kind)).count();
    // If two types are equally frequent, the first type in the order of the enum becomes the default.
    let most_frequent = QueueType::ALL
        .into_iter()
        .rev()
        .max_by_key(|kind| count(*kind))
        .filter(|kind| count(*kind) >= MIN_QUEUES_FOR_DEFAULT)?;
    for queue in queues.values_mut().filter(|queue| queue.kind == Some(most_frequent)) {
        queue.queue_type = None;
    }
    Some(entry("type", Tree::plain(most_frequent)))
}

fn extract_argument(queues: &mut BTreeMap<QueueName, QueueKeys>, known: &KnownArgument) -> Option<Entry> {
    let supports = |queue: &QueueKeys| queue.kind.is_some_and(|kind| known.support_for(kind).is_some());
    let mut supporting = queues.values().filter(|queue| supports(queue));
    let value = supporting.next()?.keys.get(known.name)?.clone();
    let others = supporting.map(|queue| queue.keys.get(known.name) == Some(&value)).collect::<Vec<_>>();
    if others.len() + 1 < MIN_QUEUES_FOR_DEFAULT || others.contains(&false) {
        return None;
    }
    for queue in queues.values_mut() {
        queue.keys.remove(known.name);
    }
    Some(entry(known.key, value))
}

#[cfg(test)]
mod tests {
    use crate::export::tests::{apply_spec, profile, text};

    #[test]
    fn common_settings_except_dead_letter_are_shared() {
        let spec = "
x-shard: &shard {maxLength: 7, singleActiveConsumer: true, maxRetries: 4}

defaults:
  queue: {type: quorum}

queues:
  other: {}
  shard.0: {<<: *shard, deadLetter: dead.0}
  shard.1: {<<: *shard, deadLetter: dead.1}
  shard.2: {<<: *shard, deadLetter: dead.2}

deadLetterQueues:
  dead.0: {}
  dead.1: {}
  dead.2: {}
";
        assert_eq!(text(&apply_spec(spec, &profile("4.0.5")), "4.0.5", &[]), spec);
    }
}
