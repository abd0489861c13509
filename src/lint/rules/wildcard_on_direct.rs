//! Reports wildcards in the binding keys of direct exchanges, which compare keys literally.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::rabbitmq::routing::{Certainty, Keys, Kind};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "wildcard-on-direct",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the key of a direct exchange contains a wildcard, which is literal there",
    check,
    page: include_str!("wildcard_on_direct.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut findings = Vec::new();
    for binding in subject.spec.bindings.keys().filter(|it| routing.kind(&it.source) == Some(Kind::Direct)) {
        // Reports only keys that are topic patterns, because publishers do not use such keys.
        if Keys::any().match_key(&binding.routing_key) != Certainty::Never {
            continue;
        }
        let text = format!("`{}` is literal in a direct exchange: no message matches it", binding.routing_key);
        let finding = RULE.finding(subject, &ObjectId::Binding(binding.clone()), "routing_key", text);
        findings.push(finding.hint("use a topic exchange, or a fanout exchange to receive every message"));
    }
    findings
}
