//! Renders the resolutions of a conflict for a pull-request comment: collapsed, one list item each, with their YAML in
//! a fence.

use super::plan_markdown::inline;
use crate::plan::{Applicability, PlannedChange, Resolution};
use std::fmt::Write;

/// The maximum number of conflicts whose sections are expanded.
const MOST_OPEN: usize = 3;

/// Writes a section for each conflict, up to a total length of `room` bytes.
pub(super) fn sections<'a>(out: &mut String, changes: impl Iterator<Item = &'a PlannedChange>, room: usize) {
    let blocked: Vec<&PlannedChange> = changes
        .filter(|change| change.conflict.as_ref().is_some_and(|conflict| !conflict.resolutions.is_empty()))
        .collect();
    let open = if blocked.len() <= MOST_OPEN { " open" } else { "" };
    for (index, change) in blocked.iter().enumerate() {
        let section = section(change, open);
        if out.len() + section.len() > room {
            let _ = writeln!(out, "\n… and the resolutions of {} more", blocked.len() - index);
            break;
        }
        out.push_str(&section);
    }
}

fn section(change: &PlannedChange, open: &str) -> String {
    // An address is percent-encoded, so it cannot contain markup.
    let mut text = format!("\n<details{open}><summary>Resolutions: <code>{}</code></summary>\n\n", change.address);
    let Some(conflict) = &change.conflict else { return text };
    for resolution in &conflict.resolutions {
        item(&mut text, resolution);
    }
    if let Some(sentence) = &conflict.error_after_recreate {
        let words = "After a recreate, an application that still declares the old settings gets";
        let _ = writeln!(text, "\n{words} “{}”.", inline(sentence));
    }
    if let Some(sentence) = &conflict.typeless_declare {
        let _ = writeln!(text, "\n{}.", inline(&capitalized(sentence)));
    }
    text.push_str("\n</details>\n");
    text
}

fn item(text: &mut String, resolution: &Resolution) {
    let _ = writeln!(text, "- **{}**: {}", resolution.kind.as_str(), inline(&resolution.text));
    for field in resolution.fields.iter().filter(|_| resolution.applicability != Applicability::No) {
        let not = if field.applicability { "" } else { "not " };
        let _ = writeln!(text, "  - {not}{}: {}", inline(&field.field), inline(&field.why));
    }
    for warning in &resolution.warnings {
        let _ = writeln!(text, "  - info: {}", inline(warning));
    }
    if let Some(yaml) = &resolution.yaml {
        let fence = fence(yaml);
        let _ = writeln!(text, "\n  {fence}yaml");
        yaml.lines().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
        let _ = writeln!(text, "  {fence}\n");
    }
    if let Some(applications) = &resolution.applications {
        let _ = writeln!(text, "  {}.\n", inline(&capitalized(applications)));
    }
}

/// Returns a fence that is longer than any run of backticks in the text.
pub(super) fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
