//! Diagnostics: what is wrong with a spec, and where. Rendering them is left to `render::diagnostics`.

use super::position::Location;
use crate::model::printable::clean;
use std::collections::BTreeSet;
use std::fmt;

/// The codes after which nothing else is said of the same place: there is no value to judge.
const UNKNOWN_VALUE: &[&str] = &["encoding", "syntax", "variable", "too-large"];

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The spec cannot be used.
    Error,
    /// It can be used, and is probably not what was meant.
    Warning,
    /// Good to know.
    Info,
}

impl Severity {
    /// The word for it, as it stands before the sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One thing that is wrong. Its sentences name what a spec holds: they are clean from the moment they are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A short word for its kind, for example `unknown-key`; stable, for tests and tools.
    pub code: &'static str,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where.
    pub primary: Location,
    /// What stands at `primary`, in a few words; may be empty.
    pub label: String,
    /// Other places that have to do with it.
    pub secondary: Vec<(Location, String)>,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, message: impl Into<String>, primary: Location) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: clean(&message.into()),
            primary,
            label: String::new(),
            secondary: Vec::new(),
            hint: None,
        }
    }

    /// With a few words under the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = clean(&label.into());
        self
    }

    /// With another place; the primary one again adds nothing.
    pub fn also(mut self, at: Location, label: impl Into<String>) -> Self {
        if at != self.primary {
            self.secondary.push((at, clean(&label.into())));
        }
        self
    }

    /// With the way to mend it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// With the way to mend it, if one is known.
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.map(|hint| clean(&hint)).or(self.hint);
        self
    }
}

/// Everything that is wrong, in the order of the files and the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. The same sentence about the same place is kept once: an anchor's mistake shows up at each use.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let is_repeated = |known: &Diagnostic| {
            known.primary == diagnostic.primary && known.code == diagnostic.code && known.message == diagnostic.message
        };
        // Repeats come from one alias after another, so the last few are enough; all would be quadratic.
        if !self.0.iter().rev().take(64).any(is_repeated) {
            self.0.push(diagnostic);
        }
    }

    /// Takes back what was said of the value at a place, because its key turned out to be wrong.
    pub(crate) fn take_back(&mut self, at: Location) {
        self.0.retain(|it| it.primary != at);
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// These and others, in order.
    pub fn and(mut self, others: Self) -> Self {
        self.extend(others);
        self.or_value(()).err().unwrap_or_default()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The value when nothing is wrong, else all that is, in order.
    pub fn or_value<T>(mut self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            return Ok(value);
        }
        // What is wrong with a value that could not be made out is nobody's mistake.
        let start = |it: &Diagnostic| (it.primary.file, it.primary.start);
        let unknown: BTreeSet<(usize, usize)> =
            self.0.iter().filter(|it| UNKNOWN_VALUE.contains(&it.code)).map(start).collect();
        self.0.retain(|it| UNKNOWN_VALUE.contains(&it.code) || !unknown.contains(&start(it)));
        self.0.sort_by(|a, b| (a.primary, a.code).cmp(&(b.primary, b.code)));
        self.0.dedup_by(|a, b| a.primary == b.primary && a.code == b.code && a.message == b.message);
        Err(self)
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A line each, for logs: `3:5: error[unknown-key]: …`. People get `render::diagnostics`.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Diagnostic { severity, code, message, primary, .. } in &self.0 {
            writeln!(f, "{}:{}: {}[{code}]: {message}", primary.line, primary.column, severity.as_str())?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
