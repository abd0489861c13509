//! Renders a plan with one line for each object: its symbol, its name, and the settings that differ.

use super::change_details::{activity, field_values, symbol};
use super::family::FoldedRetries;
use super::plan_summary::conclusion;
use super::plan_text::{View, entries, pruning, remark};
use super::style::{BOLD, DIM, Painted, RED, YELLOW, clean, columns};
use crate::model::{Address, Object, ObjectId};
use crate::plan::{ChangeKind, Plan, PlannedChange, Verdict, VhostPlan};
use std::fmt::Write;

/// Renders one line for each interrupted migration, change, hazard and blocker, then the summary. The text contains
/// colors.
pub fn plan(plan: &Plan, view: &View<'_>) -> String {
    let mut text = String::new();
    for part in plan.parts() {
        let before = text.len();
        lines(&mut text, part, view);
        if plan.parts().count() > 1 && text.len() > before {
            let heading = format!("{}\n", Painted(BOLD, part.vhost.in_words()));
            text.insert_str(before, &heading);
        }
    }
    for hazard in plan.hazards() {
        let style = if view.blockers.hazards.contains(hazard) { RED } else { YELLOW };
        let remark = remark(hazard, view.blockers);
        let _ = writeln!(text, "{} {}  {}{remark}", Painted(style, "  !"), hazard.kind, hazard.address);
    }
    // A blocker for a conflict needs no line, because the conflict already has one.
    let is_listed = |address: &Address| {
        let mut changes = plan.parts().flat_map(|part| &part.changes);
        changes.any(|change| change.kind == ChangeKind::Conflict && change.address == *address)
    };
    for block in view.blockers.blocks.iter().filter(|block| !is_listed(&block.address)) {
        let _ = writeln!(text, "{} blocked  {}", Painted(RED, "  !"), block.address);
    }
    conclusion(&mut text, plan, view.blockers, view.width);
    text
}

fn lines(text: &mut String, part: &VhostPlan, view: &View<'_>) {
    for migration in &part.interrupted {
        let holder = migration.applying.as_deref().map(|holder| format!("  lock: {}", clean(holder)));
        let (label, holder) = (migration.label(), holder.unwrap_or_default());
        let _ = writeln!(text, "{} {label}  {}{holder}", Painted(YELLOW, "  !"), migration.address);
    }
    let folded = FoldedRetries::of(part, view.all);
    for entry in entries(part, &folded) {
        if let Some(change) = entry.change {
            let object = match &entry.id {
                ObjectId::Vhost => format!("vhost {}", clean(part.vhost.as_str())),
                id @ (ObjectId::Exchange(_)
                | ObjectId::Policy(_)
                | ObjectId::Queue(_)
                | ObjectId::Binding(_)
                | ObjectId::Record(_)) => clean(&id.to_string()),
            };
            line(text, change, &object, view.width);
        }
        for change in &entry.bindings {
            binding_line(text, change);
        }
        for members in entry.family.into_iter().flat_map(|family| family.parts()) {
            let (style, sign) = (members.style, members.sign);
            if view.all {
                for (id, change) in members.members {
                    match id {
                        ObjectId::Binding(_) => binding_line(text, change),
                        ObjectId::Vhost
                        | ObjectId::Exchange(_)
                        | ObjectId::Policy(_)
                        | ObjectId::Queue(_)
                        | ObjectId::Record(_) => {
                            let _ =
                                writeln!(text, "{} {}", Painted(style, format!("  {sign}")), clean(&id.to_string()));
                        }
                    }
                }
            } else {
                let of = clean(&format!("retries of {}", entry.id));
                let _ = writeln!(text, "{} {of}  {}", Painted(style, format!("  {sign}")), members.what);
            }
        }
    }
    if !part.unmanaged.is_empty() {
        let kept = format!("unmanaged objects that match `owns`: {} (kept; {})", part.unmanaged.len(), pruning(part));
        let _ = writeln!(text, "    {}", Painted(DIM, kept));
    }
}

fn line(text: &mut String, change: &PlannedChange, object: &str, width: usize) {
    let (symbol, style) = symbol(change.kind);
    let left = columns(symbol) + 1 + columns(object);
    let details = match change.kind {
        ChangeKind::Create => String::new(),
        ChangeKind::Delete => change.live.as_ref().map(activity).unwrap_or_default(),
        ChangeKind::Change | ChangeKind::Recreate | ChangeKind::Conflict => {
            let how = match (change.kind, &change.conflict) {
                (ChangeKind::Recreate, Some(conflict)) => format!(" ({})", conflict.on_conflict.as_str()),
                (_, _) => String::new(),
            };
            settings(change, width.saturating_sub(left + 2 + columns(&how))) + &how
        }
    };
    let gap = if details.is_empty() { "" } else { "  " };
    let _ = writeln!(text, "{} {object}{gap}{details}", Painted(style, symbol));
}

/// Formats the settings as `type: classic → quorum, max-length: 10 → 20`. Omits settings that do not fit in `room`
/// columns, but lists at least one setting.
fn settings(change: &PlannedChange, room: usize) -> String {
    let fields: Vec<String> = change
        .fields
        .iter()
        .filter(|field| field.verdict != Verdict::Unknown)
        .map(|field| {
            let (name, before, after) = field_values(field);
            let name = if name == "x-queue-type" { "type" } else { &name };
            format!("{name}: {before} → {after}")
        })
        .collect();
    (1..=fields.len())
        .rev()
        .map(|shown| match fields.len() - shown {
            0 => fields.join(", "),
            more => format!("{}, and {more} more", fields[..shown].join(", ")),
        })
        .find(|text| columns(text) <= room)
        .or_else(|| {
            fields.first().map(|first| match fields.len() - 1 {
                0 => first.clone(),
                more => format!("{first}, and {more} more"),
            })
        })
        .unwrap_or_default()
}

fn binding_line(text: &mut String, change: &PlannedChange) {
    let object = change.after.as_ref().or(change.before.as_ref());
    let Some(Object::Binding(binding)) = object else { return };
    let (symbol, style) = symbol(change.kind);
    let _ = writeln!(text, "{} {}", Painted(style, symbol), clean(&format!("binding {binding}")));
}
