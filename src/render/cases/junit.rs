//! Renders results as JUnit XML, which CI servers read.

use super::details::details;
use super::{coverage, sentence};
use crate::cases::{CaseOutcome, CaseResult, CoverageReport, FileReport, PartState};
use std::fmt::Write;

/// Renders a suite for each test file and version, and a suite for each coverage report.
pub fn junit(reports: &[FileReport], coverages: &[CoverageReport]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        let of = |is: fn(&CaseOutcome) -> bool| report.results.iter().filter(|result| is(&result.outcome)).count();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\">",
            escaped(&format!("{}, {}", report.file, report.target())),
            report.results.len(),
            of(|it| matches!(it, CaseOutcome::Failed { .. })),
            of(|it| matches!(it, CaseOutcome::Skipped)),
        );
        report.results.iter().for_each(|result| case(&mut text, report, result));
        text.push_str("  </testsuite>\n");
    }
    coverages.iter().for_each(|report| coverage_suite(&mut text, report));
    text.push_str("</testsuites>\n");
    text
}

/// Writes a suite with a test for each part of the routing that cases can cover. Reports an uncovered part as skipped
/// instead of failed, because `--fail-under` determines whether the run fails.
fn coverage_suite(text: &mut String, report: &CoverageReport) {
    let parts = report.coverage.parts.iter().filter(|part| part.state.is_counted());
    let _ = writeln!(
        text,
        "  <testsuite name=\"coverage, {}\" tests=\"{}\" failures=\"0\" errors=\"0\" skipped=\"{}\" time=\"0\">",
        escaped(&report.specs),
        parts.clone().count(),
        coverage::uncovered(report).count()
    );
    for part in parts {
        let name = escaped(&coverage::name(&part.part));
        let _ =
            write!(text, "    <testcase classname=\"{}\" name=\"{name}\" time=\"0\"", escaped(report.vhost.as_str()));
        match part.state {
            PartState::Covered | PartState::Redundant | PartState::Unreachable | PartState::Unknown => {
                text.push_str("/>\n")
            }
            PartState::Exercised | PartState::NotExercised => {
                let _ = writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(&coverage::state(part)));
            }
        }
    }
    text.push_str("  </testsuite>\n");
}

fn case(text: &mut String, report: &FileReport, result: &CaseResult) {
    let _ = write!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"0\"",
        escaped(report.vhost.as_str()),
        escaped(&result.name),
        escaped(&report.file),
        result.at.line
    );
    match &result.outcome {
        CaseOutcome::Passed => text.push_str("/>\n"),
        CaseOutcome::Skipped => text.push_str("><skipped/></testcase>\n"),
        CaseOutcome::Failed { mismatches, simulated } => {
            let first = mismatches.first().map(sentence).unwrap_or_default();
            let details = details(report, mismatches, simulated);
            let _ =
                writeln!(text, "><failure message=\"{}\">{}</failure></testcase>", escaped(&first), escaped(&details));
        }
    }
}

/// Escapes a string for XML 1.0, which does not permit most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1b}[0m"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;\u{fffd}[0m");
    }
}
