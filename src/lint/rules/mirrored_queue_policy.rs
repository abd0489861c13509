//! Reports policies with `ha-…` keys. Such a policy mirrors classic queues. RabbitMQ 3.13 deprecates mirroring
//! (`classic_queue_mirroring`). RabbitMQ 4.0 refuses the keys as "not recognised", because it has no validators for
//! them (`rabbit_mirror_queue_misc`).

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "mirrored-queue-policy",
    severity: Severity::Error,
    other_severities: &[Severity::Warning],
    is_optional: false,
    summary: "the policy mirrors queues, which RabbitMQ 4.0 and later do not support",
    check,
    page: include_str!("mirrored_queue_policy.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let version = subject.profile.version;
    let is_removed = subject.is_at_least(4, 0);
    let mut findings = Vec::new();
    for (id, policy) in subject.policies() {
        for key in policy.definition.keys().filter(|key| key.starts_with("ha-")) {
            let (severity, text) = if is_removed {
                let text = format!(
                    "RabbitMQ 4.0 removed mirrored queues (the broker is {version}): a policy with `{key}` is refused, \
                     and `{key}` has no effect in an existing policy"
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
