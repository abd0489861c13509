//! What a run must have met to prove anything: enough pairs of every verdict that is possible on this version, and every
//! argument in every verdict that it can have. What is possible is computed from the table of known arguments.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, json};
use topo::behaviour::{Dialect, refusals};
use topo::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use topo::model::{Object, QueueName, QueueType};
use topo::plan::Verdict;

use super::answer::Predicted;
use super::draw::{can_be_made, usual};
use super::queues::{Definition, Live};

/// How many pairs of each verdict a run of 2,000 has at least.
const ENOUGH: usize = 150;

/// What was met.
#[derive(Default)]
pub(super) struct Met {
    verdicts: BTreeMap<Verdict, usize>,
    fields: BTreeMap<(String, Verdict), usize>,
}

/// The verdicts that a queue can have.
const VERDICTS: [Verdict; 5] = [Verdict::Equal, Verdict::Conflict, Verdict::Drift, Verdict::Unknown, Verdict::Invalid];

impl Met {
    pub(super) fn count(&mut self, live: &Live, wanted: &Definition, verdict: Verdict, predicted: &Predicted) {
        *self.verdicts.entry(verdict).or_default() += 1;
        for field in &predicted.fields {
            *self.fields.entry(field.clone()).or_default() += 1;
        }
        if verdict == Verdict::Equal {
            for name in wanted.arguments.keys().filter(|name| live.definition.arguments.contains_key(*name)) {
                *self.fields.entry((name.clone(), Verdict::Equal)).or_default() += 1;
            }
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

    /// How many pairs there were.
    pub(super) fn pairs(&self) -> usize {
        self.verdicts.values().sum()
    }

    fn times(&self, name: &str, verdict: Verdict) -> usize {
        self.fields.get(&(name.to_owned(), verdict)).copied().unwrap_or_default()
    }

    pub(super) fn print(&self) {
        let line: Vec<String> = self.verdicts.iter().map(|(verdict, times)| format!("{verdict} {times}")).collect();
        println!("{}", line.join(", "));
        for known in KNOWN_ARGUMENTS {
            let times = VERDICTS.map(|verdict| format!("{verdict} {:>4}", self.times(known.name, verdict)));
            println!("  {:<34} {}", known.name, times.join("  "));
        }
    }

    /// What should have been met and was not.
    pub(super) fn missing(&self, dialect: &Dialect) -> Vec<String> {
        let mut missing = Vec::new();
        let mut can_drift = false;
        for known in KNOWN_ARGUMENTS {
            let possible = possible(known, dialect);
            can_drift |= possible.contains(&Verdict::Drift);
            for verdict in possible.into_iter().filter(|verdict| self.times(known.name, *verdict) == 0) {
                missing.push(format!("{} never {verdict}", known.name));
            }
        }
        for verdict in VERDICTS.into_iter().filter(|verdict| *verdict != Verdict::Drift || can_drift) {
            let times = self.verdicts.get(&verdict).copied().unwrap_or_default();
            if times < ENOUGH {
                missing.push(format!("{verdict} only {times} times"));
            }
        }
        missing
    }
}

/// The verdicts that an argument can have on that version.
fn possible(known: &KnownArgument, dialect: &Dialect) -> BTreeSet<Verdict> {
    let mut found = BTreeSet::new();
    for kind in QueueType::ALL {
        let mut bare = Definition::durable(Map::new());
        bare.arguments.insert("x-queue-type".to_owned(), json!(kind.as_str()));
        if known.name == "x-dead-letter-routing-key" {
            bare.arguments.insert("x-dead-letter-exchange".to_owned(), json!("a"));
        }
        if !can_be_made(&bare, dialect) {
            continue;
        }
        let with = |value: &serde_json::Value| {
            let mut with = bare.clone();
            with.arguments.insert(known.name.to_owned(), value.clone());
            with
        };
        if usual(known).iter().any(|value| can_be_made(&with(value), dialect)) {
            found.insert(Verdict::Equal);
            let is_compared = known.is_compared(kind, dialect.version);
            found.insert(if is_compared { Verdict::Conflict } else { Verdict::Drift });
        }
        // A value that nothing takes, where values are looked at.
        for value in usual(known).into_iter().chain([json!([1, "a"])]) {
            let object = Object::Queue(QueueName::from("q"), with(&value).queue());
            if refusals(&object, dialect).iter().any(|refusal| refusal.subject == known.name) {
                found.insert(Verdict::Invalid);
            }
        }
    }
    found
}
