//! Queues that can go before the messages in them do.

use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "expires-shorter-than-ttl",
    severity: Severity::Warning,
    sometimes: &[Severity::Info],
    is_optional: false,
    summary: "the queue is deleted before its messages expire",
    check,
    page: include_str!("expires_shorter_than_ttl.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.settled().iter().filter(|queue| queue.retries_of.is_none()) {
        let (Some(expires), Some(ttl)) = (queue.settings.integer("expires"), queue.settings.integer("message-ttl"))
        else {
            continue;
        };
        if expires >= ttl {
            continue;
        }
        let shown = |milliseconds: i64| duration(milliseconds).unwrap_or_else(|| format!("{milliseconds}ms"));
        let fate = if queue.has_dead_letter_exchange() {
            "they are not dead-lettered then"
        } else {
            "they are deleted with it"
        };
        let text = format!(
            "it is deleted after {} without use, but its messages expire after {}: {fate}",
            shown(expires),
            shown(ttl)
        );
        // Without a place for dead letters the one is as good as the other.
        let severity = if queue.has_dead_letter_exchange() { Severity::Warning } else { Severity::Info };
        let finding = RULE.about(subject, queue, "expires", text).severity(severity);
        findings.push(finding.hint(format!("set `expires` to more than {}", shown(ttl))));
    }
    findings
}
