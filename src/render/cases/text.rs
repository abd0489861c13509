//! Renders results as text: a line for each case, and the differences and events of a failed case.

use super::events::events;
use super::margin::with_position;
use super::{Counts, sentence};
use crate::cases::{CaseOutcome, CaseResult, FileReport, LiveResult};
use crate::model::count::{count, number};
use crate::model::printable::clean;
use crate::render::style::{BOLD, GREEN, Painted, RED, YELLOW, fold};
use std::fmt::Write;

/// Renders the results of a test file.
pub fn text(report: &FileReport, width: usize) -> String {
    let mut text = String::new();
    let live = report.live.as_ref().map_or_else(String::new, |live| match live.time_scale {
        1 => format!(" at {}", clean(&live.url)),
        scale => format!(" at {} · times divided by {}", clean(&live.url), number(scale)),
    });
    let heading = format!(
        "{} · spec {} · vhost {} · {}{live}",
        clean(&report.file),
        clean(&report.specs),
        clean(report.vhost.as_str()),
        clean(&report.target())
    );
    let _ = writeln!(text, "{}", Painted(BOLD, fold(&heading, width)));
    for result in &report.results {
        match &result.outcome {
            CaseOutcome::Passed => line(&mut text, Painted(GREEN, "pass"), &clean(&result.name), "", width),
            CaseOutcome::Skipped => line(&mut text, Painted(YELLOW, "skip"), &clean(&result.name), "", width),
            CaseOutcome::Failed { mismatches, simulated } => {
                let at = format!("{}:{}", clean(&report.file), result.at.line);
                line(&mut text, Painted(RED, "FAIL"), &clean(&result.name), &at, width);
                for mismatch in mismatches {
                    let at = mismatch.at.and_then(|at| report.spec_position(at)).unwrap_or_default();
                    indented(&mut text, &sentence(mismatch), &at, width);
                    if let Some(because) = &mismatch.because {
                        indented(&mut text, &clean(because), "", width);
                    }
                }
                events(&mut text, simulated, width);
            }
        }
        if let Some(LiveResult::NotRun(reason)) = &result.live {
            let what = if result.outcome == CaseOutcome::Skipped { "skipped" } else { "not run on the broker" };
            indented(&mut text, &format!("{what}: {}", clean(reason)), "", width);
        }
    }
    text
}

/// Renders the case counts, such as `12 cases: 11 passed, 1 failed`.
pub fn summary(reports: &[FileReport]) -> String {
    let counts = Counts::of(reports);
    let part = |number_of: u64, word: &str| (number_of > 0).then(|| format!("{} {word}", number(number_of)));
    let parts = [part(counts.passed, "passed"), part(counts.failed, "failed"), part(counts.skipped, "skipped")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let results = reports.iter().filter(|report| report.live.is_some()).flat_map(|report| &report.results);
    let is_offline =
        |it: &&CaseResult| it.outcome != CaseOutcome::Skipped && matches!(it.live, Some(LiveResult::NotRun(_)) | None);
    let offline = match results.filter(is_offline).count() as u64 {
        0 => String::new(),
        offline => format!(" ({} only offline)", number(offline)),
    };
    format!("{}: {}{offline}\n", count(counts.all(), "case"), parts.join(", "))
}

/// Writes the result, the name and the position of a case.
fn line(text: &mut String, result: Painted<&str>, name: &str, at: &str, width: usize) {
    let _ = writeln!(text, "  {result} {}", with_position(name, at, INDENT, width));
}

/// Writes an indented sentence below a case.
fn indented(text: &mut String, sentence: &str, at: &str, width: usize) {
    let _ = writeln!(text, "{}{}", " ".repeat(INDENT), with_position(sentence, at, INDENT, width));
}

/// The number of columns before the name of a case.
const INDENT: usize = 7;
