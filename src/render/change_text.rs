//! Renders one object of a plan, and the changed bindings to that object, as text.

use super::change_details::{activity, details, field_values, integer_remark, spec_line, symbol};
use super::family::RetryChanges;
use super::resolutions_text;
use super::style::{DIM, GREEN, Painted, RED, YELLOW, clean, columns, heading, wrap};
use crate::model::binding::KeyAndArguments;
use crate::model::count::{count, number};
use crate::model::{Binding, Object, ObjectId, OnConflict};
use crate::plan::{ChangeKind, FieldVerdict, PlannedChange, Verdict};
use anstyle::Style;
use std::fmt::Write;

/// An object, and the changed bindings to it.
pub(super) struct Entry<'a> {
    pub(super) id: ObjectId,
    /// `None` if only the object's retries or the bindings to it change.
    pub(super) change: Option<&'a PlannedChange>,
    pub(super) bindings: Vec<&'a PlannedChange>,
    /// The retries of the queue, with their generated objects.
    pub(super) family: Option<&'a RetryChanges<'a>>,
}

/// The column at which the details start, after the symbol, the kind and the name.
const DETAILS: usize = 31;

/// The layout of entries.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The output width in columns.
    pub(super) width: usize,
    /// True to include the YAML of resolutions.
    pub(super) is_full: bool,
    /// True to list each object that is generated for retries.
    pub(super) lists_all: bool,
}

/// The column at which the text after a label starts. Continuation lines start two columns farther right.
const INDENT: usize = 17;

/// Writes an object, its differences, its changed bindings and its retries.
pub(super) fn entry(text: &mut String, entry: &Entry<'_>, vhost: &str, shape: Shape) {
    let Shape { width, is_full, lists_all } = shape;
    let (symbol, style) = entry.change.map_or(("   ", DIM), |change| symbol(change.kind));
    let mut details = entry.change.map_or_else(|| vec!["unchanged".to_owned()], details);
    let is_new = matches!(entry.change.map(|change| change.kind), Some(ChangeKind::Create) | None);
    // The retry path goes between the type and the arguments.
    let path = entry.family.filter(|_| is_new).and_then(RetryChanges::path);
    details.splice(details.len().min(1)..details.len().min(1), path);
    let object = match &entry.id {
        ObjectId::Vhost => format!("vhost {}", clean(vhost)),
        ObjectId::Exchange(_)
        | ObjectId::Policy(_)
        | ObjectId::Queue(_)
        | ObjectId::Binding(_)
        | ObjectId::Record(_) => clean(&entry.id.to_string()),
    };
    head(text, (symbol, style), &object, &details, entry.change, width);
    if let Some(change) = entry.change {
        for field in &change.fields {
            field_line(text, field);
        }
        consequences(text, change, width, is_full);
    }
    for binding in &entry.bindings {
        binding_line(text, binding);
    }
    if let Some(family) = entry.family {
        family.lines(text, width, lists_all);
    }
}

/// Writes the symbol, the object, its details in a column, and the spec line at the right margin.
fn head(
    text: &mut String,
    (symbol, style): (&str, Style),
    object: &str,
    details: &[String],
    change: Option<&PlannedChange>,
    width: usize,
) {
    let source = change.and_then(spec_line);
    let left = columns(symbol) + 1 + columns(object);
    let indent = DETAILS.max(left + 2);
    // Breaks a long detail at its spaces.
    let lines = heading(details, width.saturating_sub(DETAILS).max(28));
    let _ = write!(text, "{} {object}", Painted(style, symbol));
    let mut end = left;
    // If the name leaves no room for the details, they start on the next line.
    let right = lines.first().filter(|first| indent + columns(first) <= width);
    if let Some(first) = right {
        let _ = write!(text, "{}{first}", " ".repeat(indent - left));
        end = indent + columns(first);
    }
    // If the details leave no room for the spec line, it moves to a later line.
    let mut below = None;
    if let Some(source) = source {
        match width.checked_sub(end + columns(&source)).filter(|room| *room >= 2) {
            Some(room) => {
                let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, source));
            }
            None => below = Some(source),
        }
    }
    text.push('\n');
    for (index, line) in lines.iter().enumerate().skip(usize::from(right.is_some())) {
        let _ = write!(text, "{}{line}", " ".repeat(DETAILS));
        let is_last = index + 1 == lines.len();
        let end = DETAILS + columns(line);
        let room = |source: &String| width.checked_sub(end + columns(source)).filter(|room| *room >= 2);
        if let Some(room) = below.as_ref().filter(|_| is_last).and_then(room) {
            let _ = write!(text, "{}{}", " ".repeat(room), Painted(DIM, below.take().unwrap_or_default()));
        }
        text.push('\n');
    }
    if let Some(source) = below {
        let _ = writeln!(text, "{}{}", " ".repeat(width.saturating_sub(columns(&source))), Painted(DIM, source));
    }
}

fn field_line(text: &mut String, field: &FieldVerdict) {
    let (name, before, after) = field_values(field);
    let remark = match field.verdict {
        Verdict::Drift => "   (the broker ignores it on redeclaration)",
        Verdict::Unknown => "   (not used by the broker; not changed)",
        Verdict::Invalid => "   (the broker refuses this value)",
        Verdict::Equal | Verdict::InPlace | Verdict::Conflict => "",
    };
    let _ = writeln!(text, "      {} {name:<22} {before} → {after}{remark}", Painted(YELLOW, "~"));
}

/// Writes the broker's error, the current counts, the bindings that are kept, and either the stages of the recreation
/// or the resolutions.
fn consequences(text: &mut String, change: &PlannedChange, width: usize, is_full: bool) {
    // Users search for an error by its text, so lines break only at spaces.
    let mut line = |label: &str, value: String| {
        let words: Vec<String> = value.split(' ').map(str::to_owned).collect();
        let lines = wrap(&words, " ", width.saturating_sub(INDENT + 2));
        let value = lines.join(&format!("\n{}", " ".repeat(INDENT + 2)));
        let _ = writeln!(text, "        {label:<8} {value}");
    };
    let Some(conflict) = &change.conflict else { return };
    if let Some(broker_error) = &conflict.broker_error {
        let kind = if matches!(change.before, Some(Object::Exchange(..))) { "exchange" } else { "queue" };
        let words = format!("applications that declare the {kind} as specified receive");
        line("broker", words + integer_remark(broker_error));
        line("", clean(broker_error));
    }
    if let Some(live) = &change.live {
        line("live", activity(live));
    }
    if let Some(kept) = &change.kept {
        let all = (kept.declared + kept.unmanaged.len()) as u64;
        let others = match kept.unmanaged.as_slice() {
            [] => String::new(),
            others => format!(
                ": {} declared, {} unmanaged ({}), all kept",
                kept.declared,
                others.len(),
                others.iter().take(3).map(source_and_key).collect::<Vec<_>>().join(", ")
            ),
        };
        line("bindings", format!("{all}{others}"));
    }
    if change.kind == ChangeKind::Recreate {
        line(conflict.on_conflict.as_str(), recreate_stages(change, conflict.on_conflict));
        resolutions_text::applications(text, conflict, width);
    }
    if !conflict.resolutions.is_empty() {
        resolutions_text::resolutions(text, conflict, width, is_full);
    }
}

fn recreate_stages(change: &PlannedChange, how: OnConflict) -> String {
    let is_queue = matches!(change.before, Some(Object::Queue(..)));
    if how == OnConflict::Migrate && is_queue {
        let drain = match change.live.as_ref().and_then(|live| live.messages) {
            Some(messages) => format!("drain {}", number(messages)),
            None => "drain".to_owned(),
        };
        return format!("hold new messages → {drain} → swap → return all, oldest first");
    }
    let bindings = change.kept.as_ref().map_or(0, |kept| kept.declared + kept.unmanaged.len());
    let delete = match change.live.as_ref().and_then(|live| live.messages) {
        Some(0) | None => "delete".to_owned(),
        Some(messages) => format!("delete with {}", count(messages, "message")),
    };
    format!("{delete} → declare → bind {bindings}")
}

/// Formats a binding without its destination, such as `orders ─ order.# →`.
fn source_and_key(binding: &Binding) -> String {
    clean(&format!("{} ─ {} →", binding.source, KeyAndArguments(binding)))
}

fn binding_line(text: &mut String, change: &PlannedChange) {
    let object = change.after.as_ref().or(change.before.as_ref());
    let Some(Object::Binding(binding)) = object else { return };
    let (symbol, style, verb) = match change.kind {
        ChangeKind::Delete => ("-", RED, "unbind"),
        ChangeKind::Create | ChangeKind::Change | ChangeKind::Recreate | ChangeKind::Conflict => ("+", GREEN, "bind"),
    };
    let _ = writeln!(text, "      {} {verb} {}", Painted(style, symbol), source_and_key(binding));
}
