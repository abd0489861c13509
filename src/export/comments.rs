//! Generates comments on exported objects: notes about recognized patterns, and lint findings.

#[cfg(test)]
mod tests;

use super::CurrentVhost;
use super::check::ParsedExport;
use super::document::Comments;
use super::recognize::patterns::Recognized;
use super::recognize::waits;
use crate::lint::{Finding, Levels, Subject, lint};
use crate::model::yaml::Text;
use crate::model::{ObjectId, Topology};
use crate::spec::Severity;
use std::collections::BTreeMap;

/// The rules whose info findings become comments, because these findings are useful to a new owner of the topology.
/// Other info findings are only advice.
const INFO_RULES: [&str; 3] = [UNBOUND, LOST, "unbound-exchange"];
const UNBOUND: &str = "unbound-queue";
const LOST: &str = "dead-letters-reach-nothing";

/// Findings that come from one rule, concern one object, and have texts that differ in at most one key.
struct FindingGroup<'a> {
    rule: &'static str,
    /// The text before and after the key that the findings concern. Without such a key, the first string contains the
    /// whole text.
    frame: (&'a str, &'a str),
    keys: Vec<&'a str>,
    findings: Vec<&'a Finding>,
}

/// Returns the comments by object. The lint rules also consider objects that are not exported, so that the comments
/// describe the broker.
pub(super) fn generate(
    recognized: &Recognized,
    read: &ParsedExport,
    text: &Text,
    live: &CurrentVhost<'_>,
    kept: &Topology,
) -> Comments {
    let mut comments: Comments = recognized.notes.clone();
    let subject = Subject::new(&read.spec, &read.expansion, live.profile)
        .with_live_topology(live.topology, live.includes_transient_queues);
    let found = lint(&subject, &Levels::new());
    let found = found.iter().filter(|it| it.severity != Severity::Info || INFO_RULES.contains(&it.rule));
    let mut groups: BTreeMap<&ObjectId, Vec<FindingGroup<'_>>> = BTreeMap::new();
    for finding in found {
        // The last object is the outermost object, for example the queue whose `bindings` contain the binding.
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
        let is_lost = |it: &FindingGroup<'_>| it.rule == LOST && live.includes_transient_queues;
        if note.mentions_destination && of_object.as_ref().is_some_and(|of_object| of_object.iter().any(is_lost)) {
            continue;
        }
        if let Some(of_object) = of_object.filter(|_| note.is_for_waiting) {
            // A waiting queue without bindings is probably intentional.
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
    /// Formats the group as one comment.
    fn sentence(&self) -> String {
        let keys = waits::join_names(&self.keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>());
        let (before, after) = self.frame;
        let bindings = match &waits::join_names(&self.bindings())[..] {
            "" => String::new(),
            bindings => format!("{bindings}: "),
        };
        format!("{}: {bindings}{before}{keys}{after}", self.rule)
    }

    /// Returns the routing keys of the bindings that the findings concern. Omits empty keys and keys that the text
    /// already contains.
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
