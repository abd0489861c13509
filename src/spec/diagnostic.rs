//! Defines diagnostics, which are the problems in a spec with their positions. `render::diagnostics` renders them.

use super::node::Location;
use super::problem::SECRET_AS_TEXT;
use crate::model::printable::{clean, mask_passwords};
use std::collections::BTreeSet;
use std::fmt;

/// The codes that suppress every other diagnostic at the same position, because there is no value to check.
const UNKNOWN_VALUE: &[&str] = &["encoding", "syntax", "variable", "too-large"];

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The spec cannot be used.
    Error,
    /// The spec can be used, but probably contains a mistake.
    Warning,
    /// The spec can be used. The diagnostic contains useful information.
    Info,
}

impl Severity {
    /// Returns the name of the severity, which precedes the message: `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A problem in a spec. Its strings can quote the spec, so the constructors escape hidden characters and mask
/// passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The code of the problem, for example `unknown-key`. Codes are stable, because tests and tools rely on them.
    pub code: &'static str,
    /// The message: one sentence without a period.
    pub message: String,
    /// The position of the problem.
    pub primary: Location,
    /// A label of a few words at `primary`; may be empty.
    pub label: String,
    /// Related positions with their labels.
    pub secondary: Vec<(Location, String)>,
    /// A suggestion for fixing the problem, if there is one.
    pub hint: Option<String>,
    /// The position of a value that might be a secret, which is masked in all excerpts.
    pub secret: Option<Location>,
}

impl Diagnostic {
    /// Creates an error at a position.
    pub fn error(code: &'static str, message: impl Into<String>, primary: Location) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: sanitize(&message.into()),
            primary,
            label: String::new(),
            secondary: Vec::new(),
            hint: None,
            secret: (code == SECRET_AS_TEXT).then_some(primary),
        }
    }

    /// Sets the label of the primary position.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = sanitize(&label.into());
        self
    }

    /// Adds a related position, unless it equals the primary position.
    pub fn also(mut self, at: Location, label: impl Into<String>) -> Self {
        if at != self.primary {
            self.secondary.push((at, sanitize(&label.into())));
        }
        self
    }

    /// Sets the position of a value that might be a secret.
    pub(super) fn masking(mut self, secret: Location) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sets the hint.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// Sets the hint, if there is one.
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.map(|hint| sanitize(&hint)).or(self.hint);
        self
    }
}

/// Escapes hidden characters and masks passwords in a string that can quote the spec.
fn sanitize(text: &str) -> String {
    clean(&mask_passwords(text))
}

/// A collection of diagnostics. [`Self::or_value`] sorts them by file and line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic, unless the same diagnostic was added recently. A mistake in a value with an anchor is found
    /// again at each alias.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let is_repeated = |known: &Diagnostic| {
            known.primary == diagnostic.primary && known.code == diagnostic.code && known.message == diagnostic.message
        };
        // Repeats come from consecutive aliases, so checking the last few diagnostics is sufficient. Checking all
        // diagnostics would take quadratic time.
        if !self.0.iter().rev().take(64).any(is_repeated) {
            self.0.push(diagnostic);
        }
    }

    /// Removes all diagnostics at a position. Used for the value of an invalid key.
    pub(crate) fn remove_at(&mut self, at: Location) {
        self.0.retain(|it| it.primary != at);
    }

    /// Adds all diagnostics from another collection.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Merges two collections. Sorts and deduplicates the diagnostics as [`Self::or_value`] does.
    pub fn and(mut self, others: Self) -> Self {
        self.extend(others);
        self.or_value(()).err().unwrap_or_default()
    }

    /// Returns the number of diagnostics.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes repeated diagnostics among those at index `from` and later. A diagnostic is repeated if an earlier one
    /// has the same code and position, and if the position is in one of the byte `ranges`.
    pub(crate) fn dedup_by_position(&mut self, from: usize, ranges: &[(usize, usize)]) {
        if ranges.is_empty() {
            return;
        }
        let mut seen = BTreeSet::new();
        let rest = self.0.split_off(from);
        let is_inside = |at: Location| ranges.iter().any(|(start, end)| (*start..=*end).contains(&at.start));
        self.0.extend(rest.into_iter().filter(|it| !is_inside(it.primary) || seen.insert((it.code, it.primary))));
    }

    /// Returns true if there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the diagnostics.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Returns true if any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the value if there are no diagnostics. Otherwise, returns the diagnostics in order, without duplicates
    /// and without the consequences of unreadable values.
    pub fn or_value<T>(mut self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            return Ok(value);
        }
        // If a value could not be read, other diagnostics for this value are consequences, not separate mistakes.
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

/// Writes one line for each diagnostic, for logs: `3:5: error[unknown-key]: …`. Users see the output of
/// `render::diagnostics`.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Diagnostic { severity, code, message, primary, .. } in &self.0 {
            writeln!(f, "{}:{}: {}[{code}]: {message}", primary.line, primary.column, severity.as_str())?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
