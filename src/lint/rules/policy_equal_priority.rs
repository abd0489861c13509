//! Policies of one priority for one object: which of them governs is up to the order in which the broker's store lists
//! them (`rabbit_policy:match_all`).

use crate::lint::ruled::first_of;
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
    let ruled = subject.ruled();
    let mut pairs: BTreeMap<(&PolicyName, &PolicyName), Vec<&str>> = BTreeMap::new();
    for it in ruled.iter().filter(|it| it.retries_of.is_none()) {
        let mut fits = it.fits.iter().filter(|fit| fit.is_certain && fit.obstacle.is_none()).map(|fit| fit.named);
        let Some(first) = fits.next() else { continue };
        let equal = fits.take_while(|other| other.policy.priority == first.policy.priority);
        // Whichever holds, it is the same.
        for other in equal.filter(|other| other.policy.definition != first.policy.definition) {
            pairs.entry((first.name, other.name)).or_default().push(it.name);
        }
    }
    let mut findings = Vec::new();
    for ((first, second), names) in pairs {
        let Some((first_spec, spec)) = subject.spec.policies.get(first).zip(subject.spec.policies.get(second)) else {
            continue;
        };
        // The one that is written later is the one to change.
        let (at, other, about, above) =
            if first_spec.at < spec.at { (spec, first_spec, second, first) } else { (first_spec, spec, first, second) };
        let matched = first_of(names);
        let text = format!(
            "`{above}` has the same priority and also matches {matched}: which of the two applies there is undefined"
        );
        let finding = RULE.found(ObjectId::Policy(about.clone()), at.at, text).also(other.at, "the other one");
        let priority = at.priority.above();
        findings
            .push(finding.hint(format!("give the one that should apply a higher priority: `priority: {priority}`")));
    }
    findings
}
