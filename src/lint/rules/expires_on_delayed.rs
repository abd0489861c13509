//! Reports queues that can expire, for lack of consumers, while their messages wait for the next retry.

use crate::lint::{Finding, Rule, Subject};
use crate::model::units::duration;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "expires-on-delayed",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the queue can be deleted while its messages wait for a retry",
    check,
    page: include_str!("expires_on_delayed.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in subject.effective_queues().iter().filter(|queue| queue.settings.get("expires").is_some()) {
        let retry = subject.expansion.retries.get(queue.name).filter(|retry| !retry.delays().is_empty());
        let has_own_delays =
            retry.is_none() && matches!(queue.settings.text("delayed-retry-type"), Some("all" | "failed" | "returned"));
        if retry.is_none() && !has_own_delays {
            continue;
        }
        let after =
            queue.settings.integer("expires").and_then(duration).unwrap_or_else(|| "the time in `expires`".to_owned());
        let consequence = match retry.map(|retry| retry.objects(subject.profile).queues.is_empty()) {
            Some(false) => "messages in its delayed retry queues cannot return to it",
            Some(true) | None => "its waiting messages are deleted with it",
        };
        let text = format!("after {after} without a consumer, the queue is deleted, and {consequence}");
        findings.push(RULE.effective_finding(subject, queue, "expires", text).hint("remove `expires`"));
    }
    findings
}
