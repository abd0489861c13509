//! Reports policies of equal priority that match the same object. The order in which the store of the broker lists them
//! decides which one applies (`rabbit_policy:match_all`).

use crate::lint::policy_targets::first_of;
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, PolicyName};
use crate::spec::Severity;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "policy-equal-priority",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "two policies of the same priority match one object",
    check,
    page: include_str!("policy_equal_priority.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let policy_targets = subject.policy_targets();
    let mut pairs: BTreeMap<(&PolicyName, &PolicyName), Vec<&str>> = BTreeMap::new();
    for it in policy_targets.iter().filter(|it| it.retry_owner.is_none()) {
        let mut fits = it.fits.iter().filter(|fit| fit.is_certain && fit.obstacle.is_none()).map(|fit| fit.named);
        let Some(first) = fits.next() else { continue };
        let equal = fits.take_while(|other| other.policy.priority == first.policy.priority);
        // With equal definitions, it does not matter which policy applies.
        for other in equal.filter(|other| other.policy.definition != first.policy.definition) {
            pairs.entry((first.name, other.name)).or_default().push(it.name);
        }
    }
    let mut findings = Vec::new();
    for ((first, second), names) in pairs {
        let Some((first_spec, spec)) = subject.spec.policies.get(first).zip(subject.spec.policies.get(second)) else {
            continue;
        };
        // The finding is about the policy that is declared later.
        let (at, other, later, earlier) =
            if first_spec.at < spec.at { (spec, first_spec, second, first) } else { (first_spec, spec, first, second) };
        let matched = first_of(names);
        let text = format!(
            "`{earlier}` has the same priority and also matches {matched}: which of the two applies there is undefined"
        );
        let finding = RULE.found(ObjectId::Policy(later.clone()), at.at, text).also(other.at, "the other policy");
        let priority = at.priority.above();
        findings
            .push(finding.hint(format!("give the policy that should apply a higher priority: `priority: {priority}`")));
    }
    findings
}
