//! What several queues say alike, and others do not: once, in a table that they refer to.

use super::said::Said;
use super::yaml::{Entry, Tree, entry, merged};
use crate::model::{ObjectId, QueueName};
use std::collections::BTreeMap;

/// So many queues must say so many keys alike.
const FEWEST_QUEUES: usize = 3;
const FEWEST_KEYS: usize = 3;

/// The tables that queues refer to.
pub(super) struct Shared(Vec<Table>);

struct Table {
    name: String,
    entries: Vec<Entry>,
    /// The first queue that refers to it: what is wrong with the table is wrong with that one.
    first: QueueName,
}

impl Shared {
    /// What is worth it.
    pub(super) fn of(queues: &BTreeMap<QueueName, Said>) -> Self {
        let mut groups: Vec<(Vec<Entry>, Vec<&QueueName>)> = Vec::new();
        for (name, said) in queues.iter().filter(|(_, said)| !said.is_dead_letter_queue) {
            let entries = said.entries();
            if entries.len() < FEWEST_KEYS {
                continue;
            }
            match groups.iter_mut().find(|(known, _)| *known == entries) {
                Some((_, names)) => names.push(name),
                None => groups.push((entries, vec![name])),
            }
        }
        let mut shared = Self(Vec::new());
        for (entries, names) in groups.into_iter().filter(|(_, names)| names.len() >= FEWEST_QUEUES) {
            let stem = stem(&names);
            let taken = |name: &String| shared.0.iter().any(|table| table.name == *name);
            let others = (2..).map(|number| format!("{stem}-{number}"));
            let name = [stem.clone()].into_iter().chain(others).find(|name| !taken(name)).unwrap_or_default();
            shared.0.push(Table { name, entries, first: names[0].clone() });
        }
        shared
    }

    /// A reference where there is a table for them.
    pub(super) fn instead_of(&self, entries: Vec<Entry>) -> Vec<Entry> {
        match self.0.iter().find(|table| table.entries == entries) {
            Some(table) => vec![merged(&table.name)],
            None => entries,
        }
    }

    /// The tables themselves.
    pub(super) fn sections(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter().map(|Table { name, entries, first }| {
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
