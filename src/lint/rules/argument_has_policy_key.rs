//! Reports arguments that a policy could set instead. The rule is a matter of style: an argument is declared together
//! with its queue and cannot change, whereas a policy can change at any time.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::model::known_arguments::KnownArgument;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "argument-has-policy-key",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: true,
    summary: "the argument cannot change on an existing queue, but a policy can set it",
    check,
    page: include_str!("argument_has_policy_key.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let dead_letter_queues = subject.spec.dead_letter_queues.iter().map(|(name, it)| (name, &it.queue));
    for (name, queue) in subject.spec.queues.iter().chain(dead_letter_queues) {
        for (argument, known) in queue.arguments.keys().filter_map(|it| Some((it, KnownArgument::named(it)?))) {
            let Some(key) = known.policy_key else { continue };
            let text = format!(
                "to change `{}` later, you must recreate the queue; a policy can be changed in place",
                known.key
            );
            let finding = RULE.finding(subject, &ObjectId::Queue(name.clone()), argument, text);
            findings.push(finding.hint(format!("set `{key}` in a policy for the queue")));
        }
    }
    findings
}
