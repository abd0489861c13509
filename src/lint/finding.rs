//! Findings: what a rule found, and where. Rendering them is left to `render`, which treats them as diagnostics.

use crate::model::ObjectId;
use crate::spec::{Diagnostic, Location, Severity};

/// So many related places are shown of a finding about many objects.
const MOST_PLACES: usize = 3;

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about; empty where that is the text of the spec alone.
    pub objects: Vec<ObjectId>,
    /// What is wrong, in one sentence without a full stop, and without the object.
    pub text: String,
    /// Where.
    pub at: Location,
    /// Other places that have to do with it.
    pub also: Vec<(Location, String)>,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Finding {
    /// As bad as that instead.
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// With the way to mend it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With another place.
    pub(super) fn also(mut self, at: Location, label: impl Into<String>) -> Self {
        self.also.push((at, label.into()));
        self
    }

    /// The same about more objects.
    pub(super) fn merge(&mut self, other: &Self) {
        let new = other.objects.iter().filter(|object| !self.objects.contains(object));
        self.objects.extend(new.cloned().collect::<Vec<_>>());
        self.also.extend(other.also.iter().cloned());
        self.also.sort();
        self.also.dedup();
        self.also.truncate(MOST_PLACES);
    }

    /// The sentence with the object: ``queue `orders` and 2 more: …``.
    pub fn message(&self) -> String {
        let first = self.objects.first().map_or_else(String::new, shown);
        let who = match &self.objects[..] {
            [] | [_] => first,
            [_, second] => format!("{first} and {}", shown(second)),
            [_, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        if who.is_empty() { self.text.clone() } else { format!("{who}: {}", self.text) }
    }
}

fn shown(object: &ObjectId) -> String {
    match object {
        ObjectId::Vhost => "the vhost".to_owned(),
        ObjectId::Binding(binding) => format!("binding `{}`", binding),
        ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) => {
            format!("{} `{}`", object.kind(), object.name().unwrap_or_default())
        }
    }
}

impl From<&Finding> for Diagnostic {
    fn from(finding: &Finding) -> Self {
        let diagnostic = Self::error(finding.rule, finding.message(), finding.at).maybe_hint(finding.hint.clone());
        let with_places = finding.also.iter().fold(diagnostic, |it, (at, label)| it.also(*at, label));
        Self { severity: finding.severity, ..with_places }
    }
}
