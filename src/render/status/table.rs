//! Lays out the tables of a status. All tables of a vhost have the same column widths.

use super::super::style::{BOLD, DIM, Painted, RED, YELLOW, columns};
use crate::model::count::number;
use crate::model::units::duration;
use crate::operate::status::{Problem, QueueStatus, State};
use anstyle::Style;
use std::fmt::Write;

/// The text for an unknown value, and for the age of an empty queue.
const UNKNOWN: &str = "–";

/// The minimum width of the name column.
const MIN_NAME: usize = 18;

/// The number of numeric columns.
const NUMBERS: usize = 3;

/// A row of a table, without colors.
pub(super) struct Row {
    state: State,
    name: String,
    numbers: [String; NUMBERS],
    /// The notes after the numbers, one per line.
    notes: Vec<String>,
}

/// The widths of the columns.
pub(super) struct Layout {
    name: usize,
    numbers: [usize; NUMBERS],
    width: usize,
}

impl Row {
    /// Creates a row for a dead-letter queue. The last number is the age.
    pub(super) fn of_dead_letter_queue(queue: &QueueStatus) -> Self {
        Self::new(queue, age(queue))
    }

    /// Creates a row for any other queue. The last number is the consumer count.
    pub(super) fn of_queue(queue: &QueueStatus) -> Self {
        Self::new(queue, optional(queue.consumers))
    }

    fn new(queue: &QueueStatus, last: String) -> Self {
        let mut notes: Vec<String> = queue.problems.iter().map(problem).collect();
        if !queue.unchecked.is_empty() {
            let names: Vec<&str> = queue.unchecked.iter().map(|threshold| threshold.as_str()).collect();
            notes.push(format!("unknown: {}", names.join(", ")));
        }
        let numbers = [optional(queue.messages), growth(queue.growth_in_5_minutes), last];
        Self { state: queue.state, name: queue.queue.to_string(), numbers, notes }
    }

    /// Creates a row that contains only a message count and a note.
    pub(super) fn of_messages(name: String, messages: u64, note: String) -> Self {
        let numbers = [number(messages), String::new(), String::new()];
        Self { state: State::Fine, name, numbers, notes: vec![note] }
    }

    /// Creates the header row of a table.
    pub(super) fn head(name: &str, numbers: [&str; NUMBERS], note: &str) -> Self {
        let notes = if note.is_empty() { Vec::new() } else { vec![note.to_owned()] };
        Self { state: State::Fine, name: name.to_owned(), numbers: numbers.map(str::to_owned), notes }
    }
}

impl Layout {
    /// Chooses the column widths for all rows of a vhost.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a Row>, width: usize) -> Self {
        let rows: Vec<&Row> = rows.into_iter().collect();
        let widest = |column: fn(&Row) -> usize| rows.iter().map(|row| column(row)).max().unwrap_or(0);
        let numbers = [
            widest(|row| columns(&row.numbers[0])),
            widest(|row| columns(&row.numbers[1])),
            widest(|row| columns(&row.numbers[2])),
        ];
        let notes = widest(|row| row.notes.iter().map(|note| columns(note)).max().unwrap_or(0));
        let fixed = 2 + numbers.iter().map(|width| 2 + width).sum::<usize>() + 2 + notes;
        let name = widest(|row| columns(&row.name)).min(width.saturating_sub(fixed).max(MIN_NAME));
        Self { name, numbers, width }
    }

    /// Writes the header row of a table.
    pub(super) fn write_head(&self, text: &mut String, head: &Row) {
        for line in self.lines(head) {
            let _ = writeln!(text, "{}", Painted(BOLD, line.trim_end()));
        }
    }

    /// Writes a row, in the color of its state.
    pub(super) fn write_row(&self, text: &mut String, row: &Row) {
        let style = match row.state {
            State::Fine => None,
            State::Warning => Some(YELLOW),
            State::Critical => Some(RED),
        };
        for (index, line) in self.lines(row).into_iter().enumerate() {
            let line = line.trim_end();
            let is_dim = row.state == State::Fine && index > 0;
            match style.or(is_dim.then_some(DIM)) {
                Some(style) => self.write_painted(text, style, line),
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
    }

    fn write_painted(&self, text: &mut String, style: Style, line: &str) {
        let _ = writeln!(text, "{}", Painted(style, line));
    }

    /// Returns the lines of a row. Puts a name that is wider than its column on a separate line. The first note follows
    /// the numbers if it fits. Each additional note is on a separate line.
    fn lines(&self, row: &Row) -> Vec<String> {
        let mark = match row.state {
            State::Fine => ' ',
            State::Warning => '~',
            State::Critical => '!',
        };
        let mut lines = Vec::new();
        let mut line = format!("{mark} {}", row.name);
        if columns(&row.name) > self.name {
            lines.push(std::mem::take(&mut line));
        }
        let pad = |line: &mut String, width: usize| {
            let missing = width.saturating_sub(columns(line));
            line.push_str(&" ".repeat(missing));
        };
        pad(&mut line, 2 + self.name);
        for (cell, width) in row.numbers.iter().zip(self.numbers) {
            line.push_str(&" ".repeat(2 + width.saturating_sub(columns(cell))));
            line.push_str(cell);
        }
        let end = columns(&line) + 2;
        for (index, note) in row.notes.iter().enumerate() {
            let fits = end + columns(note) <= self.width;
            if index > 0 || !fits {
                lines.push(std::mem::take(&mut line));
            }
            pad(&mut line, if fits { end } else { 4 });
            line.push_str(note);
        }
        lines.push(line);
        lines
    }
}

fn optional(value: Option<u64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), number)
}

fn growth(value: Option<i64>) -> String {
    match value {
        None => UNKNOWN.to_owned(),
        Some(0) => "0".to_owned(),
        Some(growth) if growth > 0 => format!("+{}", number(growth.unsigned_abs())),
        Some(growth) => format!("-{}", number(growth.unsigned_abs())),
    }
}

/// Formats the age of a queue as a lower bound.
fn age(queue: &QueueStatus) -> String {
    queue.not_empty_for_seconds.map_or_else(|| UNKNOWN.to_owned(), |seconds| format!("≥ {}", time(seconds)))
}

/// Formats seconds as `9m55s`.
fn time(seconds: u64) -> String {
    let milliseconds = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    duration(milliseconds).unwrap_or_else(|| "0s".to_owned())
}

/// Describes a problem.
fn problem(problem: &Problem) -> String {
    let state = problem.state().as_str();
    let what = match problem {
        Problem::Missing { .. } => "does not exist".to_owned(),
        Problem::Unavailable { queue_state, node: Some(node), .. } => format!("{queue_state}, node {node}"),
        Problem::Unavailable { queue_state, node: None, .. } => queue_state.clone(),
        Problem::Depth { limit, .. } => format!("depth {}", number(limit.unsigned_abs())),
        Problem::Growth { limit, within_seconds, .. } => {
            format!("+{} in {}", number(limit.unsigned_abs()), time(*within_seconds))
        }
        Problem::Age { limit_seconds, .. } => format!("age {}", time(*limit_seconds)),
        Problem::NoConsumers { limit_seconds, .. } => format!("no consumers, not empty for {}", time(*limit_seconds)),
    };
    super::super::style::clean(&format!("{state}: {what}"))
}
