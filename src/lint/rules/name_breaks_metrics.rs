//! Reports queue and vhost names with characters that some RabbitMQ versions do not escape in their Prometheus metrics.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::model::names::breaks_metrics;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "name-breaks-metrics",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "a name makes the Prometheus metrics of a broker unreadable",
    check,
    page: include_str!("name_breaks_metrics.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let spec = subject.spec;
    let queues = spec.queues.iter().map(|(name, it)| (name, it.is_external));
    let dead_letter_queues = spec.dead_letter_queues.iter().map(|(name, it)| (name, it.queue.is_external));
    let declared = queues.chain(dead_letter_queues).filter(|(_, is_external)| !is_external);
    let broken = declared.filter(|(name, _)| breaks_metrics(name.as_str()));
    let vhost = breaks_metrics(spec.vhost.value.as_str()).then_some(ObjectId::Vhost);
    let named = broken.map(|(name, _)| ObjectId::Queue(name.clone())).chain(vhost);
    let finding = |id: ObjectId| {
        let text = "some RabbitMQ versions do not escape `\"` or `\\` in metrics, so Prometheus cannot read the metrics of any queue";
        RULE.finding(subject, &id, "name", text).hint("use a name without `\"` or `\\`")
    };
    named.map(finding).collect()
}
