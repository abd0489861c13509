//! Writes comments above exported objects: observations of the recognition, and findings of lint rules.

#[cfg(test)]
mod tests;

use super::Live;
use super::check::Read;
use super::document::Comments;
use super::recognize::patterns::Recognized;
use super::recognize::waits;
use crate::lint::{Finding, Levels, Subject, lint};
use crate::model::yaml::Text;
use crate::model::{ObjectId, Topology};
use crate::spec::Severity;
use std::collections::BTreeMap;

/// Rules whose info findings are exported, because they are useful for a new owner of the topology. Other info findings
/// are advice.
const ODD: [&str; 2] = [UNBOUND, "unbound-exchange"];
const UNBOUND: &str = "unbound-queue";
const LOST: &str = "dead-letters-reach-nothing";

/// The findings of a rule for one object that have the same text.
struct FindingGroup<'a> {
    rule: &'static str,
    /// The text before and after the key that the finding is about. Without such a key, the first part contains the
    /// whole text.
    frame: (&'a str, &'a str),
    keys: Vec<&'a str>,
    findings: Vec<&'a Finding>,
}

/// Returns the comments by object. The lint rules also consider objects that are not exported, so that comments
/// describe the broker.
pub(super) fn of(recognized: &Recognized, read: &Read, text: &Text, live: &Live<'_>, kept: &Topology) -> Comments {
    let mut comments: Comments = recognized.notes.clone();
    let subject = Subject::new(&read.spec, &read.expansion, live.profile)
        .with_live_topology(live.topology, live.has_transient_queues);
    let found = lint(&subject, &Levels::new());
    let found = found.iter().filter(|it| it.severity != Severity::Info || ODD.contains(&it.rule));
    let mut groups: BTreeMap<&ObjectId, Vec<FindingGroup<'_>>> = BTreeMap::new();
    for finding in found {
        // The last object is the outermost one: the queue whose `bindings` contain the line, not the binding.
        let Some(id) = text.at(finding.at.start).last() else { continue };
        let key = text.text.get(finding.at.start..finding.at.end).unwrap_or_default();
        let (frame, key) = match finding.text.split_once(&format!("`{key}`")) {
            Some(frame) => (frame, Some(key)),
            None => ((finding.text.as_str(), ""), None),
        };
        let of_object = groups.entry(id).or_default();
        match of_object.iter_mut().find(|it| (it.rule, it.frame) == (finding.rule, frame)) {
            Some(same) => {
                same.keys.extend(key);
                same.findings.push(finding);
            }
            None => {
                let keys = key.into_iter().collect();
                of_object.push(FindingGroup { rule: finding.rule, frame, keys, findings: vec![finding] });
            }
        }
    }
    for note in waits::notes(recognized, live, kept) {
        let of_object = groups.get_mut(&note.id);
        let is_lost = |it: &FindingGroup<'_>| it.rule == LOST && live.has_transient_queues;
        if note.names_destination && of_object.as_ref().is_some_and(|of_object| of_object.iter().any(is_lost)) {
            continue;
        }
        if let Some(of_object) = of_object.filter(|_| note.is_for_waiting) {
            // The owner of a waiting queue knows how messages arrive there.
            of_object.retain(|it| it.rule != UNBOUND);
        }
        comments.entry(note.id).or_default().push(note.text);
    }
    for (id, of_object) in groups.into_iter().filter(|(_, of_object)| !of_object.is_empty()) {
        let notes = comments.entry(id.clone()).or_default();
        notes.extend(of_object.iter().map(|it| it.sentence()));
    }
    comments
}

impl FindingGroup<'_> {
    fn sentence(&self) -> String {
        let keys = waits::listed(&self.keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>());
        let (before, after) = self.frame;
        let bindings = match &waits::listed(&self.bindings())[..] {
            "" => String::new(),
            bindings => format!("{bindings}: "),
        };
        format!("{}: {bindings}{before}{keys}{after}", self.rule)
    }

    /// Returns the routing keys of the bindings that the finding is about, unless the text contains them.
    fn bindings(&self) -> Vec<String> {
        let keys = self.findings.iter().flat_map(|finding| &finding.objects).filter_map(|id| match id {
            ObjectId::Binding(binding) => Some(format!("`{}`", binding.routing_key)),
            ObjectId::Vhost
            | ObjectId::Exchange(_)
            | ObjectId::Policy(_)
            | ObjectId::Queue(_)
            | ObjectId::Record(_) => None,
        });
        let is_in_text = |key: &String| self.findings.iter().any(|finding| finding.text.contains(key));
        keys.filter(|key| key.len() > 2 && !is_in_text(key)).collect()
    }
}
