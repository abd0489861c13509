//! Reports policies that match the same object and have the same priority, but different definitions. The broker
//! applies the policy that its store lists first (`rabbit_policy:match_all`).

use crate::lint::policy_targets::summarize_names;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, PolicyName};
use crate::spec::Severity;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "policy-equal-priority",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "two policies with the same priority match the same object",
    check,
    page: include_str!("policy_equal_priority.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let policy_targets = subject.policy_targets();
    let mut pairs: BTreeMap<(&PolicyName, &PolicyName), Vec<&str>> = BTreeMap::new();
    for it in policy_targets.iter().filter(|it| it.retry_owner.is_none()) {
        let mut matching_policies = it
            .matching_policies
            .iter()
            .filter(|matching| matching.is_certain && matching.unsupported_key.is_none())
            .map(|matching| matching.named);
        let Some(first) = matching_policies.next() else { continue };
        let equal = matching_policies.take_while(|other| other.policy.priority == first.policy.priority);
        // If the definitions are identical, it does not matter which policy applies.
        for other in equal.filter(|other| other.policy.definition != first.policy.definition) {
            pairs.entry((first.name, other.name)).or_default().push(it.name);
        }
    }
    let mut findings = Vec::new();
    for ((first, second), names) in pairs {
        let Some((first_spec, spec)) = subject.spec.policies.get(first).zip(subject.spec.policies.get(second)) else {
            continue;
        };
        // The finding concerns the policy that is declared later.
        let (at, other, later, earlier) =
            if first_spec.at < spec.at { (spec, first_spec, second, first) } else { (first_spec, spec, first, second) };
        let matched = summarize_names(names);
        let text = format!(
            "`{earlier}` has the same priority and also matches {matched}: it is undefined which of the two policies applies"
        );
        let finding = RULE.finding_at(ObjectId::Policy(later.clone()), at.at, text).also(other.at, "the other policy");
        let priority = at.priority.above();
        findings
            .push(finding.hint(format!("give the policy that should apply a higher priority: `priority: {priority}`")));
    }
    findings
}
