//! Reports queues that can expire before their messages do.

use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "expires-shorter-than-ttl",
    severity: Severity::Warning,
    other_severities: &[Severity::Info],
    is_optional: false,
    summary: "the queue is deleted before its messages expire",
    check,
    page: include_str!("expires_shorter_than_ttl.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.retry_owner.is_none()) {
        let (Some(expires), Some(ttl)) = (queue.settings.integer("expires"), queue.settings.integer("message-ttl"))
        else {
            continue;
        };
        if expires >= ttl {
            continue;
        }
        let format_duration = |milliseconds: i64| duration(milliseconds).unwrap_or_else(|| format!("{milliseconds}ms"));
        let consequence = if queue.has_dead_letter_exchange() {
            "the broker deletes the messages, and does not dead-letter them"
        } else {
            "the broker deletes the messages with the queue"
        };
        let text = format!(
            "the queue expires after being unused for {}, before its messages expire ({}): {consequence}",
            format_duration(expires),
            format_duration(ttl)
        );
        // Without a dead-letter exchange, the messages are deleted whether the queue or the messages expire first.
        let severity = if queue.has_dead_letter_exchange() { Severity::Warning } else { Severity::Info };
        let finding = RULE.effective_finding(subject, queue, "expires", text).severity(severity);
        findings.push(finding.hint(format!("set `expires` to more than {}", format_duration(ttl))));
    }
    findings
}
