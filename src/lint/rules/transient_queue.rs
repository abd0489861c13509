//! Reports queues that are neither durable nor exclusive, which use the deprecated `transient_nonexcl_queues` feature.
//! By default, RabbitMQ 3.13 to 4.2 permit the feature, and RabbitMQ 4.3 and later deny it (`rabbit_amqqueue`, 3.13.7
//! to 4.3.5; Debian's 4.3.6 permits it).

use crate::lint::{Finding, Rule, Subject};
use crate::rabbitmq::profile::TRANSIENT_QUEUES;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "transient-queue",
    severity: Severity::Warning,
    other_severities: &[Severity::Error, Severity::Info],
    is_optional: false,
    summary: "the queue is neither durable nor exclusive, which RabbitMQ deprecates",
    check,
    page: include_str!("transient_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let version = subject.profile.version;
    let (severity, text) = match subject.profile.permits(TRANSIENT_QUEUES) {
        Some(false) => (
            Severity::Error,
            format!("this broker ({version}) does not permit queues that are neither durable nor exclusive"),
        ),
        Some(true) if subject.is_at_least(4, 3) => (
            Severity::Warning,
            format!(
                "queues that are neither durable nor exclusive are refused by default as of RabbitMQ 4.3; this broker \
                 ({version}) permits them"
            ),
        ),
        // RabbitMQ 4.3 denies the feature by default.
        None if subject.is_at_least(4, 3) => (
            Severity::Error,
            format!(
                "RabbitMQ {version} refuses queues that are neither durable nor exclusive, \
                 unless its configuration permits the deprecated feature `{TRANSIENT_QUEUES}`"
            ),
        ),
        Some(true) | None if subject.is_at_least(3, 13) => (
            Severity::Warning,
            "queues that are neither durable nor exclusive are deprecated, and RabbitMQ 4.3 refuses them by default"
                .to_owned(),
        ),
        Some(true) | None => (
            Severity::Info,
            "RabbitMQ 3.13 deprecates queues that are neither durable nor exclusive, and RabbitMQ 4.3 refuses them by \
             default"
                .to_owned(),
        ),
    };
    let mut hint = "make it durable, with `expires` to delete it automatically".to_owned();
    if subject.profile.permits(TRANSIENT_QUEUES) != Some(true) && subject.is_at_least(4, 3) {
        hint += &format!("; or permit it on the broker: `deprecated_features.permit.{TRANSIENT_QUEUES} = true`");
    }
    let transient = subject.queues().filter(|(_, queue)| !queue.durable && !queue.exclusive);
    let finding = |id| {
        let finding = RULE.finding(subject, &id, "durable", text.as_str()).severity(severity);
        finding.hint(hint.as_str())
    };
    transient.map(|(id, _)| finding(id)).collect()
}
