//! Reports durable classic queues, because they are not replicated. Omits auto-delete queues and delayed retry queues.
//! The rule is optional, because a spec does not specify whether the broker is a cluster.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, QueueType};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "classic-on-clustered-durable-work",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: true,
    summary: "a classic queue loses its messages if its node is lost",
    check,
    page: include_str!("classic_on_clustered_durable_work.md"),
};

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let durable = subject.queues_of(QueueType::Classic).filter(|(_, queue)| queue.durable && !queue.auto_delete);
    let is_work = |id: &ObjectId| subject.retry_owner(id).is_none();
    let finding = |id: ObjectId| {
        let text = "a classic queue is on one node: while the node is down, its messages are unavailable, and they can be lost";
        let finding = RULE.finding(subject, &id, "type", text);
        finding.hint(
            "use `type: quorum`, which replicates messages; to recreate an existing queue, set `onConflict: migrate`",
        )
    };
    durable.map(|(id, _)| id).filter(is_work).map(finding).collect()
}
