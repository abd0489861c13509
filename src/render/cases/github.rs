//! Renders failed cases as GitHub workflow annotations.

use super::{coverage, sentence};
use crate::cases::{CaseOutcome, CoverageReport, FileReport};
use crate::model::{Places, Source};
use crate::render::plan_github::annotate;

/// Renders an annotation for each failed case, at its position in the test file, and for each part of the routing that
/// is not covered.
pub fn github(reports: &[FileReport], coverages: &[CoverageReport]) -> String {
    let mut text = String::new();
    for report in reports {
        for result in &report.results {
            if let CaseOutcome::Failed { mismatches, .. } = &result.outcome {
                let sentences: Vec<String> = mismatches.iter().map(sentence).collect();
                let message = format!("{} ({}): {}", result.name, report.target(), sentences.join("; "));
                let at = Source {
                    file: report.file.clone(),
                    line: result.at.line,
                    column: result.at.column,
                    part_of: None,
                    places: Places::new(),
                };
                annotate(&mut text, "error", Some((&at, None)), "topo test", &message);
            }
        }
    }
    coverages.iter().for_each(|report| coverage::github(&mut text, report));
    text
}
