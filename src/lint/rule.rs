//! A rule: plain data and one function.

use super::{Finding, Subject};
use crate::model::ObjectId;
use crate::spec::{Location, Severity};

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, `lower-case-with-dashes`; stable, for tests, tools and people.
    pub name: &'static str,
    /// How bad what it finds is, as a rule; a version can make it better or worse.
    pub severity: Severity,
    /// What else a finding of it can be, the worst first.
    pub sometimes: &'static [Severity],
    /// Whether it is silent until a spec or a flag gives it a level: a matter of taste, or of what no spec says.
    pub is_optional: bool,
    /// What it finds, in one sentence without a full stop.
    pub summary: &'static str,
    /// All that it finds.
    pub check: fn(&Subject<'_>) -> Vec<Finding>,
    /// Its page, in Markdown; the examples on it are its tests.
    pub page: &'static str,
}

impl Rule {
    /// How bad what it finds is, for people: `warning`, `warning, sometimes info` or `off (info)`.
    pub fn level(&self) -> String {
        let sometimes: Vec<&str> = self.sometimes.iter().map(|severity| severity.as_str()).collect();
        let severity = match sometimes.is_empty() {
            true => self.severity.as_str().to_owned(),
            false => format!("{}, sometimes {}", self.severity.as_str(), sometimes.join(" or ")),
        };
        if self.is_optional { format!("off ({severity})") } else { severity }
    }

    /// Something found: about that object, at the place where the setting is written, which is an argument, a property
    /// or a policy's key in RabbitMQ's words.
    pub(super) fn finding(
        &self,
        subject: &Subject<'_>,
        object: &ObjectId,
        setting: &str,
        text: impl Into<String>,
    ) -> Finding {
        let place = subject.place(object, setting);
        Finding {
            rule: self.name,
            severity: self.severity,
            objects: vec![object.clone()],
            text: text.into(),
            at: place.at,
            also: place.also,
            hint: None,
        }
    }

    /// Something found about an object, at a place that is not a setting of its own.
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
