//! Renders the resolutions of a conflict as text. With `-v`, or if a plan has few conflicts, the text of a resolution
//! includes its YAML. Otherwise, the text is one sentence.

use super::change_details::integer_remark;
use super::style::{BOLD, Painted, clean, wrap};
use crate::plan::{Applicability, Conflict, Resolution, ResolutionKind};
use std::fmt::Write;

/// The maximum number of conflicts for which the plan text includes YAML without `-v`.
const MAX_IN_FULL: usize = 3;

/// Returns true if the plan text includes the YAML of every resolution.
pub(super) fn includes_yaml(conflicts: usize, is_verbose: bool) -> bool {
    is_verbose || conflicts <= MAX_IN_FULL
}

/// The column at which the text after a label starts.
const INDENT: usize = 17;

/// A writer for labeled lines.
struct Lines<'a> {
    text: &'a mut String,
    width: usize,
}

impl Lines<'_> {
    /// Writes one line of any length.
    fn line(&mut self, label: &str, line: &str) {
        let _ = writeln!(self.text, "        {} {line}", Painted(BOLD, format!("{label:<8}")));
    }

    /// Writes a sentence on one or more lines. Indents the lines after the first line.
    fn sentence(&mut self, label: &str, indent: usize, sentence: &str) {
        // Keeps `--recreate` on the same line as its value, so that users can copy the flag.
        let flag = |text: String| text.replace('\u{a0}', " ");
        let unbroken = clean(sentence).replace("--recreate ", "--recreate\u{a0}");
        let words: Vec<String> = unbroken.split(' ').map(|word| flag(word.to_owned())).collect();
        let lines = wrap(&words, " ", self.width.saturating_sub(INDENT + indent + 2));
        for (index, line) in lines.iter().enumerate() {
            let indent = " ".repeat(if index == 0 { indent } else { indent + 2 });
            self.line(if index == 0 { label } else { "" }, &format!("{indent}{line}"));
        }
    }
}

/// Writes all resolutions. If `is_full` is true, includes their YAML, and also writes the effects on applications.
pub(super) fn resolutions(text: &mut String, conflict: &Conflict, width: usize, is_full: bool) {
    let mut lines = Lines { text, width };
    let mut last = None;
    for resolution in &conflict.resolutions {
        let label = if last == Some(resolution.kind) { "" } else { resolution.kind.as_str() };
        last = Some(resolution.kind);
        match &resolution.yaml {
            Some(yaml) if is_full => write_details(&mut lines, label, resolution, yaml),
            Some(_) | None => lines.sentence(label, 0, without_label(resolution)),
        }
    }
    if is_full {
        applications(text, conflict, width);
    }
}

/// Writes the error that applications receive if they still declare the old settings after the recreation, and the
/// result of a declaration without a queue type.
pub(super) fn applications(text: &mut String, conflict: &Conflict, width: usize) {
    let mut lines = Lines { text, width };
    if let Some(sentence) = &conflict.error_after_recreate {
        let words = "recreation, applications that declare the old settings receive";
        lines.sentence("after", 0, &format!("{words}{}", integer_remark(sentence)));
        lines.sentence("", 0, sentence);
    }
    if let Some(sentence) = &conflict.typeless_declare {
        lines.sentence("default", 0, sentence);
    }
}

fn write_details(lines: &mut Lines<'_>, label: &str, resolution: &Resolution, yaml: &str) {
    match resolution.kind {
        ResolutionKind::Policy => write_policy(lines, label, resolution),
        ResolutionKind::Keep | ResolutionKind::Rename | ResolutionKind::Recreate => {
            lines.line(label, "the current settings:");
            for field in &resolution.fields {
                lines.sentence("", 0, &format!("not {}: {}", field.field, field.why));
            }
        }
    }
    for line in yaml.lines() {
        lines.line("", &format!("  {}", clean(line)));
    }
    for warning in &resolution.warnings {
        lines.sentence("", 0, &format!("info: {warning}"));
    }
    if let Some(applications) = &resolution.applications {
        lines.sentence("", 0, applications);
    }
}

/// Writes the policy resolution, with the reason for each field. Fields with the same reason share a line.
fn write_policy(lines: &mut Lines<'_>, label: &str, resolution: &Resolution) {
    let mut groups: Vec<(bool, &str, Vec<&str>)> = Vec::new();
    for field in &resolution.fields {
        match groups.iter_mut().find(|(_, why, _)| *why == field.why) {
            Some((_, _, names)) => names.push(&field.field),
            None => groups.push((field.applies, &field.why, vec![&field.field])),
        }
    }
    groups.sort_by_key(|(applies, _, _)| !applies);
    if let [(_, why, _)] = groups.as_slice() {
        lines.sentence(label, 0, &format!("in place: {why}"));
        return;
    }
    let resolved = resolution.fields.iter().filter(|field| field.applies).count();
    let all = resolution.fields.len();
    let how_many = if resolution.applicability == Applicability::Yes {
        String::new()
    } else {
        format!(" for {resolved} of {all}")
    };
    lines.line(label, &format!("in place{how_many}:"));
    for (applies, why, names) in groups {
        let not = if applies { "" } else { "not " };
        lines.sentence("", 0, &format!("{not}{}: {why}", names.join(", ")));
    }
}

/// Returns the text of a resolution without the leading words that repeat its label.
fn without_label(resolution: &Resolution) -> &str {
    let words: &[&str] = match resolution.kind {
        ResolutionKind::Keep => &["keep "],
        ResolutionKind::Policy => &["with a policy, ", "a policy "],
        ResolutionKind::Rename => &[],
        ResolutionKind::Recreate => &["recreate it, ", "recreate it "],
    };
    words.iter().find_map(|words| resolution.text.strip_prefix(words)).unwrap_or(&resolution.text)
}
