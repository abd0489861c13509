//! Reports even numbers of replicas. An even number of replicas does not tolerate more failures than the next lower
//! number.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, ObjectId};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "quorum-even-size",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "an even number of replicas tolerates no more failures than the next lower number",
    check,
    page: include_str!("quorum_even_size.md"),
};

/// The arguments of quorum queues and streams that set the number of replicas.
const ARGUMENTS: [&str; 3] = ["x-quorum-initial-group-size", "x-quorum-target-group-size", "x-initial-cluster-size"];
/// The policy keys that set the number of replicas.
const POLICY_KEYS: [&str; 2] = ["target-group-size", "initial-cluster-size"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check_size = |id: &ObjectId, setting: &str, value: Option<&ArgumentValue>| {
        let size = value.and_then(ArgumentValue::as_integer);
        if let Some(size) = size.filter(|size| *size > 0 && size % 2 == 0) {
            let tolerated = match (size - 1) / 2 {
                0 => "no replica can fail".to_owned(),
                1 => "only one can fail".to_owned(),
                count => format!("only {count} can fail"),
            };
            let text =
                format!("with {size} replicas, {tolerated}, the same as with {}: more than half must be up", size - 1);
            let finding = RULE.finding(subject, id, setting, text);
            findings.push(finding.hint(format!("use {} replicas, which tolerate one more failure", size + 1)));
        }
    };
    for (id, queue) in subject.queues() {
        if subject.retry_owner(&id).is_none() {
            ARGUMENTS.iter().for_each(|argument| check_size(&id, argument, queue.arguments.get(*argument)));
        }
    }
    for (id, policy) in subject.policies() {
        POLICY_KEYS.iter().for_each(|key| check_size(&id, key, policy.definition.get(*key).map(|it| &it.value)));
    }
    findings
}
