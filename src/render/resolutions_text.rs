//! Renders the resolutions of a conflict as text: in full, with their YAML, if few objects are in conflict; otherwise
//! on one line each.

use super::style::{BOLD, Painted, clean, wrap};
use crate::plan::{Applicability, Conflict, Resolution, ResolutionKind};
use std::fmt::Write;

/// With more conflicts than this, what to write is left to `-v` and the other formats.
const MOST_IN_FULL: usize = 3;

/// Whether the YAML of every way out is shown.
pub(super) fn in_full(conflicts: usize, is_verbose: bool) -> bool {
    is_verbose || conflicts <= MOST_IN_FULL
}

/// Where what stands behind the labels begins.
const INDENT: usize = 17;

/// Lines with a label before the first of each kind.
struct Lines<'a> {
    text: &'a mut String,
    width: usize,
}

impl Lines<'_> {
    /// One line, however long.
    fn line(&mut self, label: &str, line: &str) {
        let _ = writeln!(self.text, "        {} {line}", Painted(BOLD, format!("{label:<8}")));
    }

    /// A sentence in lines that fit; what follows the first is indented.
    fn sentence(&mut self, label: &str, indent: usize, sentence: &str) {
        // A flag stays with what belongs to it, so that it can be copied.
        let flag = |text: String| text.replace('\u{a0}', " ");
        let glued = clean(sentence).replace("--recreate ", "--recreate\u{a0}");
        let words: Vec<String> = glued.split(' ').map(|word| flag(word.to_owned())).collect();
        let lines = wrap(&words, " ", self.width.saturating_sub(INDENT + indent + 2));
        for (index, line) in lines.iter().enumerate() {
            let indent = " ".repeat(if index == 0 { indent } else { indent + 2 });
            self.line(if index == 0 { label } else { "" }, &format!("{indent}{line}"));
        }
    }
}

/// All ways out, and what applications see.
pub(super) fn resolutions(text: &mut String, conflict: &Conflict, width: usize, is_full: bool) {
    let mut lines = Lines { text, width };
    let mut last = None;
    for way in &conflict.resolutions {
        let label = if last == Some(way.kind) { "" } else { way.kind.as_str() };
        last = Some(way.kind);
        match &way.yaml {
            Some(yaml) if is_full => in_detail(&mut lines, label, way, yaml),
            Some(_) | None => lines.sentence(label, 0, behind_label(way)),
        }
    }
    if is_full {
        applications(text, conflict, width);
    }
}

/// What an application sees that goes on declaring what was live.
pub(super) fn applications(text: &mut String, conflict: &Conflict, width: usize) {
    let mut lines = Lines { text, width };
    if let Some(sentence) = &conflict.error_after_recreate {
        lines.sentence("after", 0, "a recreate, an application that declares the old settings gets");
        lines.sentence("", 0, sentence);
    }
    if let Some(sentence) = &conflict.typeless_declare {
        lines.sentence("default", 0, sentence);
    }
}

fn in_detail(lines: &mut Lines<'_>, label: &str, way: &Resolution, yaml: &str) {
    match way.kind {
        ResolutionKind::Policy => by_policy(lines, label, way),
        ResolutionKind::Keep | ResolutionKind::Rename | ResolutionKind::Recreate => {
            lines.line(label, "the current settings:");
            for field in &way.fields {
                lines.sentence("", 0, &format!("not {}: {}", field.field, field.why));
            }
        }
    }
    for line in yaml.lines() {
        lines.line("", &format!("  {}", clean(line)));
    }
    for warning in &way.warnings {
        lines.sentence("", 0, &format!("info: {warning}"));
    }
    if let Some(applications) = &way.applications {
        lines.sentence("", 0, applications);
    }
}

/// Why, and why not; fields with the same reason together.
fn by_policy(lines: &mut Lines<'_>, label: &str, way: &Resolution) {
    let mut groups: Vec<(bool, &str, Vec<&str>)> = Vec::new();
    for field in &way.fields {
        match groups.iter_mut().find(|(_, why, _)| *why == field.why) {
            Some((_, _, names)) => names.push(&field.field),
            None => groups.push((field.applicability, &field.why, vec![&field.field])),
        }
    }
    groups.sort_by_key(|(applicability, _, _)| !applicability);
    if let [(_, why, _)] = groups.as_slice() {
        lines.sentence(label, 0, &format!("in place: {why}"));
        return;
    }
    let helped = way.fields.iter().filter(|field| field.applicability).count();
    let all = way.fields.len();
    let how_many =
        if way.applicability == Applicability::Yes { String::new() } else { format!(" for {helped} of {all}") };
    lines.line(label, &format!("in place{how_many}:"));
    for (applicability, why, names) in groups {
        let not = if applicability { "" } else { "not " };
        lines.sentence("", 0, &format!("{not}{}: {why}", names.join(", ")));
    }
}

/// A way's line without the words that its label says.
fn behind_label(way: &Resolution) -> &str {
    let words: &[&str] = match way.kind {
        ResolutionKind::Keep => &["keep "],
        ResolutionKind::Policy => &["by a policy, ", "a policy "],
        ResolutionKind::Rename => &[],
        ResolutionKind::Recreate => &["recreate it, ", "recreate it "],
    };
    words.iter().find_map(|words| way.text.strip_prefix(words)).unwrap_or(&way.text)
}
