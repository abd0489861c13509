//! Lints specs that have errors, so that one run reports as many errors as possible. Reports only errors, and only for
//! complete objects. Omits less severe findings, because the incomplete objects could cause them.

use super::subject::Subject;
use super::{Finding, Levels, Rule, enabled_rules, merge_findings, run_rules};
use crate::expand::expand_all;
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostic, Diagnostics, Location, Severity, Spec};
use std::collections::BTreeSet;

/// The error code for references to undeclared names. Such an error does not make the spec incomplete.
const UNDECLARED: &str = "undeclared";

/// A spec with its errors.
pub struct PartialSpec<'a> {
    spec: &'a Spec,
    /// The positions of all declared queues, exchanges and policies.
    declared: BTreeSet<Location>,
    /// The positions of the declared objects that are incomplete because of an error.
    incomplete: BTreeSet<Location>,
    /// The lines with errors, as pairs of a file index and a line number.
    lines: BTreeSet<(usize, usize)>,
    /// True if the spec is complete despite its errors.
    is_complete: bool,
}

impl<'a> PartialSpec<'a> {
    /// Creates a partial spec from a spec and all errors in its files.
    pub fn new(spec: &'a Spec, errors: &Diagnostics) -> Self {
        let queues = spec.queues.values().chain(spec.dead_letter_queues.values().map(|entry| &entry.queue));
        let positions = queues.map(|queue| queue.at).chain(spec.exchanges.values().map(|exchange| exchange.at));
        let declared = positions.chain(spec.policies.values().map(|policy| policy.at)).collect();
        let mut partial =
            Self { spec, declared, incomplete: BTreeSet::new(), lines: BTreeSet::new(), is_complete: true };
        for error in errors.iter().filter(|error| error.code != UNDECLARED) {
            partial.is_complete = false;
            for at in std::iter::once(error.primary).chain(error.secondary.iter().map(|(at, _)| *at)) {
                partial.incomplete.extend(partial.object_at(at));
                partial.lines.insert((at.file, at.line));
            }
        }
        partial
    }

    /// Returns the position of the object that contains a position: the last declared object in the file that begins at
    /// or before the position. Returns `None` if there is no such object.
    fn object_at(&self, at: Location) -> Option<Location> {
        let last = Location { end: usize::MAX, ..at };
        self.declared.range(..=last).next_back().filter(|it| it.file == at.file).copied()
    }

    /// Returns additional errors: lint findings with error severity, such as predicted refusals by the broker. Includes
    /// the errors of the expansion if the spec is complete.
    pub fn errors(&self, profile: &BrokerProfile) -> Diagnostics {
        let (expansion, errors) = expand_all(self.spec, profile);
        let mut found = Diagnostics::new();
        if self.is_complete {
            found.extend(errors);
        }
        let levels = Levels::new();
        let subject = Subject::new(self.spec, &expansion, profile);
        let can_refuse =
            |rule: &&&Rule| rule.severity == Severity::Error || rule.other_severities.contains(&Severity::Error);
        let rules: Vec<_> = enabled_rules(&subject, &levels).collect();
        let rules: Vec<_> = rules.iter().filter(can_refuse).copied().collect();
        let (allowed, refusals) = run_rules(&rules, &subject, &levels);
        let is_complete = |finding: &&Finding| {
            // A finding on a line with an error can be a consequence of that error. For example, an error in a YAML
            // anchor affects every object that uses the anchor.
            let has_error = self.lines.contains(&(finding.at.file, finding.at.line));
            !has_error && self.object_at(finding.at).is_none_or(|at| !self.incomplete.contains(&at))
        };
        let refusals = merge_findings(refusals, &allowed);
        let refusals = refusals.iter().filter(|finding| finding.severity == Severity::Error).filter(is_complete);
        refusals.for_each(|finding| found.push(Diagnostic::from(finding)));
        found
    }
}
