//! Renders diagnostics as JSON, as GitHub workflow annotations, as Markdown, and as short text for plans.

use super::diagnostics::Grouped;
use super::markdown::inline;
use super::plan_github::annotate;
use super::style::{DIM, Painted, RED, YELLOW, clean, wrap};
use crate::model::printable::clean_json;
use crate::model::{BrokerVersion, Places};
use crate::plan::Source;
use crate::spec::{Diagnostic, Diagnostics, Location, Severity, SourceFile};
use serde_json::{Value, json};
use std::fmt::Write;

/// Renders all diagnostics as one JSON document. `version` is the RabbitMQ version that the diagnostics depend on, if
/// any.
pub fn json(diagnostics: &Diagnostics, files: &[SourceFile], version: Option<BrokerVersion>) -> String {
    let json_location = |at: Location| {
        let (source, end) = (source(at, files), end(at, files));
        json!({
            "file": source.file,
            "line": source.line,
            "column": source.column,
            "endLine": end.0,
            "endColumn": end.1,
        })
    };
    let one = |diagnostic: &Diagnostic| {
        json!({
            "severity": diagnostic.severity.as_str(),
            "code": diagnostic.code,
            "message": diagnostic.message,
            "at": json_location(diagnostic.primary),
            "label": diagnostic.label,
            "also": diagnostic
                .secondary
                .iter()
                .map(|(at, label)| json!({ "at": json_location(*at), "label": label }))
                .collect::<Vec<Value>>(),
            "hint": diagnostic.hint,
        })
    };
    let all: Vec<Value> = diagnostics.iter().map(one).collect();
    let mut document = json!({ "formatVersion": 1, "diagnostics": all });
    if let Some(version) = version {
        document["brokerVersion"] = json!(version);
    }
    clean_json(format!("{document:#}\n"))
}

/// Renders each diagnostic on a few lines, without an excerpt of the spec: the message with its location, and the hint.
pub fn lines(diagnostics: &Diagnostics, files: &[SourceFile], width: usize) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter() {
        let word = format!("{}[{}]:", diagnostic.severity.as_str(), diagnostic.code);
        let style = match diagnostic.severity {
            Severity::Error => RED,
            Severity::Warning => YELLOW,
            Severity::Info => DIM,
        };
        let at = clean(&format_location(diagnostic.primary, files));
        let sentence = wrap_text(&format!("{word} {} {at}", clean(&diagnostic.message)), "  ", width);
        let sentence = sentence.replacen(&word, &Painted(style, &word).to_string(), 1);
        let _ = writeln!(text, "{sentence}");
        if let Some(hint) = &diagnostic.hint {
            let hint = wrap_text(&format!("  hint: {}", clean(hint)), "    ", width);
            let _ = writeln!(text, "{}", hint.replacen("hint:", &Painted(YELLOW, "hint:").to_string(), 1));
        }
    }
    text
}

/// Wraps a string between words. Indents the lines after the first line by `indent`.
fn wrap_text(text: &str, indent: &str, width: usize) -> String {
    let start: String = text.chars().take_while(|c| *c == ' ').collect();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    format!("{start}{}", wrap(&words, " ", width.saturating_sub(indent.len())).join(&format!("\n{indent}")))
}

/// Renders diagnostics as list items for a pull-request comment.
pub fn markdown(diagnostics: &Diagnostics, files: &[SourceFile]) -> Vec<String> {
    let line = |diagnostic: &Diagnostic| {
        let (at, message) = (inline(&format_location(diagnostic.primary, files)), inline(&diagnostic.message));
        let hint = diagnostic.hint.as_ref().map_or_else(String::new, |hint| format!(" → {}", inline(hint)));
        format!("- **{}** {at}: {message}{hint}", diagnostic.code)
    };
    diagnostics.iter().map(line).collect()
}

/// Formats a location, such as `topology.yaml:12`.
fn format_location(at: Location, files: &[SourceFile]) -> String {
    let source = source(at, files);
    format!("{}:{}", source.file, source.line)
}

/// Renders an annotation for each diagnostic, at its line. If there are many diagnostics of the same kind, renders
/// annotations for the first ones, and one annotation with the number of remaining diagnostics.
pub fn github(diagnostics: &Diagnostics, files: &[SourceFile]) -> String {
    let mut text = String::new();
    let grouped = Grouped::new(diagnostics);
    for diagnostic in &grouped.full {
        let mut lines = vec![diagnostic.message.clone()];
        // An annotation has only one location, so the message contains the other locations.
        let others = diagnostic.secondary.iter();
        lines.extend(others.map(|(at, label)| format!("{}: {label}", format_location(*at, files))));
        lines.extend(diagnostic.hint.clone());
        let at = (source(diagnostic.primary, files), end(diagnostic.primary, files));
        annotate(&mut text, level(diagnostic.severity), Some((&at.0, Some(at.1))), diagnostic.code, &lines.join("\n"));
    }
    for (diagnostic, sentence) in grouped.rest() {
        let at = source(diagnostic.primary, files);
        annotate(&mut text, level(diagnostic.severity), Some((&at, None)), diagnostic.code, &sentence);
    }
    text
}

/// Returns the level of the workflow annotation for a severity.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    }
}

/// Returns the line and the column of the first character after a location. Both start at 1.
fn end(at: Location, files: &[SourceFile]) -> (usize, usize) {
    let text = files.get(at.file).and_then(|file| file.text.get(at.start..at.end)).unwrap_or_default();
    match text.rsplit_once('\n') {
        Some((before, last)) => (at.line + before.matches('\n').count() + 1, last.chars().count() + 1),
        None => (at.line, at.column + text.chars().count()),
    }
}

fn source(at: Location, files: &[SourceFile]) -> Source {
    let file = files.get(at.file).map(|file| file.name.clone()).unwrap_or_default();
    Source { file, line: at.line, column: at.column, part_of: None, places: Places::new() }
}
