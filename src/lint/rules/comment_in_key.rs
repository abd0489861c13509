//! Reports routing keys that are followed by a lone `#` or a one-word comment: `routingKey: order. #` sets the key
//! `order.`, because ` #` begins a comment in YAML.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::{Location, Severity};

pub(super) static RULE: Rule = Rule {
    name: "comment-in-key",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "YAML may read the rest of a routing key as a comment",
    check,
    page: include_str!("comment_in_key.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    subject.spec.notation.comments_after_keys.iter().map(|(at, comment)| finding(subject, *at, comment)).collect()
}

fn finding(subject: &Subject<'_>, at: Location, comment: &str) -> Finding {
    let text = format!("the key ends before `{comment}`, which YAML reads as a comment");
    let hint = "if the `#` is part of the key, quote the key; if it starts a comment, add a space after the `#`";
    let binding = subject.spec.bindings.iter().find(|(_, declaration)| declaration.key_at == at);
    let objects = binding.map(|(binding, _)| ObjectId::Binding(binding.clone())).into_iter().collect();
    Finding { objects, ..RULE.finding_at(ObjectId::Vhost, at, text) }.hint(hint)
}
