//! Renders the summary of a plan: the counts of changes, and whether the plan is blocked.

use super::style::{BOLD, GREEN, Painted, RED, columns, wrap};
use crate::model::count::count;
use crate::plan::{Blockers, Goal, Plan, Summary, VhostPlan};
use std::fmt::Write;

/// Writes the counts of changes, and whether the plan is blocked.
pub(super) fn conclusion(text: &mut String, plan: &Plan, blockers: &Blockers, width: usize) {
    if plan.is_empty() {
        let (objects, bindings) = compared_counts(plan);
        let line = format!(
            "No changes. {} and {} compared.",
            count(objects as u64, "object"),
            count(bindings as u64, "binding")
        );
        let _ = writeln!(text, "{}", Painted(GREEN, line));
        return;
    }
    let mut lines = summary_lines(plan, width);
    let line = lines.pop().unwrap_or_default();
    for line in lines {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    }
    if blockers.is_empty() {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    } else {
        let blocked = blocked_summary(blockers);
        let gap = match width.checked_sub(columns(&line) + columns(&blocked)) {
            Some(room) if room >= 2 => " ".repeat(room.min(8)),
            Some(_) | None => "\n".to_owned(),
        };
        let _ = writeln!(text, "{}{gap}{}", Painted(BOLD, line), Painted(RED, blocked));
    }
}

/// Formats the blockers as `BLOCKED by 1 conflict and 2 hazards`.
pub fn blocked_summary(blockers: &Blockers) -> String {
    format!("BLOCKED by {blockers}")
}

/// Returns the number of objects and the number of bindings that were compared.
pub fn compared_counts(plan: &Plan) -> (usize, usize) {
    plan.parts()
        .fold((0, 0), |(objects, bindings), part| (objects + part.compared_objects, bindings + part.compared_bindings))
}

/// Formats the summary as `Plan: 5 objects and 2 bindings to create, 1 object to recreate`, without zero counts.
pub fn summary_line(plan: &Plan) -> String {
    summary_parts(plan).join(" ")
}

/// Wraps the summary to `width` columns. Aligns the lines after the first line with the first number.
fn summary_lines(plan: &Plan, width: usize) -> Vec<String> {
    const INDENT: &str = "      ";
    let line = summary_line(plan);
    if columns(&line) <= width {
        return vec![line];
    }
    let mut lines = wrap(&summary_parts(plan), " ", width.saturating_sub(INDENT.len()));
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, INDENT);
    }
    lines
}

/// Returns the parts of the summary. All parts except the last end with a comma.
fn summary_parts(plan: &Plan) -> Vec<String> {
    let Summary { create, change, recreate, delete, conflict, bind, unbind } = plan.summary;
    let counted = |objects: usize, bindings: usize| {
        let counts = [(objects, "object"), (bindings, "binding")];
        let counts: Vec<String> =
            counts.iter().filter(|(some, _)| *some > 0).map(|(some, word)| count(*some as u64, word)).collect();
        counts.join(" and ")
    };
    let mut parts: Vec<(String, &str)> = vec![
        (counted(create, bind), "to create"),
        (counted(change, 0), "to change"),
        (counted(recreate, 0), "to recreate"),
        (counted(delete, unbind), "to delete"),
        (counted(conflict, 0), "in conflict"),
    ];
    for (goal, what) in [(Goal::Recreate, "to finish"), (Goal::RollBack, "to roll back")] {
        let open =
            |part: &VhostPlan| part.interrupted.iter().filter(|one| part.is_migrated(&one.address, goal)).count();
        match plan.vhosts.iter().map(open).sum::<usize>() as u64 {
            0 => {}
            migrations => parts.push((count(migrations, "migration"), what)),
        }
    }
    let mut parts: Vec<String> = parts
        .into_iter()
        .filter(|(counted, _)| !counted.is_empty())
        .map(|(counted, what)| format!("{counted} {what},"))
        .collect();
    match parts.last_mut() {
        Some(last) => {
            last.pop();
        }
        // Steps that remain from an earlier apply, such as restoring a binding or deleting a temporary policy.
        None if plan.step_count() > 0 => parts.push(format!("{} to finish", count(plan.step_count() as u64, "step"))),
        None => parts.push("nothing to change".to_owned()),
    }
    parts[0].insert_str(0, "Plan: ");
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::document::{FORMAT_VERSION, Options, Target};

    fn plan(summary: Summary) -> Plan {
        Plan {
            format_version: FORMAT_VERSION,
            target: Target {
                url: String::new(),
                cluster: String::new(),
                product: String::new(),
                version: String::new(),
            },
            options: Options::default(),
            fingerprint: String::new(),
            content_hash: String::new(),
            summary,
            cluster: None,
            vhosts: Vec::new(),
        }
    }

    #[test]
    fn summary_lines_fit_the_width() {
        let few = Summary { create: 3, conflict: 1, bind: 2, ..Summary::default() };
        let line = "Plan: 3 objects and 2 bindings to create, 1 object in conflict";
        assert_eq!(summary_lines(&plan(few), 80), [line]);
        assert_eq!(summary_lines(&plan(few), line.len()), [line]);
        let (first, second) = line.split_once(", ").unwrap();
        assert_eq!(summary_lines(&plan(few), 60), [format!("{first},"), format!("      {second}")]);
        let many = Summary {
            create: 10_000,
            change: 10_000,
            recreate: 1_000,
            delete: 1_000,
            conflict: 1_000,
            bind: 9_999,
            unbind: 9_999,
        };
        assert_eq!(
            summary_lines(&plan(many), 80),
            [
                "Plan: 10,000 objects and 9,999 bindings to create,",
                "      10,000 objects to change, 1,000 objects to recreate,",
                "      1,000 objects and 9,999 bindings to delete, 1,000 objects in conflict",
            ]
        );
    }

    /// The summary omits zero counts.
    #[test]
    fn summary_counts_objects_and_bindings() {
        for (summary, expected) in [
            (Summary { create: 5, bind: 2, ..Summary::default() }, "Plan: 5 objects and 2 bindings to create"),
            (Summary { unbind: 1, ..Summary::default() }, "Plan: 1 binding to delete"),
            (
                Summary { change: 1, recreate: 2, delete: 1, ..Summary::default() },
                "Plan: 1 object to change, 2 objects to recreate, 1 object to delete",
            ),
            (Summary::default(), "Plan: nothing to change"),
        ] {
            assert_eq!(summary_line(&plan(summary)), expected);
        }
    }
}
