//! Renders results as text: a line for each case, and the differences and events of a failed case.

use super::events::events;
use super::{Counts, sentence};
use crate::cases::{CaseOutcome, CaseResult, FileReport};
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::render::style::{BOLD, DIM, GREEN, Painted, RED, YELLOW, columns, fold};
use std::fmt::Write;

/// Renders the results of a test file.
pub fn text(report: &FileReport, width: usize) -> String {
    let mut text = String::new();
    let heading = format!(
        "{} · spec {} · vhost {} · RabbitMQ {}",
        clean(&report.file),
        clean(&report.specs),
        clean(report.vhost.as_str()),
        report.version
    );
    let _ = writeln!(text, "{}", Painted(BOLD, fold(&heading, width)));
    for result in &report.results {
        match &result.outcome {
            CaseOutcome::Passed => {
                line(&mut text, &Painted(GREEN, "pass").to_string(), &clean(&result.name), "", width)
            }
            CaseOutcome::Skipped => {
                line(&mut text, &Painted(YELLOW, "skip").to_string(), &clean(&result.name), "", width)
            }
            CaseOutcome::Failed { mismatches, simulated } => {
                let at = place(&report.file, result);
                line(&mut text, &Painted(RED, "FAIL").to_string(), &clean(&result.name), &at, width);
                for mismatch in mismatches {
                    let at = mismatch.at.and_then(|at| report.spec_position(at)).unwrap_or_default();
                    let folded = fold(&sentence(mismatch), width.saturating_sub(8));
                    let mut lines = folded.lines();
                    line_at(&mut text, lines.next().unwrap_or_default(), &at, width);
                    lines.for_each(|rest| line_at(&mut text, rest, "", width));
                    if let Some(because) = &mismatch.because {
                        line_at(&mut text, &fold(&clean(because), width.saturating_sub(8)), "", width);
                    }
                }
                events(&mut text, simulated, width);
            }
        }
    }
    text
}

/// Renders the numbers of cases: `12 cases: 11 passed, 1 failed`.
pub fn summary(reports: &[FileReport]) -> String {
    let counts = Counts::of(reports);
    let part = |number_of: u64, word: &str| (number_of > 0).then(|| format!("{} {word}", number(number_of)));
    let parts = [part(counts.passed, "passed"), part(counts.failed, "failed"), part(counts.skipped, "skipped")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}: {}\n", count(counts.all(), "case"), parts.join(", "))
}

fn place(file: &str, result: &CaseResult) -> String {
    format!("{}:{}", clean(file), result.at.line)
}

/// Writes a line of a case, with a position at the right margin.
fn line(text: &mut String, word: &str, name: &str, at: &str, width: usize) {
    let used = 7 + columns(name);
    let _ = writeln!(text, "  {word} {name}{}", right(used, at, width));
}

/// Writes a line of a failed case.
fn line_at(text: &mut String, sentence: &str, at: &str, width: usize) {
    let _ = writeln!(text, "       {sentence}{}", right(7 + columns(sentence), at, width));
}

/// Returns a position for the right margin, or in parentheses without room for it.
fn right(used: usize, at: &str, width: usize) -> String {
    if at.is_empty() {
        return String::new();
    }
    match width.checked_sub(used + columns(at)).filter(|room| *room >= 2) {
        Some(room) => format!("{}{}", " ".repeat(room), Painted(DIM, at)),
        None => format!(" {}", Painted(DIM, format!("({at})"))),
    }
}
