//! Renders results as JUnit XML, which CI servers read.

use super::sentence;
use crate::cases::{CaseOutcome, CaseResult, FileReport};
use std::fmt::Write;

/// Renders the results of all test files: a suite for each file and version.
pub fn junit(reports: &[FileReport]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        let of = |is: fn(&CaseOutcome) -> bool| report.results.iter().filter(|result| is(&result.outcome)).count();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\">",
            escaped(&format!("{}, RabbitMQ {}", report.file, report.version)),
            report.results.len(),
            of(|it| matches!(it, CaseOutcome::Failed { .. })),
            of(|it| matches!(it, CaseOutcome::Skipped)),
        );
        report.results.iter().for_each(|result| case(&mut text, report, result));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
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
        CaseOutcome::Failed { mismatches, .. } => {
            let sentences: Vec<String> = mismatches.iter().map(sentence).collect();
            let _ = writeln!(
                text,
                "><failure message=\"{}\">{}</failure></testcase>",
                escaped(sentences.first().map_or("", String::as_str)),
                escaped(&sentences.join("\n"))
            );
        }
    }
}

/// Escapes a text for XML 1.0, which does not permit most control characters.
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
    fn texts_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1b}[0m"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;\u{fffd}[0m");
    }
}
