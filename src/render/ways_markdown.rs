//! The ways out of a conflict in a pull-request comment: folded, a list item each, with what to write in a fence.

use super::plan_markdown::inline;
use crate::plan::{Helps, PlannedChange, WayOut};
use std::fmt::Write;

/// With more conflicts than this, each is folded away.
const MOST_OPEN: usize = 3;

/// A section for each conflict, as long as there is room: up to so many bytes in all.
pub(super) fn sections<'a>(out: &mut String, changes: impl Iterator<Item = &'a PlannedChange>, room: usize) {
    let blocked: Vec<&PlannedChange> = changes
        .filter(|change| change.conflict.as_ref().is_some_and(|conflict| !conflict.ways_out.is_empty()))
        .collect();
    let open = if blocked.len() <= MOST_OPEN { " open" } else { "" };
    for (index, change) in blocked.iter().enumerate() {
        let section = section(change, open);
        if out.len() + section.len() > room {
            let _ = writeln!(out, "\n… and the ways out of {} more", blocked.len() - index);
            break;
        }
        out.push_str(&section);
    }
}

fn section(change: &PlannedChange, open: &str) -> String {
    // An address is percent-encoded: nothing in it can be markup.
    let mut text = format!("\n<details{open}><summary>Ways out: <code>{}</code></summary>\n\n", change.address);
    let Some(conflict) = &change.conflict else { return text };
    for way in &conflict.ways_out {
        item(&mut text, way);
    }
    if let Some(sentence) = &conflict.afterwards {
        let words = "After a recreate, an application that still declares what was live gets";
        let _ = writeln!(text, "\n{words} “{}”.", inline(sentence));
    }
    if let Some(sentence) = &conflict.without_type {
        let _ = writeln!(text, "\n{}.", inline(&capital(sentence)));
    }
    text.push_str("\n</details>\n");
    text
}

fn item(text: &mut String, way: &WayOut) {
    let _ = writeln!(text, "- **{}**: {}", way.kind.as_str(), inline(&way.text));
    for field in way.fields.iter().filter(|_| way.helps != Helps::No) {
        let not = if field.helps { "" } else { "not " };
        let _ = writeln!(text, "  - {not}{}: {}", inline(&field.field), inline(&field.why));
    }
    for warning in &way.warnings {
        let _ = writeln!(text, "  - mind: {}", inline(warning));
    }
    if let Some(yaml) = &way.yaml {
        let fence = fence(yaml);
        let _ = writeln!(text, "\n  {fence}yaml");
        yaml.lines().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
        let _ = writeln!(text, "  {fence}\n");
    }
    if let Some(applications) = &way.applications {
        let _ = writeln!(text, "  {}.\n", inline(&capital(applications)));
    }
}

/// A fence that is longer than any run of backticks in the text.
pub(super) fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
