//! Reports policies and upstream sets that refer to an upstream or a set that the spec does not declare. The broker
//! accepts such a reference, and creates no link (3.8 to 4.3). Specs without upstreams are not checked, because their
//! upstreams can belong to other specs.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, RecordKind};
use crate::spec::{Severity, closest};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unknown-upstream",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a policy or an upstream set refers to an upstream that the spec does not declare",
    check,
    page: include_str!("unknown_upstream.md"),
};

/// The set that always contains all upstreams.
pub(super) const ALL: &str = "all";
/// The policy key that names an upstream.
pub(super) const UPSTREAM_KEY: &str = "federation-upstream";
/// The policy key that names a set.
pub(super) const SET_KEY: &str = "federation-upstream-set";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let names = |kind: RecordKind| -> BTreeSet<&str> {
        subject.spec.records.keys().filter(|id| id.kind == kind).filter_map(|id| id.name()).collect()
    };
    let (upstreams, sets) = (names(RecordKind::Upstream), names(RecordKind::UpstreamSet));
    let mut findings = Vec::new();
    if !subject.spec.sections.contains_key(&RecordKind::Upstream) {
        return findings;
    }
    let mut report = |id: ObjectId, field: &str, what: &str, name: &str, known: &BTreeSet<&str>| {
        let finding = RULE.finding(subject, &id, field, format!("the spec does not declare {what} `{name}`"));
        findings.push(match closest(name, known.iter().copied()) {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding.hint(format!("declare the {what}, or correct the name")),
        });
    };
    for (id, set) in subject.spec.records.iter().filter(|(id, _)| id.kind == RecordKind::UpstreamSet) {
        for name in set.record.upstreams().filter(|name| !upstreams.contains(name)) {
            report(ObjectId::Record(id.clone()), "value", "upstream", name, &upstreams);
        }
    }
    for (name, policy) in &subject.spec.policies {
        for (key, what, known) in [(UPSTREAM_KEY, "upstream", &upstreams), (SET_KEY, "upstream set", &sets)] {
            let value = policy.definition.get(key).and_then(|setting| setting.value.as_text());
            if let Some(value) = value.filter(|value| !known.contains(value) && (key, *value) != (SET_KEY, ALL)) {
                report(ObjectId::Policy(name.clone()), key, what, value, known);
            }
        }
    }
    findings
}
