//! Reports queues that dead-letter messages into a stream on RabbitMQ 3.9 to 3.11 without at-least-once dead-lettering.
//! These brokers lose the messages.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{QueueName, QueueType};
use crate::spec::Severity;
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "stream-dead-letter-queue-loses-messages",
    severity: Severity::Error,
    other_severities: &[],
    is_optional: false,
    summary: "before RabbitMQ 3.12, messages that are dead-lettered to a stream are lost",
    check,
    page: include_str!("stream_dead_letter_queue_loses_messages.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    // RabbitMQ 3.8 has no streams, and refuses to declare them.
    if !subject.is_at_least(3, 9) || subject.is_at_least(3, 12) {
        return Vec::new();
    }
    let routing = subject.routing();
    let queues = subject.effective_queues();
    let streams = queues.iter().filter(|queue| queue.queue_type == Some(QueueType::Stream));
    let streams: BTreeSet<&QueueName> = streams.map(|queue| queue.name).collect();
    let mut findings = Vec::new();
    if streams.is_empty() {
        return findings;
    }
    for queue in queues.iter().filter(|queue| !queue.settings.is_at_least_once()) {
        let fate = routing.fate_with(queue.name, |to, _| subject.dead_lettered_keys(queue.name, to));
        let Some(stream) = fate.queues.iter().chain(&fate.possible).find(|name| streams.contains(name)) else {
            continue;
        };
        let text =
            format!("before RabbitMQ 3.12, the broker loses messages that are dead-lettered into stream `{stream}`");
        let hint = "use `type: quorum` for the dead-letter queue; or, on a quorum queue with RabbitMQ 3.10 or later, \
                    set `deadLetterStrategy: at-least-once` and `overflow: reject-publish`";
        findings.push(RULE.effective_finding(subject, queue, "dead-letter-exchange", text).hint(hint));
    }
    findings
}
