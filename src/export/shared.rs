//! Moves settings that only some queues have in common into a shared mapping that they refer to.

use crate::model::yaml::{Entry, Tree, entry, merged};
use crate::model::{ObjectId, QueueName};
use crate::plan::spec_keys::QueueKeys;
use std::collections::{BTreeMap, BTreeSet};

/// So many queues must say so many keys alike.
const FEWEST_QUEUES: usize = 3;
const FEWEST_KEYS: usize = 3;

/// The tables that queues refer to, by what they say.
pub(super) struct Shared(BTreeMap<Vec<Entry>, Table>);

struct Table {
    name: String,
    /// The first queue that refers to it: what is wrong with the table is wrong with that one.
    first: QueueName,
}

impl Shared {
    /// What is worth it: all that queues say, or all but where their dead letters go, which each may say by itself.
    pub(super) fn of(queues: &BTreeMap<QueueName, QueueKeys>) -> Self {
        let own = queues.iter().filter(|(_, said)| !said.is_dead_letter_queue);
        let said: Vec<(&QueueName, Vec<Entry>)> = own.map(|(name, said)| (name, said.entries())).collect();
        let (mut groups, others) = alike(said);
        let but_letters = |(name, entries): (&'_ QueueName, Vec<Entry>)| {
            let (entries, letters) = split(&entries);
            letters.map(|_| (name.clone(), entries.to_vec()))
        };
        let others: Vec<(QueueName, Vec<Entry>)> = others.into_iter().filter_map(but_letters).collect();
        let others = others.iter().map(|(name, entries)| (name, entries.clone())).collect();
        for (entries, names) in alike(others).0 {
            groups.entry(entries).or_default().extend(names);
        }
        let mut taken = BTreeSet::new();
        let mut shared = BTreeMap::new();
        for (entries, names) in groups {
            let stem = stem(&names);
            let others = (2..).map(|number| format!("{stem}-{number}"));
            let name =
                [stem.clone()].into_iter().chain(others).find(|name| taken.insert(name.clone())).unwrap_or_default();
            shared.insert(entries, Table { name, first: names[0].clone() });
        }
        Self(shared)
    }

    /// A reference where there is a table for them.
    pub(super) fn instead_of(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let (but_letters, letters) = split(&entries);
        match (self.0.get(&entries), self.0.get(but_letters)) {
            (Some(table), _) => vec![merged(&table.name)],
            (None, Some(table)) => [merged(&table.name)].into_iter().chain(letters.cloned()).collect(),
            (None, None) => entries,
        }
    }

    /// The tables themselves.
    pub(super) fn sections(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter().map(|(entries, Table { name, first })| {
            let tree = Tree::table(entries).anchored(&name).about(ObjectId::Queue(first));
            entry(&format!("x-{name}"), tree)
        })
    }
}

type Groups<'q> = BTreeMap<Vec<Entry>, Vec<&'q QueueName>>;

/// Enough queues that say enough alike, and the others.
fn alike(said: Vec<(&QueueName, Vec<Entry>)>) -> (Groups<'_>, Vec<(&QueueName, Vec<Entry>)>) {
    let mut groups = Groups::new();
    for (name, entries) in said {
        groups.entry(entries).or_default().push(name);
    }
    let (alike, others): (Groups<'_>, Groups<'_>) =
        groups.into_iter().partition(|(entries, names)| entries.len() >= FEWEST_KEYS && names.len() >= FEWEST_QUEUES);
    let others = others.into_iter().flat_map(|(entries, names)| names.into_iter().map(move |it| (it, entries.clone())));
    (alike, others.collect())
}

/// Where dead letters go is said last.
fn split(entries: &[Entry]) -> (&[Entry], Option<&Entry>) {
    match entries.split_last() {
        Some((last, before)) if last.key() == "deadLetter" => (before, Some(last)),
        Some(_) | None => (entries, None),
    }
}

/// What the names begin with alike, in letters, digits and dashes.
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
    fn what_queues_say_alike_but_for_their_dead_letters_is_said_once() {
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
