//! Renders a plan for a terminal: the changes of each object, then the hazards, the summary and the next command. The
//! command is last, because users read logs from the end.

use super::change_text::{self, Entry, Shape};
use super::family::FoldedRetries;
use super::shell::next_command;
use super::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, clean, columns, heading, words_and_code, wrap};
use super::{report_text, resolutions_text};
use crate::model::count::count;
use crate::model::{Address, ObjectId, ObjectKind};
use crate::plan::{Blockers, ChangeKind, Goal, Hazard, Plan, PlannedChange, Summary, VhostPlan};
use anstyle::Style;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The parameters for rendering a plan.
pub struct View<'a> {
    /// The output width in columns.
    pub width: usize,
    /// The blockers that remain after the allowances.
    pub blockers: &'a Blockers,
    /// The paths of the specs, as passed to topo.
    pub specs: &'a str,
    /// The apply command without the flags that resolve blockers, or `None` to omit the command.
    pub apply: Option<&'a str>,
    /// True to list the HTTP requests and the YAML of every resolution.
    pub details: bool,
    /// True to list every object, including objects generated for retries.
    pub all: bool,
}

/// Renders the complete text, with colors.
pub fn plan(plan: &Plan, view: &View<'_>) -> String {
    let mut text = String::new();
    let is_full = resolutions_text::includes_yaml(plan.summary.conflict, view.details);
    for part in plan.parts() {
        header(&mut text, plan, part, view);
        body(&mut text, part, view, is_full);
    }
    if !is_full {
        info(&mut text, "for the YAML of each resolution, use `topo plan -v` or `--format markdown`", view);
        text.push('\n');
    }
    summary(&mut text, plan, view);
    text
}

fn header(text: &mut String, plan: &Plan, part: &VhostPlan, view: &View<'_>) {
    let target = &plan.target;
    let at = match target.version.as_str() {
        "" => target.url.clone(),
        // A plan without a cluster name was created without a broker.
        version if target.cluster.is_empty() => {
            format!("no broker: compared with {} as {} {version}", target.url, target.product)
        }
        version => format!("{} {version} at {}", target.product, target.url),
    };
    let parts = [part.vhost.in_words(), clean(&at), format!("spec {}", clean(view.specs))];
    for line in heading(&parts, view.width) {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    }
    text.push('\n');
}

fn body(text: &mut String, part: &VhostPlan, view: &View<'_>, is_full: bool) {
    for interrupted in &part.interrupted {
        warning(text, YELLOW, interrupted.label(), &interrupted.address, &sentence(&interrupted.text, "", view));
    }
    if !part.interrupted.is_empty() {
        text.push('\n');
    }
    let before = text.len();
    let folded = FoldedRetries::of(part, view.all);
    let shape = Shape { width: view.width, is_full, lists_all: folded.lists_all() };
    for entry in entries(part, &folded) {
        change_text::entry(text, &entry, part.vhost.as_str(), shape);
    }
    if text.len() > before {
        text.push('\n');
    }
    if !part.unmanaged.is_empty() {
        let title = format!("Unmanaged objects that match `owns` (kept; {})", pruning(part));
        for line in wrap(&words_and_code(&title), " ", view.width) {
            let _ = writeln!(text, "{}", Painted(YELLOW, line));
        }
        for unmanaged in &part.unmanaged {
            let flag = match prune_flag(unmanaged.object.kind()).as_str() {
                "--prune" => String::new(),
                of_kind => format!("  ({of_kind})"),
            };
            let _ = writeln!(text, "    {}{flag}", clean(&unmanaged.object.to_string()));
        }
        text.push('\n');
    }
    if !part.infos.is_empty() {
        for note in &part.infos {
            // Two spaces separate the address from the text.
            info(text, &format!("{}  {}", note.address, clean(&note.text)), view);
        }
        text.push('\n');
    }
    if view.details && !part.steps.is_empty() {
        for step in &part.steps {
            let what = match &step.request {
                Some(request) => request.to_string(),
                None => report_text::action(&step.action),
            };
            let _ = writeln!(text, "{} {}", Painted(DIM, format!("{:>4}", step.id)), clean(&what));
        }
        text.push('\n');
    }
}

/// Returns the flag of `topo plan` and `topo apply` that deletes unmanaged objects of this kind.
fn prune_flag(kind: ObjectKind) -> String {
    match kind {
        ObjectKind::Record(kind) => format!("--prune={}", kind.row().section),
        ObjectKind::Vhost | ObjectKind::Exchange | ObjectKind::Policy | ObjectKind::Queue | ObjectKind::Binding => {
            "--prune".to_owned()
        }
    }
}

/// Names the flags that delete the unmanaged objects: `--prune deletes them`.
pub(super) fn pruning(part: &VhostPlan) -> String {
    let flags: BTreeSet<String> = part.unmanaged.iter().map(|unmanaged| prune_flag(unmanaged.object.kind())).collect();
    let verb = if flags.len() == 1 { "deletes" } else { "delete" };
    format!("{} {verb} them", flags.into_iter().collect::<Vec<_>>().join(" and "))
}

/// Writes an info. Infos do not block a plan.
fn info(text: &mut String, sentence: &str, view: &View<'_>) {
    let lines = wrap(&words_and_code(sentence), " ", view.width.saturating_sub(5));
    let _ = writeln!(text, "{} {}", Painted(DIM, "info"), lines.join("\n     "));
}

/// Groups and sorts the changes: each object with the changed bindings to it, recreations and conflicts after other
/// changes, and deletions last.
pub(super) fn entries<'a>(part: &'a VhostPlan, folded: &'a FoldedRetries<'a>) -> Vec<Entry<'a>> {
    let mut bindings_to: BTreeMap<ObjectId, Vec<&PlannedChange>> = BTreeMap::new();
    let mut objects: Vec<(ObjectId, &PlannedChange)> = Vec::new();
    for change in &part.changes {
        match change.id() {
            Some(id) if folded.hides(&id) => {}
            Some(ObjectId::Binding(binding)) => {
                let destination = match binding.destination {
                    crate::model::Destination::Queue(name) => ObjectId::Queue(name),
                    crate::model::Destination::Exchange(name) => ObjectId::Exchange(name),
                };
                bindings_to.entry(destination).or_default().push(change);
            }
            Some(id) => objects.push((id, change)),
            None => {}
        }
    }
    let mut entries: Vec<Entry<'_>> = objects
        .into_iter()
        .map(|(id, change)| {
            let (bindings, family) = (bindings_to.remove(&id).unwrap_or_default(), folded.get(&id));
            Entry { id, change: Some(change), bindings, family }
        })
        .collect();
    for queue in folded.queues() {
        let id = ObjectId::Queue(queue.clone());
        if !entries.iter().any(|entry| entry.id == id) {
            bindings_to.entry(id).or_default();
        }
    }
    entries.extend(bindings_to.into_iter().map(|(id, bindings)| {
        let family = folded.get(&id);
        Entry { id, change: None, bindings, family }
    }));
    entries.sort_by_key(|entry| {
        let rank = match entry.change.map(|change| change.kind) {
            Some(ChangeKind::Delete) => 2,
            Some(ChangeKind::Recreate | ChangeKind::Conflict) => 1,
            Some(ChangeKind::Create | ChangeKind::Change) | None => 0,
        };
        (rank, entry.id.clone())
    });
    entries
}

/// Writes a hazard, a blocker or an interrupted migration: a line with its name and address, then the lines of its
/// sentence.
fn warning(text: &mut String, style: Style, word: &str, address: &Address, lines: &[String]) {
    let _ = writeln!(text, "{} {}  {address}", Painted(style, "!"), Painted(style, format!("{word:<19}")));
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
}

/// Wraps a sentence. Puts `first` before the first line, and aligns the other lines. Keeps code in backticks on one
/// line, so that users can copy the code.
fn sentence(sentence: &str, first: &str, view: &View<'_>) -> Vec<String> {
    let words = words_and_code(&clean(sentence));
    let lines = wrap(&words, " ", view.width.saturating_sub(4 + columns(first)));
    let indent = " ".repeat(columns(first));
    let begin = |index| if index == 0 { first.to_owned() } else { indent.clone() };
    lines.into_iter().enumerate().map(|(index, line)| format!("{}{line}", begin(index))).collect()
}

/// Returns the remark after a hazard, or an empty string if the hazard blocks the plan.
pub(super) fn remark(hazard: &Hazard, blockers: &Blockers) -> &'static str {
    match (hazard.must_be_allowed, blockers.hazards.contains(hazard)) {
        (true, false) => " (allowed)",
        (false, _) => " (not blocking)",
        (true, true) => "",
    }
}

fn summary(text: &mut String, plan: &Plan, view: &View<'_>) {
    for hazard in plan.hazards() {
        let open = view.blockers.hazards.contains(hazard);
        let lines = sentence(&format!("{}{}", hazard.text, remark(hazard, view.blockers)), "", view);
        warning(text, if open { RED } else { YELLOW }, hazard.kind.as_str(), &hazard.address, &lines);
    }
    for block in &view.blockers.blocks {
        let mut lines = sentence(&block.text, "", view);
        // A conflict lists its resolutions above.
        let is_listed = plan.parts().flat_map(|part| &part.changes).any(|change| {
            let contains = |text: &String| block.remedy.as_ref().is_none_or(|remedy| remedy.contains(text));
            let resolutions = change.conflict.iter().flat_map(|conflict| &conflict.resolutions);
            change.address == block.address && resolutions.map(|it| &it.text).any(contains)
        });
        if !is_listed {
            lines.extend(block.remedy.iter().flat_map(|remedy| sentence(remedy, "→ ", view)));
        }
        warning(text, RED, "blocked", &block.address, &lines);
    }
    if plan.hazards().next().is_some() || !view.blockers.blocks.is_empty() {
        text.push('\n');
    }
    conclusion(text, plan, view);
    if let Some(apply) = view.apply.filter(|_| !plan.is_empty()) {
        let _ = writeln!(text, "{}", super::shell::wrap_command(&next_command(apply, view.blockers), view.width));
    }
}

/// Writes the counts of changes, and whether the plan is blocked.
pub(super) fn conclusion(text: &mut String, plan: &Plan, view: &View<'_>) {
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
    let mut lines = summary_lines(plan, view.width);
    let line = lines.pop().unwrap_or_default();
    for line in lines {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    }
    if view.blockers.is_empty() {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    } else {
        let blocked = blocked_summary(view.blockers);
        let gap = match view.width.checked_sub(columns(&line) + columns(&blocked)) {
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

/// Returns the number of compared objects and the number of compared bindings.
pub fn compared_counts(plan: &Plan) -> (usize, usize) {
    plan.parts()
        .fold((0, 0), |(objects, bindings), part| (objects + part.compared_objects, bindings + part.compared_bindings))
}

/// Formats the summary as `Plan: 5 objects and 2 bindings to create, 1 object to recreate`, without zero counts.
pub fn summary_line(plan: &Plan) -> String {
    summary_parts(plan).join(" ")
}

/// Wraps the summary to `width` columns. Aligns the other lines with the first number.
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
        // Leftovers of an earlier apply: a binding or a topic permission to restore, a temporary policy to delete.
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

    /// Counts of zero are omitted.
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
