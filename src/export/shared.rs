//! What several queues say alike, and others do not: once, in a table that they refer to.

use super::said::Said;
use super::yaml::{Entry, Tree, entry, merged};
use crate::model::{ObjectId, QueueName};
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
    /// What is worth it.
    pub(super) fn of(queues: &BTreeMap<QueueName, Said>) -> Self {
        let mut groups: BTreeMap<Vec<Entry>, Vec<&QueueName>> = BTreeMap::new();
        for (name, said) in queues.iter().filter(|(_, said)| !said.is_dead_letter_queue) {
            let entries = said.entries();
            if entries.len() >= FEWEST_KEYS {
                groups.entry(entries).or_default().push(name);
            }
        }
        let mut taken = BTreeSet::new();
        let mut shared = BTreeMap::new();
        for (entries, names) in groups.into_iter().filter(|(_, names)| names.len() >= FEWEST_QUEUES) {
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
        match self.0.get(&entries) {
            Some(table) => vec![merged(&table.name)],
            None => entries,
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
