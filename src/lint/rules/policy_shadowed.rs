//! Reports policies that govern none of the objects that they match, because other policies have a higher priority.
//! RabbitMQ does not merge policies.

use crate::lint::policy_targets::{PolicyTarget, summarize_names};
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, PolicyName};
use crate::rabbitmq::Pattern;
use crate::spec::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static RULE: Rule = Rule {
    name: "policy-shadowed",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "policies with a higher priority apply to every object that this policy matches",
    check,
    page: include_str!("policy_shadowed.md"),
};

/// Common patterns that match every name.
const EVERYTHING: [&str; 7] = ["", ".*", "^", "^.*", "^.*$", ".*$", ".+"];

/// Returns, for each policy, the policies that govern the objects that the policy certainly matches. A `None` in a set
/// means that the governing policy of an object is uncertain.
fn governing<'a>(policy_targets: &[PolicyTarget<'a>]) -> BTreeMap<&'a PolicyName, BTreeSet<Option<&'a PolicyName>>> {
    let mut by_policy: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in policy_targets {
        let governing = it.governing();
        for matching in
            it.matching_policies.iter().filter(|matching| matching.is_certain && matching.unsupported_key.is_none())
        {
            by_policy.entry(matching.named.name).or_default().insert(governing);
        }
    }
    by_policy
}

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let governing = governing(subject.policy_targets());
    for (name, policy) in &subject.spec.policies {
        let all = governing.get(name).into_iter().flatten();
        let instead: Option<BTreeSet<&PolicyName>> = all.copied().collect();
        let Some(instead) = instead.filter(|it| !it.is_empty() && !it.contains(name)) else { continue };
        let pattern = policy.pattern.value.as_str();
        // The policy can still apply to objects that applications declare, unless no such object can exist.
        let is_fully_shadowed = Pattern::new(pattern).only_name().is_some()
            || instead.iter().filter_map(|other| subject.spec.policies.get(*other)).any(|other| {
                let other = other.pattern.value.as_str();
                other == pattern || EVERYTHING.contains(&other)
            });
        let winners = summarize_names(instead.iter().map(|name| name.as_str()));
        let verb = if instead.len() == 1 { "has" } else { "have" };
        let text = format!("it applies to no object in the spec: {winners} {verb} a higher priority");
        let mut finding = RULE.finding(subject, &ObjectId::Policy(name.clone()), "name", text);
        for other in instead.iter().filter_map(|other| subject.spec.policies.get(*other)).take(2) {
            finding = finding.also(other.at, "this policy applies instead");
        }
        let finding = finding.severity(if is_fully_shadowed { Severity::Warning } else { Severity::Info });
        findings.push(finding.hint(format!(
            "only one policy applies to an object, and policies are not merged: add its keys to {winners}, raise its \
             `priority`, or remove it"
        )));
    }
    findings
}
