//! Reports rejected messages that the dead-letter exchange returns to the same queue without a delay. Such a message
//! cycles endlessly, as fast as the consumer rejects it, because the broker drops messages only in cycles without a
//! rejection.

use crate::lint::{Finding, Rule, Subject};
use crate::rabbitmq::routing::{Message, Reason};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "reject-comes-straight-back",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "rejected messages return to the same queue immediately",
    check,
    page: include_str!("reject_comes_straight_back.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.retry_owner.is_none()) {
        let [Some(to)] = routing.dead_lettering(queue.name) else { continue };
        let returns = subject.dead_lettered_keys(queue.name, to).into_iter().any(|keys| {
            let dead_lettered = routing.to_dead_lettered(&Message::with(keys), queue.name, Reason::Rejected, to);
            routing.route(&to.exchange, &dead_lettered).certain_queues.contains(queue.name)
        });
        if returns {
            let by = match to.exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange `{name}`"),
            };
            let text = format!("{by} returns rejected messages immediately, for as long as consumers reject them");
            let hint = "delay the retries: `retry: {delays: [5s, 30s]}`; or dead-letter to another queue: `deadLetter: NAME`, \
                        with an entry in `deadLetterQueues`";
            findings.push(RULE.effective_finding(subject, queue, "dead-letter-exchange", text).hint(hint));
        }
    }
    findings
}
