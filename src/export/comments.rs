//! Writes comments above objects: observations of the recognition, and findings of the lint rules.

#[cfg(test)]
mod tests;

use super::Live;
use super::check::Read;
use super::document::Comments;
use super::recognize::{Recognized, waits};
use crate::lint::{Finding, Levels, Subject, lint};
use crate::model::yaml::Text;
use crate::model::{ObjectId, Topology};
use crate::spec::Severity;
use std::collections::BTreeMap;

/// Notes of which a person who takes over a topology wants to know; the others are advice.
const ODD: [&str; 2] = [UNBOUND, "unbound-exchange"];
const UNBOUND: &str = "unbound-queue";
const LOST: &str = "dead-letters-reach-nothing";

/// What a rule says of one object, once for all that it says it of.
struct Alike<'a> {
    rule: &'static str,
    /// The sentence before the key that it is about and behind it; all of it is before where it names none.
    around: (&'a str, &'a str),
    keys: Vec<&'a str>,
    findings: Vec<&'a Finding>,
}

/// By the object above which they stand. What is live and not in the spec is looked at, too: the comments are about the
/// broker as it is.
pub(super) fn of(recognized: &Recognized, read: &Read, text: &Text, live: &Live<'_>, kept: &Topology) -> Comments {
    let mut comments: Comments = recognized.notes.clone();
    let subject = Subject::new(&read.spec, &read.expansion, live.profile).amid(live.topology, live.has_passing);
    let found = lint(&subject, &Levels::new());
    let found = found.iter().filter(|it| it.severity != Severity::Info || ODD.contains(&it.rule));
    let mut alike: BTreeMap<&ObjectId, Vec<Alike<'_>>> = BTreeMap::new();
    for finding in found {
        // The outermost: the object whose key it is in, not the binding.
        let Some(id) = text.at(finding.at.start).last() else { continue };
        let key = text.text.get(finding.at.start..finding.at.end).unwrap_or_default();
        let (around, key) = match finding.text.split_once(&format!("`{key}`")) {
            Some(around) => (around, Some(key)),
            None => ((finding.text.as_str(), ""), None),
        };
        let of_it = alike.entry(id).or_default();
        match of_it.iter_mut().find(|it| (it.rule, it.around) == (finding.rule, around)) {
            Some(same) => {
                same.keys.extend(key);
                same.findings.push(finding);
            }
            None => {
                let keys = key.into_iter().collect();
                of_it.push(Alike { rule: finding.rule, around, keys, findings: vec![finding] });
            }
        }
    }
    for note in waits::notes(recognized, live, kept) {
        let of_it = alike.get_mut(&note.of);
        let is_lost = |it: &Alike<'_>| it.rule == LOST && live.has_passing;
        if note.goes_on && of_it.as_ref().is_some_and(|of_it| of_it.iter().any(is_lost)) {
            continue;
        }
        if let Some(of_it) = of_it.filter(|_| note.is_for_waiting) {
            // Who lets messages wait there knows how they come.
            of_it.retain(|it| it.rule != UNBOUND);
        }
        comments.entry(note.of).or_default().push(note.text);
    }
    for (id, of_it) in alike.into_iter().filter(|(_, of_it)| !of_it.is_empty()) {
        let notes = comments.entry(id.clone()).or_default();
        notes.extend(of_it.iter().map(|it| it.sentence()));
    }
    comments
}

impl Alike<'_> {
    fn sentence(&self) -> String {
        let keys = waits::listed(&self.keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>());
        let (before, behind) = self.around;
        let bindings = match &waits::listed(&self.bindings())[..] {
            "" => String::new(),
            bindings => format!("{bindings}: "),
        };
        format!("{}: {bindings}{before}{keys}{behind}", self.rule)
    }

    /// The keys of the bindings that are meant, where the sentence does not say them.
    fn bindings(&self) -> Vec<String> {
        let keys = self.findings.iter().flat_map(|finding| &finding.objects).filter_map(|id| match id {
            ObjectId::Binding(binding) => Some(format!("`{}`", binding.routing_key)),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Queue(_)
            | ObjectId::Record(_) => None,
        });
        let is_said = |key: &String| self.findings.iter().any(|finding| finding.text.contains(key));
        keys.filter(|key| key.len() > 2 && !is_said(key)).collect()
    }
}
