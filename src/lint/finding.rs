//! Findings: the results of lint rules, with their positions. `render` renders them as diagnostics.

use crate::model::ObjectId;
use crate::spec::{Diagnostic, Location, Severity};

/// The maximum number of related positions of a finding about many objects.
const MOST_RELATED: usize = 3;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The objects that it is about; empty if it is only about the text of the spec.
    pub objects: Vec<ObjectId>,
    /// The message: one sentence without a period and without the object.
    pub text: String,
    /// The position.
    pub at: Location,
    /// Related positions with their labels.
    pub also: Vec<(Location, String)>,
    /// The hint that explains the fix.
    pub hint: Option<String>,
}

impl Finding {
    /// Replaces the severity.
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Sets the hint.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a related position.
    pub(super) fn also(mut self, at: Location, label: impl Into<String>) -> Self {
        self.also.push((at, label.into()));
        self
    }

    /// Adds the objects of another finding with the same message.
    pub(super) fn merge(&mut self, other: &Self) {
        let new = other.objects.iter().filter(|object| !self.objects.contains(object));
        self.objects.extend(new.cloned().collect::<Vec<_>>());
        self.also.extend(other.also.iter().cloned());
        self.also.sort();
        self.also.dedup();
        self.also.truncate(MOST_RELATED);
    }

    /// Returns the message with the objects: ``queue `orders` and 2 more: …``.
    pub fn message(&self) -> String {
        let first = self.objects.first().map_or_else(String::new, describe);
        let objects = match &self.objects[..] {
            [] | [_] => first,
            [_, second] => format!("{first} and {}", describe(second)),
            [_, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        if objects.is_empty() { self.text.clone() } else { format!("{objects}: {}", self.text) }
    }
}

fn describe(object: &ObjectId) -> String {
    match object {
        ObjectId::Vhost => "the vhost".to_owned(),
        ObjectId::Binding(binding) => format!("binding `{}`", binding),
        ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) | ObjectId::Record(_) => {
            format!("{} `{}`", object.kind(), object.name().unwrap_or_default())
        }
    }
}

impl From<&Finding> for Diagnostic {
    fn from(finding: &Finding) -> Self {
        let diagnostic = Self::error(finding.rule, finding.message(), finding.at).maybe_hint(finding.hint.clone());
        let with_positions = finding.also.iter().fold(diagnostic, |it, (at, label)| it.also(*at, label));
        Self { severity: finding.severity, ..with_positions }
    }
}
