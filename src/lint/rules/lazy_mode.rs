//! Reports `queueMode`, which has had no effect since 3.12: all classic queues keep messages on disk
//! (`rabbit_variable_queue`).

use crate::lint::{Finding, Rule, Subject};
use crate::rabbitmq::NoEffect;
use crate::rabbitmq::no_effect::no_effect_in_policy;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "lazy-mode",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "`queueMode` has had no effect since RabbitMQ 3.12",
    check,
    page: include_str!("lazy_mode.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let version = subject.profile.version;
    let Some(NoEffect::Since(since)) = no_effect_in_policy("queue-mode", &"lazy".into(), version) else {
        return Vec::new();
    };
    let text = format!(
        "`queueMode` has had no effect since RabbitMQ {} (the broker runs {version}): every classic queue is lazy",
        since.series()
    );
    let queues = subject.queues().filter(|(_, queue)| queue.arguments.contains_key("x-queue-mode")).map(|(id, _)| {
        // All versions up to and including 4.3 compare the argument (`rabbit_classic_queue:capabilities/0`), so
        // removing it from an existing queue is a conflict.
        RULE.finding(subject, &id, "x-queue-mode", text.as_str()).hint(
            "remove it from new queues; keep it on an existing queue that has it, because removing it is a conflict",
        )
    });
    let policies = subject
        .policies()
        .filter(|(_, policy)| policy.definition.contains_key("queue-mode"))
        .map(|(id, _)| RULE.finding(subject, &id, "queue-mode", text.as_str()).hint("remove it from the policy"));
    queues.chain(policies).collect()
}
