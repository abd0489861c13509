//! Reports `depth` thresholds above the maximum length of the queue. The broker drops or rejects messages before the
//! number of ready messages reaches such a threshold.

use crate::lint::{Finding, Rule, Subject};
use crate::model::count::{count, number};
use crate::model::{QueueName, Severity as Level};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "threshold-above-max-length",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "the queue's depth threshold is above its maximum length",
    check,
    page: include_str!("threshold_above_max_length.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let thresholds = subject.spec.thresholds();
    let mut findings = Vec::new();
    for queue in subject.effective_queues() {
        let Some(declaration) = queue.declaration else { continue };
        let name: &QueueName = queue.name;
        let Some(max_length) = queue.settings.integer("max-length") else { continue };
        let Some(depth) = thresholds.get(name).map(|it| it.depth) else { continue };
        let is_above = |level: &Level| depth.of(*level).is_some_and(|value| value > max_length);
        // Reports only the lowest such threshold. Findings for higher thresholds would have the same cause.
        let Some(level) = Level::ALL.into_iter().find(is_above) else { continue };
        let value = depth.of(level).unwrap_or_default();
        let held = count(u64::try_from(max_length).unwrap_or_default(), "ready message");
        let shown = number(u64::try_from(value).unwrap_or_default());
        let text = format!(
            "`maxLength` allows at most {held}, so only unacknowledged messages can push the queue's depth to its {} \
             threshold of {shown}",
            level.as_str()
        );
        let at = declaration.thresholds.depth.as_ref().map_or(declaration.at, |depth| depth.at);
        let hint = "lower the threshold in `thresholds: {depth: …}` below the limit, or raise the limit";
        findings.push(RULE.queue_finding_at(subject, queue, at, text).hint(hint));
    }
    findings
}
