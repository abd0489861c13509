//! Renders a plan as a pull-request comment: a table for reviewers, a collapsible section with the resolutions of each
//! conflict, and a collapsed section with the complete text.

use super::change_details::{full_binding, integer_remark};
use super::markdown::{fence, inline, with_code};
use super::plan_summary::{blocked_summary, compared_counts, summary_line};
use super::plan_text::{View, remark};
use super::routing_text;
use super::shell::next_command;
use crate::model::Object;
use crate::model::count::count;
use crate::plan::{Applicability, ChangeKind, Plan, PlannedChange, Resolution};
use std::fmt::Write;

/// The maximum length of the plan in a comment. GitHub rejects comments with more than 65,536 characters.
const LIMIT: usize = 60_000;
/// The maximum length of a comment, including the warnings after the plan.
const TOTAL_LIMIT: usize = 65_000;

/// Renders the comment. `text` is the plan as text, without colors.
pub fn plan(plan: &Plan, view: &View<'_>, text: &str) -> String {
    let mut out = String::new();
    let vhosts: Vec<String> = plan.vhosts.iter().map(|part| format!("**{}**", inline(part.vhost.as_str()))).collect();
    let cluster = plan.cluster.iter().map(|_| "cluster".to_owned());
    let vhosts = (!vhosts.is_empty()).then(|| format!("vhost {}", vhosts.join(", ")));
    let _ = writeln!(out, "### topo plan: {}\n", cluster.chain(vhosts).collect::<Vec<_>>().join(", "));
    if plan.is_empty() {
        let (objects, bindings) = compared_counts(plan);
        let _ = writeln!(
            out,
            "No changes. {} and {} compared.",
            count(objects as u64, "object"),
            count(bindings as u64, "binding")
        );
        return out;
    }
    let blocked =
        if view.blockers.is_empty() { String::new() } else { format!(" · **{}**", blocked_summary(view.blockers)) };
    let _ = writeln!(out, "{}{blocked}\n", summary_line(plan));
    // Interrupted migrations come first, because they affect all other changes. Their sentences contain commands in
    // backticks.
    for note in plan.vhosts.iter().flat_map(|part| &part.interrupted) {
        let text = with_code(&note.text);
        let _ = writeln!(out, "- **{}** `{}`: {text}\n", note.label(), note.address);
    }
    let rows: Vec<String> = plan.parts().flat_map(|part| part.changes.iter().map(row)).collect();
    let _ = writeln!(out, "| | object | change |\n|---|---|---|");
    for (index, row) in rows.iter().enumerate() {
        if out.len() + row.len() > LIMIT / 2 {
            let _ = writeln!(out, "| | … | {} more |", rows.len() - index);
            break;
        }
        out.push_str(row);
        out.push('\n');
    }
    out.push('\n');
    for part in &plan.vhosts {
        routing_text::write_markdown(&mut out, part, view.all, LIMIT * 5 / 8);
    }
    let hazards = plan.hazards().map(|hazard| {
        let remark = remark(hazard, view.blockers);
        format!("- **{}** `{}`: {}{remark}", hazard.kind, hazard.address, with_code(&hazard.text))
    });
    let blocks = plan.blocks().map(|block| {
        let remedy = block.remedy.as_ref().map_or_else(String::new, |remedy| format!(" → {}", inline(remedy)));
        format!("- **blocked** `{}`: {}{remedy}", block.address, with_code(&block.text))
    });
    let warnings: Vec<String> = hazards.chain(blocks).collect();
    for (index, warning) in warnings.iter().enumerate() {
        if out.len() + warning.len() > LIMIT * 3 / 4 {
            let _ = writeln!(out, "- … {} more", warnings.len() - index);
            break;
        }
        let _ = writeln!(out, "{warning}");
    }
    if let Some(apply) = view.apply {
        let line = next_command(apply, view.blockers);
        match line.starts_with("topo ") {
            true if line.len() < LIMIT / 8 => out.push_str(&format!("\n```sh\n{line}\n```\n")),
            true => {}
            // `line` is a sentence instead of a command if no command resolves the blockers.
            false => out.push_str(&format!("\n{line}\n")),
        }
    }
    let changes = plan.vhosts.iter().flat_map(|part| &part.changes);
    sections(&mut out, changes, LIMIT * 7 / 8);
    fold(&mut out, text);
    let _ = writeln!(out, "\nFingerprint `{}`", plan.fingerprint);
    truncate(out)
}

/// Appends warnings to the comment. Omits the last warnings if the comment becomes too long.
pub fn with_warnings(mut comment: String, lines: &[String]) -> String {
    comment.push('\n');
    for (index, line) in lines.iter().enumerate() {
        if comment.len() + line.len() > TOTAL_LIMIT {
            let _ = writeln!(comment, "- … {} more", lines.len() - index);
            break;
        }
        let _ = writeln!(comment, "{line}");
    }
    comment
}

/// Writes the text into a collapsed section, as a fenced code block. Truncates the text at the limit.
fn fold(out: &mut String, text: &str) {
    let fence = fence(text);
    let room = LIMIT.saturating_sub(out.len() + 400);
    let mut body = String::new();
    for line in text.lines() {
        // In a diff fence, a line that begins with `+`, `-` or `!` is colored.
        let trimmed = line.trim_start();
        let line = match trimmed.chars().next() {
            Some('+' | '-' | '!') => {
                format!("{} {trimmed}", &line[..line.len() - trimmed.len()]).trim_start().to_owned()
            }
            Some(_) | None => format!(" {line}"),
        };
        if body.len() + line.len() > room {
            body.push_str("… truncated: run `topo plan` to see the rest\n");
            break;
        }
        body.push_str(&line);
        body.push('\n');
    }
    let _ = writeln!(out, "\n<details><summary>Complete plan</summary>\n\n{fence}diff\n{body}{fence}\n\n</details>");
}

fn row(change: &PlannedChange) -> String {
    let (symbol, what) = match change.kind {
        ChangeKind::Create => ("+", "create".to_owned()),
        ChangeKind::Change => ("~", format!("change {}", fields(change))),
        ChangeKind::Recreate => ("-/+", format!("**recreate**: {}", fields(change))),
        ChangeKind::Delete => ("-", "**delete**".to_owned()),
        ChangeKind::Conflict => ("!", format!("**conflict**: {}", fields(change))),
    };
    let object = match change.after.as_ref().or(change.before.as_ref()) {
        Some(Object::Binding(binding)) => format!("binding {}", full_binding(binding)),
        Some(object) => object.id().to_string(),
        None => change.address.to_string(),
    };
    format!("| {symbol} | {} | {what} |", inline(&object))
}

fn fields(change: &PlannedChange) -> String {
    let shown: Vec<String> = change
        .fields
        .iter()
        .map(|field| {
            let value = |value: &Option<crate::model::ArgumentValue>| match value {
                Some(value) => inline(&crate::model::units::with_unit(&field.field, value)),
                None => "absent".to_owned(),
            };
            format!("{} {} → {}", inline(&field.field), value(&field.before), value(&field.after))
        })
        .collect();
    shown.join(", ")
}

fn truncate(mut out: String) -> String {
    if out.chars().count() > LIMIT {
        out = out.chars().take(LIMIT).collect();
        out.push_str("\n… truncated\n");
    }
    out
}

/// The maximum number of conflicts for which the sections are expanded. With more conflicts, all sections are
/// collapsed.
const MAX_OPEN: usize = 3;

/// Writes a section for each conflict, up to a comment length of `room` bytes.
fn sections<'a>(out: &mut String, changes: impl Iterator<Item = &'a PlannedChange>, room: usize) {
    let conflicts: Vec<&PlannedChange> = changes
        .filter(|change| change.conflict.as_ref().is_some_and(|conflict| !conflict.resolutions.is_empty()))
        .collect();
    let open = if conflicts.len() <= MAX_OPEN { " open" } else { "" };
    for (index, change) in conflicts.iter().enumerate() {
        let section = section(change, open);
        if out.len() + section.len() > room {
            let _ = writeln!(
                out,
                "\n… and the resolutions of {}",
                count((conflicts.len() - index) as u64, "more conflict")
            );
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
        let words = "After recreation, applications that still declare the old settings receive";
        let _ = writeln!(text, "\n{words}{} “{}”.", integer_remark(sentence), inline(sentence));
    }
    if let Some(sentence) = &conflict.typeless_declare {
        let _ = writeln!(text, "\n{}.", inline(&capitalize(sentence)));
    }
    text.push_str("\n</details>\n");
    text
}

fn item(text: &mut String, resolution: &Resolution) {
    let _ = writeln!(text, "- **{}**: {}", resolution.kind.as_str(), inline(&resolution.text));
    for field in resolution.fields.iter().filter(|_| resolution.applicability != Applicability::No) {
        let not = if field.applies { "" } else { "not " };
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
        let _ = writeln!(text, "  {}.\n", inline(&capitalize(applications)));
    }
}

fn capitalize(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_do_not_make_a_comment_too_long() {
        let lines: Vec<String> = (0..20).map(|number| format!("- {number} {}", "ü".repeat(500))).collect();
        let comment = with_warnings("x".repeat(LIMIT), &lines);
        assert!(comment.len() <= TOTAL_LIMIT + 20, "{}", comment.len());
        assert!(comment.ends_with("- … 16 more\n"), "{}", &comment[comment.len() - 40..]);
        assert_eq!(with_warnings("plan\n".to_owned(), &["- one".to_owned()]), "plan\n\n- one\n");
    }

    #[test]
    fn fence_is_longer_than_runs_of_backticks() {
        let mut out = String::new();
        fold(&mut out, "a ```` b");
        assert!(out.contains("\n`````diff\n"), "{out}");
    }
}
