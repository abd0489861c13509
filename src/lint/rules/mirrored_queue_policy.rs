//! Policies with `ha-…` keys: mirrored classic queues, deprecated from 3.13 on (`classic_queue_mirroring`), gone since 4.0
//! (`rabbit_mirror_queue_misc`: the validators are left out, so the keys are "not recognised").

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "mirrored-queue-policy",
    severity: Severity::Error,
    sometimes: &[Severity::Warning],
    is_optional: false,
    summary: "the policy mirrors queues, which RabbitMQ 4.0 and later do not support",
    check,
    page: include_str!("mirrored_queue_policy.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let version = subject.profile.version;
    let is_gone = subject.is_at_least(4, 0);
    let mut findings = Vec::new();
    for (id, policy) in subject.policies() {
        for key in policy.definition.keys().filter(|key| key.starts_with("ha-")) {
            let (severity, text) = if is_gone {
                let text = format!(
                    "mirrored queues are gone since RabbitMQ 4.0, this is {version}: a policy with `{key}` is refused, \
                     and one that is left from before does nothing"
                );
                (Severity::Error, text)
            } else {
                (Severity::Warning, format!("mirrored queues are deprecated, and RabbitMQ 4.0 refuses `{key}`"))
            };
            let finding = RULE.finding(subject, &id, key, text).severity(severity);
            findings
                .push(finding.hint("remove the `ha-` keys, and use `type: quorum` for queues that must be replicated"));
        }
    }
    findings
}
