//! What is odd about an object, in a line above it: what was seen while it was recognised, and what the lint rules find.

use super::Live;
use super::check::Read;
use super::document::Comments;
use super::recognise::Recognised;
use super::yaml::Text;
use crate::lint::{Levels, Subject, lint};
use crate::spec::Severity;

/// By the object above which they stand.
pub(super) fn of(recognised: &Recognised, read: &Read, text: &Text, live: &Live<'_>) -> Comments {
    let mut comments: Comments = recognised.notes.clone();
    let subject = Subject::new(&read.spec, &read.expansion, live.dialect);
    for finding in lint(&subject, &Levels::new()) {
        if finding.severity == Severity::Info && !ODD.contains(&finding.rule) {
            continue;
        }
        // The outermost: the object whose key it is in, not the binding.
        let Some(id) = text.at(finding.at.start).last() else { continue };
        comments.entry(id.clone()).or_default().push(format!("{}: {}", finding.rule, finding.text));
    }
    comments
}

/// Notes of which a person who takes over a topology wants to know; the others are advice.
const ODD: [&str; 2] = ["unbound-queue", "unbound-exchange"];
