//! Dead letters that come back to the queue where a consumer rejected them, without a queue in between in which they wait: as
//! fast as the consumer rejects them, for ever. The broker drops circles only in which nobody rejects.

use crate::behaviour::routing::{Message, Reason};
use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "reject-comes-straight-back",
    severity: Severity::Warning,
    sometimes: &[],
    is_optional: false,
    summary: "what a consumer rejects comes back to the same queue at once",
    check,
    page: include_str!("reject_comes_straight_back.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let routing = subject.routing();
    let mut findings = Vec::new();
    for queue in subject.settled().iter().filter(|queue| queue.retries_of.is_none()) {
        let [Some(to)] = routing.dead_lettering(queue.name) else { continue };
        let comes_back = subject.keys_of_dead_letters(queue.name, to).into_iter().any(|keys| {
            let letter = routing.as_dead_letter(&Message::with(keys), queue.name, Reason::Rejected, to);
            routing.route(&to.exchange, &letter).surely.contains(queue.name)
        });
        if comes_back {
            let by = match to.exchange.as_str() {
                "" => "the default exchange".to_owned(),
                name => format!("exchange `{name}`"),
            };
            let text = format!(
                "what a consumer rejects comes straight back from {by}, without a wait, for as long as it is rejected"
            );
            let hint = "let it wait: `retry: {delays: [5s, 30s]}`; or send it to another queue: `deadLetter: NAME`, with an \
                        entry of `deadLetterQueues`";
            findings.push(RULE.about(subject, queue, "dead-letter-exchange", text).hint(hint));
        }
    }
    findings
}
