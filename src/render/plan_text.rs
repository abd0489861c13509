//! Renders a plan for a terminal: the changes to each object, then the hazards, the summary and the next command. The
//! command comes last, because users read logs from the end.

use super::change_text::{self, Entry, Shape};
use super::family::FoldedRetries;
use super::plan_summary::conclusion;
use super::shell::next_command;
use super::style::{BOLD, DIM, Painted, RED, YELLOW, clean, columns, heading, words_and_code, wrap};
use super::{report_text, resolutions_text, routing_text};
use crate::model::{Address, ObjectId, ObjectKind};
use crate::plan::{Blockers, ChangeKind, Hazard, Plan, PlannedChange, VhostPlan};
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
    /// True to list the plan's HTTP requests, and the YAML of every resolution.
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
            let against = if target.url == "empty" { "an empty broker" } else { target.url.as_str() };
            format!("no broker: compared with {against}, assuming {} {version}", target.product)
        }
        version => format!("{} {version} at {}", target.product, target.url),
    };
    let environment = plan.options.environment.as_ref().map(|name| format!("environment {}", clean(name)));
    let spec = format!("spec {}", clean(view.specs));
    let parts: Vec<String> = [part.vhost.in_words(), clean(&at)].into_iter().chain(environment).chain([spec]).collect();
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
    routing_text::write_text(text, part, view.all, view.width);
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

/// Describes which flags delete the unmanaged objects, for example `--prune deletes them`.
pub(super) fn pruning(part: &VhostPlan) -> String {
    let flags: BTreeSet<String> = part.unmanaged.iter().map(|unmanaged| prune_flag(unmanaged.object.kind())).collect();
    let verb = if flags.len() == 1 { "deletes" } else { "delete" };
    format!("{} {verb} them", flags.into_iter().collect::<Vec<_>>().join(" and "))
}

/// Writes an info line, which does not block a plan.
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
        // The resolutions of a conflict are already listed above.
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
    conclusion(text, plan, view.blockers, view.width);
    if let Some(apply) = view.apply.filter(|_| !plan.is_empty()) {
        let _ = writeln!(text, "{}", super::shell::wrap_command(&next_command(apply, view.blockers), view.width));
    }
}
