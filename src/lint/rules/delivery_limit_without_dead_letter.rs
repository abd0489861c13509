//! Reports quorum queues that drop poison messages: they have a delivery limit but no dead-letter exchange.

use crate::lint::{Finding, Rule, Subject};
use crate::rabbitmq::Source;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "delivery-limit-without-dead-letter",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "messages that exceed the delivery limit are deleted",
    check,
    page: include_str!("delivery_limit_without_dead_letter.md"),
};

const HINT: &str = "use an entry in `deadLetterQueues`, or set `deadLetter: none` if losing the messages is acceptable";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in
        subject.effective_queues().iter().filter(|queue| !queue.is_dead_letter_queue && queue.drops_messages_silently())
    {
        let Some((limit, from)) = queue.delivery_limit().filter(|_| queue.max_retries().is_none()) else { continue };
        let (severity, text) = if from.source == Source::Default {
            let text = format!(
                "as of RabbitMQ 4.0, quorum queues delete a message after {limit} redeliveries, and this queue has no \
                 dead-letter exchange"
            );
            (Severity::Info, text)
        } else {
            let text =
                format!("a message is deleted after {limit} redeliveries: the queue has no dead-letter exchange");
            (Severity::Warning, text)
        };
        let finding = match from.source {
            // The queue type implies the default limit, which has no key in the spec.
            Source::Default => RULE.finding(subject, &queue.id, "x-queue-type", text),
            Source::Argument | Source::Policy(_) | Source::OperatorPolicy(_) => {
                RULE.effective_finding(subject, queue, "delivery-limit", text)
            }
        };
        findings.push(finding.severity(severity).hint(HINT));
    }
    findings
}
