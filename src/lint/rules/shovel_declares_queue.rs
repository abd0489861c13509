//! Reports shovels whose source or destination is an undeclared object in the same vhost. A shovel declares a missing
//! queue when it connects, with the default queue type of the vhost (3.8 to 4.3). If the source exchange is missing,
//! the shovel does not start. If the destination exchange is missing, the shovel fails on the first message.

use crate::lint::{Finding, Rule, Subject};
use crate::model::record_kinds::{DESTINATION, RecordField, SOURCE};
use crate::model::{AmqpUri, ArgumentValue, ExchangeName, ObjectId, QueueName, Record, RecordKind};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "shovel-declares-queue",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a shovel uses a queue or an exchange of this vhost that the spec does not declare",
    check,
    page: include_str!("shovel_declares_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, shovel) in subject.spec.records.iter().filter(|(id, _)| id.kind == RecordKind::Shovel) {
        for group in [SOURCE, DESTINATION] {
            let end = End { shovel: &shovel.record, group };
            if !end.is_in(subject.spec.vhost.value.as_str()) || end.is_true("predeclared") {
                continue;
            }
            let id = ObjectId::Record(id.clone());
            if let Some((field, name)) = end.text("queue").filter(|(_, name)| !has_queue(subject, name)) {
                let text =
                    format!("the spec does not declare queue `{name}`: the shovel declares a missing queue itself");
                let hint = "declare the queue, or declare it with `external: true` if it belongs to another spec";
                findings.push(RULE.finding(subject, &id, field, text).hint(hint));
            }
            if let Some((field, name)) = end.text("exchange").filter(|(_, name)| !has_exchange(subject, name)) {
                let text = format!(
                    "the spec does not declare exchange `{name}`: the shovel fails if the exchange does not exist"
                );
                let hint = "declare the exchange, or declare it with `external: true` if it belongs to another spec";
                findings.push(RULE.finding(subject, &id, field, text).hint(hint));
            }
        }
    }
    findings
}

/// The source or the destination of a shovel.
struct End<'a> {
    shovel: &'a Record,
    group: &'static str,
}

impl<'a> End<'a> {
    fn field(&self, key: &str) -> Option<&'static RecordField> {
        let fields = self.shovel.id.kind.row().settings().iter();
        fields.into_iter().find(|field| field.group == self.group && field.key == key)
    }

    /// Returns the field name that requests use for a key, and the value of the field.
    fn text(&self, key: &str) -> Option<(&'static str, &'a str)> {
        let field = self.field(key)?;
        Some((field.name, self.shovel.fields.get(field.name)?.as_text()?))
    }

    fn is_true(&self, key: &str) -> bool {
        let value = self.field(key).and_then(|field| self.shovel.fields.get(field.name));
        value == Some(&ArgumentValue::Boolean(true))
    }

    /// Returns true if the URI refers to `vhost` on the same broker, which requires an empty host.
    fn is_in(&self, vhost: &str) -> bool {
        let uri = self.text("uri").and_then(|(_, uri)| AmqpUri::parse(uri).ok());
        uri.is_some_and(|uri| uri.is_local() && uri.vhost().unwrap_or("/") == vhost)
    }
}

fn has_queue(subject: &Subject<'_>, name: &str) -> bool {
    let name = QueueName::new(name);
    subject.expansion.topology.queues.contains_key(&name)
        || subject.expansion.scope.external.contains(&ObjectId::Queue(name))
}

fn has_exchange(subject: &Subject<'_>, name: &str) -> bool {
    let name = ExchangeName::new(name);
    name.is_predeclared()
        || subject.expansion.topology.exchanges.contains_key(&name)
        || subject.expansion.scope.external.contains(&ObjectId::Exchange(name))
}
