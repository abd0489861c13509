//! Renders results as a pull-request comment: the case counts, the differences and details of failed cases, and the
//! coverage. The details are in collapsible sections.

use super::details::details;
use super::{coverage, sentence, summary};
use crate::cases::{CaseOutcome, CoverageReport, FileReport};
use crate::render::markdown::{fence, inline, with_code};
use std::fmt::Write;

/// The maximum number of failed cases with details. GitHub rejects comments with more than 65,536 characters.
const MAX_DETAILED: usize = 10;

/// Renders the comment.
pub fn markdown(reports: &[FileReport], coverages: &[CoverageReport]) -> String {
    let mut out = format!("### topo test: {}", summary(reports));
    let mut failed = 0;
    for report in reports {
        for result in &report.results {
            let CaseOutcome::Failed { mismatches, simulated } = &result.outcome else { continue };
            failed += 1;
            let place = format!("{}:{}, {}", report.file, result.at.line, report.target());
            let _ = writeln!(out, "\n- **{}** ({})", inline(&result.name), inline(&place));
            for mismatch in mismatches {
                let _ = writeln!(out, "  - {}", with_code(&sentence(mismatch)));
            }
            if failed <= MAX_DETAILED {
                let details = details(report, mismatches, simulated);
                let fence = fence(&details);
                let indented = details.lines().map(|line| format!("  {line}\n")).collect::<String>();
                let _ = writeln!(
                    out,
                    "\n  <details><summary>Details</summary>\n\n  {fence}text\n{indented}  {fence}\n\n  </details>"
                );
            }
        }
    }
    coverages.iter().for_each(|report| coverage::markdown(&mut out, report));
    out
}
