//! Defines lint rules and their findings. A rule consists of plain data and one function. A finding has the position of
//! its cause and can be converted to a diagnostic.

use super::Subject;
use super::effective::EffectiveQueue;
use crate::model::ObjectId;
use crate::spec::{Diagnostic, Location, Severity};

/// The maximum number of related positions in a merged finding.
const MAX_RELATED: usize = 3;

/// A result of a lint rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The objects that the finding concerns; empty if the finding concerns only the text of the spec.
    pub objects: Vec<ObjectId>,
    /// The message: one sentence without a period and without the objects.
    pub text: String,
    /// The position of the cause.
    pub at: Location,
    /// Related positions with their labels.
    pub also: Vec<(Location, String)>,
    /// The hint that explains how to fix the cause; `None` if the rule gives no hint.
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

    /// Adds the objects and the related positions of another finding with the same message.
    pub(super) fn merge(&mut self, other: &Self) {
        let new = other.objects.iter().filter(|object| !self.objects.contains(object));
        self.objects.extend(new.cloned().collect::<Vec<_>>());
        self.also.extend(other.also.iter().cloned());
        self.also.sort();
        self.also.dedup();
        self.also.truncate(MAX_RELATED);
    }

    /// Returns the message with the objects, such as ``queue `orders` and 2 more: …``.
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

/// A lint rule.
#[derive(Debug)]
pub struct Rule {
    /// The name in lower case with dashes. Names are stable, because tests, tools and users rely on them.
    pub name: &'static str,
    /// The default severity of a finding.
    pub severity: Severity,
    /// The other severities that a finding can have, highest first. The severity can depend on the RabbitMQ version or
    /// on the form of the setting.
    pub other_severities: &'static [Severity],
    /// True if the rule is off until a spec or a flag sets its level. Such a rule is a matter of style, or depends on
    /// facts that a spec does not contain.
    pub is_optional: bool,
    /// The summary: one sentence without a period.
    pub summary: &'static str,
    /// Returns all findings of the rule.
    pub check: fn(&Subject<'_>) -> Vec<Finding>,
    /// The documentation page of the rule, in Markdown. The examples on the page are the tests of the rule.
    pub page: &'static str,
}

impl Rule {
    /// Formats the severities for the list of rules, such as `warning`, `warning, sometimes info` or `off (info)`.
    pub fn level(&self) -> String {
        let others: Vec<&str> = self.other_severities.iter().map(|severity| severity.as_str()).collect();
        let severity = match others.is_empty() {
            true => self.severity.as_str().to_owned(),
            false => format!("{}, sometimes {}", self.severity.as_str(), others.join(" or ")),
        };
        if self.is_optional { format!("off ({severity})") } else { severity }
    }

    /// Creates a finding about an object, at the position of a setting. The setting is an argument, a property or a
    /// policy key, in RabbitMQ's spelling.
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

    /// Creates a finding about an object, at a given position.
    pub(super) fn finding_at(&self, object: ObjectId, at: Location, text: impl Into<String>) -> Finding {
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

impl Rule {
    /// Creates a finding about an effective setting of a queue, at the position of the queue argument or the policy key
    /// that sets the value. If the spec contains neither, the finding has the position of the queue's declaration or
    /// retries.
    pub(super) fn effective_finding(
        &self,
        subject: &Subject<'_>,
        queue: &EffectiveQueue<'_>,
        key: &str,
        text: impl Into<String>,
    ) -> Finding {
        let at_queue = self.finding(subject, &queue.id, &format!("x-{key}"), text);
        match queue.setting_from_policy(key) {
            // A policy that exists only on the broker has no position.
            Some((name, _)) if subject.expansion.topology.policies.contains_key(name) => {
                let position = subject.position(&ObjectId::Policy(name.clone()), key);
                let at = queue.declaration.map_or(at_queue.at, |declaration| declaration.at);
                Finding { at: position.at, also: vec![(at, "the policy applies here".to_owned())], ..at_queue }
            }
            Some(_) | None => at_queue,
        }
    }

    /// Creates a finding about a queue with known effective settings, at a given position.
    pub(super) fn queue_finding_at(
        &self,
        subject: &Subject<'_>,
        queue: &EffectiveQueue<'_>,
        at: Location,
        text: impl Into<String>,
    ) -> Finding {
        Finding { at, also: Vec::new(), ..self.finding(subject, &queue.id, "name", text) }
    }
}
