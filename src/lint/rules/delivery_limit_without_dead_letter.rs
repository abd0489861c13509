//! Poison messages that a quorum queue drops, because nothing takes what was delivered too often.

use crate::lint::{Finding, Rule, Subject};
use crate::rabbitmq::Source;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "delivery-limit-without-dead-letter",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "messages that exceed the delivery limit are deleted",
    check,
    page: include_str!("delivery_limit_without_dead_letter.md"),
};

const HINT: &str = "use an entry of `deadLetterQueues`, or set `deadLetter: none` if they can be lost";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.settled().iter().filter(|queue| !queue.is_dead_letter_queue && queue.loses_in_silence()) {
        let Some((limit, from)) = queue.delivery_limit().filter(|_| queue.max_retries().is_none()) else { continue };
        let (severity, text) = if from.source == Source::Default {
            let text = format!(
                "quorum queues delete a message that was redelivered {limit} times, since RabbitMQ 4.0, and this one has no \
                 dead-letter exchange"
            );
            (Severity::Info, text)
        } else {
            let text =
                format!("a message is deleted after {limit} redeliveries: the queue has no dead-letter exchange");
            (Severity::Warning, text)
        };
        let finding = match from.source {
            // The type is all that says it.
            Source::Default => RULE.finding(subject, &queue.id, "x-queue-type", text),
            Source::Argument | Source::Policy(_) | Source::OperatorPolicy(_) => {
                RULE.about(subject, queue, "delivery-limit", text)
            }
        };
        findings.push(finding.severity(severity).hint(HINT));
    }
    findings
}
