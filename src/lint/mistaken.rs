//! Specs that have errors: what can be said of the rest of them all the same, so that one mistake does not hide another.
//!
//! Only what a broker refuses of an object by itself: what rules say of several objects may follow from what was left out.

use super::{Finding, Levels, Subject, asked, found_by, joined};
use crate::behaviour::Dialect;
use crate::expand::expand_all;
use crate::spec::{Diagnostic, Diagnostics, Location, Severity, Spec};
use std::collections::BTreeSet;

/// An error that leaves nothing out: the name is there, only what it means is not.
const UNDECLARED: &str = "undeclared";

/// A spec with what is wrong with it.
pub struct Mistaken<'a> {
    spec: &'a Spec,
    /// Where the objects are declared.
    declared: BTreeSet<Location>,
    /// Of these, the ones of which something was left out.
    incomplete: BTreeSet<Location>,
    /// The lines in which something is wrong, each with its file.
    lines: BTreeSet<(usize, usize)>,
    /// Whether nothing was left out anywhere.
    is_complete: bool,
}

impl<'a> Mistaken<'a> {
    /// A spec, and all errors of the files.
    pub fn new(spec: &'a Spec, errors: &Diagnostics) -> Self {
        let queues = spec.queues.values().chain(spec.dead_letter_queues.values().map(|entry| &entry.queue));
        let places = queues.map(|queue| queue.at).chain(spec.exchanges.values().map(|exchange| exchange.at));
        let declared = places.chain(spec.policies.values().map(|policy| policy.at)).collect();
        let mut mistaken =
            Self { spec, declared, incomplete: BTreeSet::new(), lines: BTreeSet::new(), is_complete: true };
        for error in errors.iter().filter(|error| error.code != UNDECLARED) {
            mistaken.is_complete = false;
            for at in std::iter::once(error.primary).chain(error.secondary.iter().map(|(at, _)| *at)) {
                mistaken.incomplete.extend(mistaken.object_at(at));
                mistaken.lines.insert((at.file, at.line));
            }
        }
        mistaken
    }

    /// The object in whose lines a place is, as far as that can be told: the last that begins before it.
    fn object_at(&self, at: Location) -> Option<Location> {
        let last = Location { end: usize::MAX, ..at };
        self.declared.range(..=last).next_back().filter(|it| it.file == at.file).copied()
    }

    /// What else is wrong: with what the spec stands for, and what a broker of that kind refuses.
    pub fn errors(&self, dialect: &Dialect) -> Diagnostics {
        let (expansion, expanding) = expand_all(self.spec, dialect);
        let mut found = Diagnostics::new();
        if self.is_complete {
            found.extend(expanding);
        }
        let levels = Levels::new();
        let subject = Subject::new(self.spec, &expansion, dialect);
        let can_refuse =
            |rule: &&&super::Rule| rule.severity == Severity::Error || rule.sometimes.contains(&Severity::Error);
        let rules: Vec<_> = asked(&subject, &levels).collect();
        let rules: Vec<_> = rules.iter().filter(can_refuse).copied().collect();
        let (allowed, refused) = found_by(&rules, &subject, &levels);
        let is_complete = |finding: &&Finding| {
            // What an anchor lacks every object lacks that uses it.
            let is_wrong = self.lines.contains(&(finding.at.file, finding.at.line));
            !is_wrong && self.object_at(finding.at).is_none_or(|at| !self.incomplete.contains(&at))
        };
        let refused = joined(refused, &allowed);
        let refused = refused.iter().filter(|finding| finding.severity == Severity::Error).filter(is_complete);
        refused.for_each(|finding| found.push(Diagnostic::from(finding)));
        found
    }
}
