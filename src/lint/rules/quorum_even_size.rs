//! Reports even numbers of replicas, which tolerate no more failures than one fewer replica.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ArgumentValue, ObjectId};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "quorum-even-size",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "an even number of replicas tolerates no more failures than one fewer replica",
    check,
    page: include_str!("quorum_even_size.md"),
};

const ARGUMENTS: [&str; 3] = ["x-quorum-initial-group-size", "x-quorum-target-group-size", "x-initial-cluster-size"];
const KEYS: [&str; 2] = ["target-group-size", "initial-cluster-size"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check_size = |id: &ObjectId, setting: &str, value: Option<&ArgumentValue>| {
        let size = value.and_then(ArgumentValue::as_integer);
        if let Some(size) = size.filter(|size| *size > 0 && size % 2 == 0) {
            let tolerated = match (size - 1) / 2 {
                0 => "none can fail".to_owned(),
                1 => "one can fail".to_owned(),
                many => format!("{many} can fail"),
            };
            let text =
                format!("with {size} replicas, {tolerated}, as with {}: more than half of them must be up", size - 1);
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
        KEYS.iter().for_each(|key| check_size(&id, key, policy.definition.get(*key).map(|it| &it.value)));
    }
    findings
}
