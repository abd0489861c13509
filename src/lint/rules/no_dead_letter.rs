//! Reports queues that have a setting that discards messages, but no dead-letter target. Queues without such a setting
//! are not reported, because most queues have no dead-letter target.

use crate::lint::{Finding, Rule, Subject};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "no-dead-letter",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "messages can fail permanently without a dead-letter target",
    check,
    page: include_str!("no_dead_letter.md"),
};

const HINT: &str = "use an entry in `deadLetterQueues`, or set `deadLetter: none` if losing the messages is acceptable";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in
        subject.effective_queues().iter().filter(|queue| !queue.is_dead_letter_queue && queue.drops_messages_silently())
    {
        if let Some((retries, at)) = queue.max_retries() {
            let text = match retries {
                0 => "a message that fails is lost".to_owned(),
                1 => "a message that fails again after its retry is lost".to_owned(),
                retries => format!("a message that still fails after {retries} retries is lost"),
            };
            findings.push(RULE.queue_finding_at(subject, queue, at, text).hint(HINT));
        } else if let Some(key) = queue.length_limit_key().filter(|_| !queue.rejects_when_full()) {
            let text = "when the queue is full, its oldest messages are lost";
            let finding = RULE.effective_finding(subject, queue, key, text).severity(Severity::Info);
            findings.push(finding.hint(format!("{HINT}; or reject new messages: `overflow: reject-publish`")));
        }
    }
    findings
}
