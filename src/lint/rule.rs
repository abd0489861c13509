//! A lint rule: plain data and one function.

use super::{Finding, Subject};
use crate::model::ObjectId;
use crate::spec::{Location, Severity};

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, `lower-case-with-dashes`; stable, for tests, tools and users.
    pub name: &'static str,
    /// The default severity of its findings; it can differ by version.
    pub severity: Severity,
    /// Other severities of its findings, the highest first.
    pub sometimes: &'static [Severity],
    /// True if the rule is off until a spec or a flag sets its level: it is a matter of style, or depends on facts
    /// outside the spec.
    pub is_optional: bool,
    /// Its summary: one sentence without a period.
    pub summary: &'static str,
    /// Returns all its findings.
    pub check: fn(&Subject<'_>) -> Vec<Finding>,
    /// Its page, in Markdown; the examples on it are its tests.
    pub page: &'static str,
}

impl Rule {
    /// Returns its severity for the list of rules: `warning`, `warning, sometimes info` or `off (info)`.
    pub fn level(&self) -> String {
        let sometimes: Vec<&str> = self.sometimes.iter().map(|severity| severity.as_str()).collect();
        let severity = match sometimes.is_empty() {
            true => self.severity.as_str().to_owned(),
            false => format!("{}, sometimes {}", self.severity.as_str(), sometimes.join(" or ")),
        };
        if self.is_optional { format!("off ({severity})") } else { severity }
    }

    /// Creates a finding about an object, at the position of a setting: an argument, a property or a policy key, in
    /// RabbitMQ's spelling.
    pub(super) fn finding(
        &self,
        subject: &Subject<'_>,
        object: &ObjectId,
        setting: &str,
        text: impl Into<String>,
    ) -> Finding {
        let position = subject.position(object, setting);
        Finding {
            rule: self.name,
            severity: self.severity,
            objects: vec![object.clone()],
            text: text.into(),
            at: position.at,
            also: position.also,
            hint: None,
        }
    }

    /// Creates a finding about an object, at a position that is not one of its settings.
    pub(super) fn found(&self, object: ObjectId, at: Location, text: impl Into<String>) -> Finding {
        Finding {
            rule: self.name,
            severity: self.severity,
            objects: vec![object],
            text: text.into(),
            at,
            also: Vec::new(),
            hint: None,
        }
    }
}
