//! Renders a plan as GitHub workflow annotations on lines in the spec.

use super::change_details::integer_remark;
use super::routing_text;
use super::style::clean;
use crate::model::Address;
use crate::plan::{Applicability, Blockers, ChangeKind, Plan, Source};
use std::fmt::Write;

/// Renders annotations, one per line. Blockers are errors. Interrupted migrations are warnings, and so are hazards that
/// do not block the plan. Changes and routing changes are notices. The last annotation is the summary.
pub fn plan(plan: &Plan, blockers: &Blockers, summary: &str) -> String {
    let mut text = String::new();
    for part in plan.parts() {
        let source = |address: &Address| {
            let change = part.changes.iter().find(|change| change.address == *address);
            change.and_then(|change| change.source.clone())
        };
        for change in &part.changes {
            let Some(source) = &change.source else { continue };
            let verb = match change.kind {
                ChangeKind::Create => "will be created",
                ChangeKind::Change => "will be changed in place",
                ChangeKind::Recreate => "will be recreated",
                ChangeKind::Delete => "will be deleted",
                ChangeKind::Conflict => continue,
            };
            annotate(&mut text, "notice", Some((source, None)), "topo plan", &format!("{} {verb}", change.address));
        }
        for (source, message) in routing_text::annotations(part) {
            annotate(&mut text, "notice", Some((source, None)), "routing change", &message);
        }
        for note in &part.interrupted {
            annotate(
                &mut text,
                "warning",
                source(&note.address).as_ref().map(|it| (it, None)),
                note.label(),
                &note.text,
            );
        }
        for hazard in &part.hazards {
            let open = blockers.hazards.contains(hazard);
            let message = if open { format!("{} ({})", hazard.text, hazard.flag()) } else { hazard.text.clone() };
            let level = if open { "error" } else { "warning" };
            annotate(
                &mut text,
                level,
                source(&hazard.address).as_ref().map(|it| (it, None)),
                hazard.kind.as_str(),
                &message,
            );
        }
        for block in &part.blocks {
            let change = part.changes.iter().find(|change| change.address == block.address);
            let conflict = change.and_then(|change| change.conflict.as_ref());
            let mut lines = vec![format!("{}: {}", block.address, block.text)];
            let broker_error = conflict.and_then(|conflict| conflict.broker_error.as_deref());
            lines.extend(broker_error.map(|error| format!("{error}{}", integer_remark(error))));
            // The applicable resolutions, one per line. Only the other formats contain the YAML.
            let resolutions = conflict.map_or(&[][..], |conflict| &conflict.resolutions);
            lines.extend(
                resolutions
                    .iter()
                    .filter(|it| it.applicability != Applicability::No)
                    .map(|it| format!("- {}", it.text)),
            );
            if resolutions.is_empty() {
                lines.extend(block.remedy.as_ref().map(|remedy| format!("Resolution: {remedy}")));
            }
            annotate(
                &mut text,
                "error",
                source(&block.address).as_ref().map(|it| (it, None)),
                if conflict.is_some() { "conflict" } else { "blocker" },
                &lines.join("\n"),
            );
        }
    }
    let level = if blockers.is_empty() { "notice" } else { "error" };
    annotate(&mut text, level, None, "topo plan", summary);
    text
}

/// The line and the column of the first character after a location.
pub type End = (usize, usize);

/// Writes a GitHub workflow command. Escapes the data and the properties, which the runner unescapes.
pub fn annotate(text: &mut String, level: &str, at: Option<(&Source, Option<End>)>, title: &str, message: &str) {
    let data = |value: &str| value.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |value: &str| data(value).replace(':', "%3A").replace(',', "%2C");
    let location = at.map_or_else(String::new, |(source, end)| {
        let end = match end {
            // Columns are useful only if the location starts and ends on the same line.
            Some((line, column)) if line == source.line => format!("endLine={line},endColumn={column},"),
            Some((line, _)) => format!("endLine={line},"),
            None => String::new(),
        };
        format!("file={},line={},col={},{end}", property(&clean(&source.file)), source.line, source.column)
    });
    let message: Vec<String> = message.lines().map(clean).collect();
    let _ = writeln!(text, "::{level} {location}title={}::{}", property(title), data(&message.join("\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Places;

    #[test]
    fn data_and_properties_are_escaped() {
        let mut text = String::new();
        let source = Source { file: "a,b.yaml".into(), line: 3, column: 7, part_of: None, places: Places::new() };
        annotate(&mut text, "error", Some((&source, Some((3, 9)))), "a: b", "100%\nlost");
        assert_eq!(text, "::error file=a%2Cb.yaml,line=3,col=7,endLine=3,endColumn=9,title=a%3A b::100%25%0Alost\n");
    }
}
