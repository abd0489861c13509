//! Diagnostics for machines: JSON, and workflow annotations.

use super::plan_github::annotate;
use crate::plan::Source;
use crate::spec::{Diagnostic, Diagnostics, Location, Severity, SourceFile};
use serde_json::{Value, json};

/// One document with all of them.
pub fn json(diagnostics: &Diagnostics, files: &[SourceFile]) -> String {
    let place = |at: Location| {
        let source = source(at, files);
        json!({ "file": source.file, "line": source.line, "column": source.column })
    };
    let one = |diagnostic: &Diagnostic| {
        json!({
            "severity": word(diagnostic.severity),
            "code": diagnostic.code,
            "message": diagnostic.message,
            "at": place(diagnostic.primary),
            "label": diagnostic.label,
            "also": diagnostic
                .secondary
                .iter()
                .map(|(at, label)| json!({ "at": place(*at), "label": label }))
                .collect::<Vec<Value>>(),
            "hint": diagnostic.hint,
        })
    };
    let all: Vec<Value> = diagnostics.iter().map(one).collect();
    format!("{:#}\n", json!({ "formatVersion": 1, "diagnostics": all }))
}

/// One annotation each, at its line.
pub fn github(diagnostics: &Diagnostics, files: &[SourceFile]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter() {
        let hint = diagnostic.hint.as_ref().map_or_else(String::new, |hint| format!("\n{hint}"));
        let message = format!("{}{hint}", diagnostic.message);
        let at = source(diagnostic.primary, files);
        annotate(&mut text, word(diagnostic.severity), Some(&at), diagnostic.code, &message);
    }
    text
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn source(at: Location, files: &[SourceFile]) -> Source {
    let file = files.get(at.file).map(|file| file.name.clone()).unwrap_or_default();
    Source { file, line: at.line, column: at.column, part_of: None }
}
