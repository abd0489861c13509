//! Checks the minimum coverage of a run: enough pairs for every possible verdict on this version, and every argument on
//! every queue type with every possible verdict. [`super::argument_table`] lists the arguments.

use std::collections::{BTreeMap, BTreeSet};

use topo::model::QueueType;
use topo::plan::Verdict;

use super::answer::Predicted;
use super::argument_table::Entry;
use super::queues::{Definition, Live};

/// The minimum number of pairs per verdict in a run with 2,000 pairs.
const ENOUGH: usize = 150;

/// The observed events.
#[derive(Default)]
pub(super) struct Met {
    verdicts: BTreeMap<Verdict, usize>,
    /// The number of pairs by argument, type of the current queue, and verdict.
    fields: BTreeMap<(String, QueueType, Verdict), usize>,
}

/// The possible verdicts for a queue.
const VERDICTS: [Verdict; 5] = [Verdict::Equal, Verdict::Conflict, Verdict::Drift, Verdict::Unknown, Verdict::Invalid];

impl Met {
    pub(super) fn count(&mut self, live: &Live, desired: &Definition, verdict: Verdict, predicted: &Predicted) {
        *self.verdicts.entry(verdict).or_default() += 1;
        if !live.definition.arguments.contains_key("x-queue-type") {
            return;
        }
        let Some(kind) = live.definition.queue().queue_type() else { return };
        let mut add = |name: &String, verdict: Verdict| {
            *self.fields.entry((name.clone(), kind, verdict)).or_default() += 1;
        };
        for (name, verdict) in &predicted.fields {
            add(name, *verdict);
        }
        if verdict == Verdict::Equal {
            let both = desired.arguments.keys().filter(|name| live.definition.arguments.contains_key(*name));
            both.for_each(|name| add(name, verdict));
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        for (verdict, times) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += times;
        }
        for (field, times) in other.fields {
            *self.fields.entry(field).or_default() += times;
        }
    }

    /// Returns the number of pairs.
    pub(super) fn pairs(&self) -> usize {
        self.verdicts.values().sum()
    }

    fn times(&self, name: &str, kind: QueueType, verdict: Verdict) -> usize {
        self.fields.get(&(name.to_owned(), kind, verdict)).copied().unwrap_or_default()
    }

    /// Returns the number of pairs for each observed verdict of an argument.
    pub(super) fn of(&self, entry: &Entry) -> BTreeMap<Verdict, usize> {
        let times = VERDICTS.map(|verdict| (verdict, self.times(entry.name, entry.kind, verdict)));
        times.into_iter().filter(|(_, times)| *times > 0).collect()
    }

    pub(super) fn print(&self, listed: &[Entry]) {
        let line: Vec<String> = self.verdicts.iter().map(|(verdict, times)| format!("{verdict} {times}")).collect();
        println!("{}", line.join(", "));
        for entry in listed {
            let met: Vec<String> =
                self.of(entry).iter().map(|(verdict, times)| format!("{verdict} {times:>4}")).collect();
            println!("  {:<34} {:<8} {}", entry.name, entry.kind, met.join("  "));
        }
    }

    /// Returns the expected events that did not occur.
    pub(super) fn missing(&self, listed: &[Entry]) -> Vec<String> {
        let mut missing = Vec::new();
        let mut possible = BTreeSet::from([Verdict::Unknown]);
        for entry in listed {
            let verdicts = entry.verdicts();
            possible.extend(&verdicts);
            for verdict in verdicts.into_iter().filter(|verdict| self.times(entry.name, entry.kind, *verdict) == 0) {
                missing.push(format!("{} of {} queues never {verdict}", entry.name, entry.kind));
            }
        }
        for verdict in VERDICTS.into_iter().filter(|verdict| possible.contains(verdict)) {
            let times = self.verdicts.get(&verdict).copied().unwrap_or_default();
            if times < ENOUGH {
                missing.push(format!("{verdict} only {times} times"));
            }
        }
        missing
    }
}
