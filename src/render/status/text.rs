//! Renders a status as text: the tables of the queues, then the notes, a summary and the next command.

use super::super::shell::{quote, wrap_command};
use super::super::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, clean, fold, heading};
use super::table::{Layout, Row};
use crate::model::VhostName;
use crate::model::count::{count, number};
use crate::model::units::duration;
use crate::operate::status::{
    Drift, InterruptedStatus, Problem, QueueStatus, RetryStatus, State, Status, Unknown, VhostStatus,
};
use std::fmt::Write;

/// The width of the labels below the tables.
const LABEL: usize = 12;

/// The parameters for rendering a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The paths of the specs, as messages show them; empty without a spec.
    pub names: String,
    /// The paths and flags of the specs, as command-line arguments after a space; empty without a spec.
    pub specs: String,
    /// The connection flags for suggested commands.
    pub flags: String,
    /// The width in columns.
    pub width: usize,
}

/// Renders a status.
pub fn text(status: &Status, view: &View) -> String {
    let mut text = String::new();
    for vhost in &status.vhosts {
        write_vhost(&mut text, status, vhost, view);
        text.push('\n');
    }
    if let Some(cluster) = &status.cluster {
        let _ = writeln!(text, "{}", Painted(BOLD, "cluster"));
        let mut notes = Vec::new();
        notes.extend(cluster.drift.as_ref().map(|drift| drift_note(drift, view)));
        notes.extend(cluster.unknown.iter().map(unknown_note));
        write_notes(&mut text, &notes, view.width);
        text.push('\n');
    }
    text.push_str(&summary(status));
    if let Some(command) = next_command(status, view) {
        let _ = writeln!(text, "{}", wrap_command(&format!("Next: {command}"), view.width));
    }
    text
}

fn write_vhost(text: &mut String, status: &Status, vhost: &VhostStatus, view: &View) {
    let target = &status.target;
    let mut parts = vec![
        format!("vhost {}", vhost.vhost),
        format!("{} {} at {}", clean(&target.product), clean(&target.version), clean(&target.url)),
    ];
    if !view.names.is_empty() {
        parts.push(format!("spec {}", view.names));
    }
    for line in heading(&parts, view.width) {
        let _ = writeln!(text, "{}", Painted(BOLD, line));
    }
    let mut notes = Vec::new();
    if vhost.exists {
        write_tables(text, vhost, view.width);
    } else {
        let missing = format!("vhost {} does not exist", vhost.vhost);
        notes.push((Painted(YELLOW, "missing"), missing));
    }
    if vhost.temporary_queues > 0 {
        let queues = count(vhost.temporary_queues as u64, "exclusive or server-named queue");
        notes.push((Painted(DIM, "not listed"), queues));
    }
    if let Some(lock) = &vhost.lock {
        let node = if lock.node_is_up == Some(false) {
            "; the node of the lock queue is down, so the lock does not expire"
        } else {
            ""
        };
        let held = if lock.is_lock { "held by " } else { "not a lock: " };
        notes.push((Painted(YELLOW, "lock"), format!("{held}{}{node}", clean(&lock.holder))));
    }
    notes.extend(vhost.interrupted_migrations.iter().map(migration_note));
    notes.extend(vhost.drift.as_ref().map(|drift| drift_note(drift, view)));
    notes.extend(vhost.unknown.iter().map(unknown_note));
    if !notes.is_empty() {
        text.push('\n');
        write_notes(text, &notes, view.width);
    }
}

fn write_tables(text: &mut String, vhost: &VhostStatus, width: usize) {
    let mut tables: Vec<(Row, Vec<Row>)> = Vec::new();
    if !vhost.dead_letter_queues.is_empty() {
        let head = Row::head("dead-letter queues", ["messages", "in 5 min", "not empty for"], "threshold");
        tables.push((head, vhost.dead_letter_queues.iter().map(Row::of_dead_letter_queue).collect()));
    }
    if !vhost.queues.is_empty() {
        let head = Row::head("queues", ["messages", "in 5 min", "consumers"], "threshold");
        tables.push((head, vhost.queues.iter().map(Row::of_queue).collect()));
    }
    if !vhost.retries.is_empty() {
        let head = Row::head("retries", ["messages", "", ""], "delays");
        tables.push((head, vhost.retries.iter().map(retry_row).collect()));
    }
    let layout = Layout::of(tables.iter().flat_map(|(head, rows)| [head].into_iter().chain(rows)), width);
    for (head, rows) in &tables {
        text.push('\n');
        layout.write_head(text, head);
        rows.iter().for_each(|row| layout.write_row(text, row));
    }
    if tables.is_empty() {
        text.push_str("\n  no queues\n");
    }
}

/// Returns the row for a queue whose tiers contain messages, with the number of messages by delay.
fn retry_row(retry: &RetryStatus) -> Row {
    let tiers = retry.tiers.iter().map(|tier| {
        let delay = duration(tier.delay_milliseconds).unwrap_or_else(|| "0ms".to_owned());
        format!("{delay}: {}", number(tier.messages))
    });
    Row::of_messages(retry.queue.to_string(), retry.messages, tiers.collect::<Vec<_>>().join(", "))
}

/// A label with its style, and the text after the label.
type Note = (Painted<&'static str>, String);

fn migration_note(migration: &InterruptedStatus) -> Note {
    (Painted(YELLOW, "migration"), clean(&migration.text))
}

fn drift_note(drift: &Drift, view: &View) -> Note {
    let conflicts = match drift.conflicts {
        0 => String::new(),
        conflicts => format!(" ({})", count(conflicts as u64, "conflict")),
    };
    let mut parts = Vec::new();
    if drift.changes > 0 {
        parts.push(format!("{} pending{conflicts}", count(drift.changes as u64, "change")));
    }
    if drift.unmanaged > 0 {
        parts.push(count(drift.unmanaged as u64, "unmanaged object"));
    }
    if parts.is_empty() {
        return (Painted(DIM, "drift"), "no changes pending".to_owned());
    }
    let command = format!("topo plan{}{}", view.specs, view.flags);
    (Painted(YELLOW, "drift"), format!("{}; run `{command}`", parts.join(", ")))
}

fn unknown_note(unknown: &Unknown) -> Note {
    (Painted(DIM, "unknown"), clean(&format!("{}: {}", unknown.what, unknown.reason)))
}

fn write_notes(text: &mut String, notes: &[Note], width: usize) {
    for (label, note) in notes {
        let folded = fold(note, width.saturating_sub(LABEL));
        let padding = " ".repeat(LABEL.saturating_sub(label.1.len()));
        let _ = writeln!(text, "{label}{padding}{}", folded.replace('\n', &format!("\n{}", " ".repeat(LABEL))));
    }
}

fn queues(status: &Status) -> impl Iterator<Item = (&VhostName, &QueueStatus)> {
    status
        .vhosts
        .iter()
        .flat_map(|vhost| vhost.dead_letter_queues.iter().chain(&vhost.queues).map(move |queue| (&vhost.vhost, queue)))
}

/// Returns the line that contains the number of queues with problems. Also mentions interrupted migrations if no queue
/// has a problem.
fn summary(status: &Status) -> String {
    let of_state = |state: State| queues(status).filter(|(_, queue)| queue.state == state).count() as u64;
    let (warning, critical) = (of_state(State::Warning), of_state(State::Critical));
    let all = count(queues(status).count() as u64, "queue");
    let interrupted = status.vhosts.iter().map(|vhost| vhost.interrupted_migrations.len() as u64).sum();
    let line = match (warning, critical) {
        (0, 0) if interrupted > 0 => {
            Painted(YELLOW, format!("Warning: {}. No problems in {all}.", count(interrupted, "interrupted migration")))
        }
        (0, 0) => Painted(GREEN, format!("No problems in {all}.")),
        (warning, 0) => Painted(YELLOW, format!("Warning: {} of {all}.", number(warning))),
        (0, critical) => Painted(RED, format!("Critical: {} of {all}.", number(critical))),
        (warning, critical) => {
            Painted(RED, format!("Critical: {}, warning: {} (of {all}).", number(critical), number(warning)))
        }
    };
    format!("{line}\n")
}

/// Returns the command to run next: `topo dlq list` for the dead-letter queue with the most severe problem. Ignores
/// dead-letter queues whose only problem is that they are missing or unavailable. If no queue remains, returns
/// `topo plan`, provided that there is a spec, and that changes are pending or a migration was interrupted.
fn next_command(status: &Status, view: &View) -> Option<String> {
    let has_messages = |queue: &QueueStatus| {
        queue.problems.iter().any(|it| !matches!(it, Problem::Missing { .. } | Problem::Unavailable { .. }))
    };
    let dead_letter_queues = status.vhosts.iter().flat_map(|vhost| {
        vhost.dead_letter_queues.iter().filter(|queue| has_messages(queue)).map(move |queue| (&vhost.vhost, queue))
    });
    // `max_by_key` returns the last maximum, so reversing the iterator selects the first queue.
    let worst = dead_letter_queues.rev().max_by_key(|(_, queue)| queue.state);
    if let Some((vhost, queue)) = worst {
        let (queue, vhost) = (quote(queue.queue.as_str()), quote(vhost.as_str()));
        return Some(format!("topo dlq list {queue} --vhost {vhost}{}", view.flags));
    }
    let differs = |drift: &Option<Drift>| drift.is_some_and(|drift| drift.changes > 0);
    let is_pending =
        status.vhosts.iter().any(|vhost| !vhost.interrupted_migrations.is_empty() || differs(&vhost.drift))
            || status.cluster.as_ref().is_some_and(|cluster| differs(&cluster.drift));
    (is_pending && !view.specs.is_empty()).then(|| format!("topo plan{}{}", view.specs, view.flags))
}
