//! Moves settings that several queues have in common into a shared mapping that the queues refer to.

use crate::model::yaml::{Entry, Tree, entry, merged};
use crate::model::{ObjectId, QueueName};
use crate::plan::spec_keys::QueueKeys;
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of queues and of keys for a shared mapping.
const FEWEST_QUEUES: usize = 3;
const FEWEST_KEYS: usize = 3;

/// The shared mappings, by their entries.
pub(super) struct Shared(BTreeMap<Vec<Entry>, Mapping>);

struct Mapping {
    name: String,
    /// The first queue that refers to the mapping; mismatches of the mapping are attributed to this queue.
    first: QueueName,
}

impl Shared {
    /// Finds the shared mappings: all keys of the queues, or all keys except `deadLetter`, which each queue can set
    /// itself.
    pub(super) fn of(queues: &BTreeMap<QueueName, QueueKeys>) -> Self {
        let own = queues.iter().filter(|(_, keys)| !keys.is_dead_letter_queue);
        let entries: Vec<(&QueueName, Vec<Entry>)> = own.map(|(name, keys)| (name, keys.entries())).collect();
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
        let mut taken = BTreeSet::new();
        let mut shared = BTreeMap::new();
        for (entries, names) in groups {
            let stem = stem(&names);
            let others = (2..).map(|number| format!("{stem}-{number}"));
            let name =
                [stem.clone()].into_iter().chain(others).find(|name| taken.insert(name.clone())).unwrap_or_default();
            shared.insert(entries, Mapping { name, first: names[0].clone() });
        }
        Self(shared)
    }

    /// Replaces entries by a reference to their shared mapping, if there is one.
    pub(super) fn replace(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let (common, dead_letter) = split(&entries);
        match (self.0.get(&entries), self.0.get(common)) {
            (Some(mapping), _) => vec![merged(&mapping.name)],
            (None, Some(mapping)) => [merged(&mapping.name)].into_iter().chain(dead_letter.cloned()).collect(),
            (None, None) => entries,
        }
    }

    /// Returns the sections of the shared mappings.
    pub(super) fn sections(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter().map(|(entries, Mapping { name, first })| {
            let tree = Tree::table(entries).anchored(&name).about(ObjectId::Queue(first));
            entry(&format!("x-{name}"), tree)
        })
    }
}

type Groups<'q> = BTreeMap<Vec<Entry>, Vec<&'q QueueName>>;

/// Groups queues with equal entries. Returns the groups that are large enough, and the other queues.
fn group_equal(all: Vec<(&QueueName, Vec<Entry>)>) -> (Groups<'_>, Vec<(&QueueName, Vec<Entry>)>) {
    let mut groups = Groups::new();
    for (name, entries) in all {
        groups.entry(entries).or_default().push(name);
    }
    let (large, others): (Groups<'_>, Groups<'_>) =
        groups.into_iter().partition(|(entries, names)| entries.len() >= FEWEST_KEYS && names.len() >= FEWEST_QUEUES);
    let others = others.into_iter().flat_map(|(entries, names)| names.into_iter().map(move |it| (it, entries.clone())));
    (large, others.collect())
}

/// Splits off `deadLetter`, which is the last entry.
fn split(entries: &[Entry]) -> (&[Entry], Option<&Entry>) {
    match entries.split_last() {
        Some((last, before)) if last.key() == "deadLetter" => (before, Some(last)),
        Some(_) | None => (entries, None),
    }
}

/// Returns the common beginning of the names, with dashes in place of characters other than ASCII alphanumerics.
fn stem(names: &[&QueueName]) -> String {
    let first = names[0].as_str();
    let is_common = |length: &usize| names.iter().all(|name| name.as_str().starts_with(&first[..*length]));
    let ends = first.char_indices().map(|(at, c)| at + c.len_utf8());
    let common = ends.take_while(is_common).last().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let stem: String = first[..common].chars().map(plain).collect();
    let stem = stem.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    if stem.is_empty() { "shared".to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::export::tests::{applied, profile, text};

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
        assert_eq!(text(&applied(spec, &profile("4.0.5")), "4.0.5", &[]), spec);
    }
}
