//! Reports fanout exchange binding keys that look like filters.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::routing::Kind;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "wildcard-on-fanout",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "the key of a fanout exchange looks like a filter but is ignored",
    check,
    page: include_str!("wildcard_on_fanout.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    // The `#` key would match every message, so it is not a filter.
    let is_filter = |key: &str| key.contains(['*', '#']) && key != "#";
    let mut findings = Vec::new();
    for binding in subject.spec.bindings.keys().filter(|it| is_filter(&it.routing_key)) {
        if routing.kind(&binding.source) == Some(Kind::Fanout) {
            let key = &binding.routing_key;
            let text = format!(
                "a fanout exchange ignores the key: the destination receives every message, not only messages for `{key}`"
            );
            let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "routing_key", text);
            findings.push(finding.hint("use a topic exchange, or remove the key to receive all messages"));
        }
    }
    findings
}
