//! Reports dead-letter queues without a threshold for message count or message age. No alert reports dead-lettered
//! messages in such a queue.

use crate::lint::{Finding, Rule, Subject};
use crate::model::ObjectId;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "dead-letter-queue-without-threshold",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "the dead-letter queue has no threshold for message count or message age",
    check,
    page: include_str!("dead_letter_queue_without_threshold.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let thresholds = subject.spec.thresholds();
    let mut findings = Vec::new();
    for (name, it) in &subject.spec.dead_letter_queues {
        let has_threshold = thresholds.get(name).is_some_and(|it| !it.depth.is_empty() || !it.age.is_empty());
        if !has_threshold {
            let set = &it.queue.thresholds;
            let at = set.none.or(set.depth.as_ref().map(|depth| depth.at)).unwrap_or(it.queue.at);
            let text = "without a threshold for `depth` or `age`, no alert reports dead-lettered messages";
            let hint = "remove `none` to use the default threshold, or set `thresholds: {depth: {critical: 1}}`";
            findings.push(RULE.finding_at(ObjectId::Queue(name.clone()), at, text).hint(hint));
        }
    }
    findings
}
