//! Queues without any limit. Most queues are like that, and rightly so: the rule is for those who want each bounded.

use crate::lint::{Finding, Rule, Subject};
use crate::model::QueueType;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "unbounded-queue",
    severity: Severity::Info,
    sometimes: &[],
    is_optional: true,
    summary: "the queue has no limit",
    check,
    page: include_str!("unbounded_queue.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A dead-letter queue with a limit loses letters, a tier hands back too early.
    for queue in subject.settled().iter().filter(|it| !it.is_dead_letter_queue && it.written.is_some()) {
        let is_stream = queue.kind == Some(QueueType::Stream);
        if !is_stream && queue.limit().is_none() && queue.settings.get("message-ttl").is_none() {
            let text =
                "without consumers it grows until the broker runs out of memory or disk and blocks all publishers";
            let finding = RULE.finding(subject, &queue.id, "name", text);
            findings.push(finding.hint("add a limit that only an outage reaches: `maxLengthBytes: 1GiB`"));
        }
    }
    findings
}
