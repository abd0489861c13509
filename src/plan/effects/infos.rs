//! Adds notes about policies that govern no queue, that do not apply to a queue type, or that topo cannot evaluate.
//! Also reports unmanaged policies that govern new queues.

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{Object, ObjectId, ObjectKind, PolicyName, Queue, QueueName, QueueType, RecordId};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::document::{ChangeKind, PlannedChange};
use crate::rabbitmq::governing::select_governing;
use crate::rabbitmq::{Governed, Named, Policies, Source};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of queues that a note lists.
const MAX_NAMED: usize = 3;

/// Adds notes about the policies or operator policies that the plan creates, changes or deletes. `after` contains all
/// policies of this kind after the plan.
pub(super) fn report_affected_policies(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    after: &Policies<'_>,
    affected: &BTreeSet<PolicyName>,
    kind: ObjectKind,
) {
    if affected.is_empty() {
        return;
    }
    let address = |name: &PolicyName| {
        context.address(&match kind {
            ObjectKind::Record(kind) => ObjectId::Record(RecordId::named(kind, name.as_str())),
            ObjectKind::Vhost | ObjectKind::Exchange | ObjectKind::Policy | ObjectKind::Queue | ObjectKind::Binding => {
                ObjectId::Policy(name.clone())
            }
        })
    };
    for unreadable in after.unreadable() {
        let text = format!(
            "topo cannot evaluate pattern {:?}; the objects that it matches are unknown",
            unreadable.policy.pattern
        );
        builder.info(&address(unreadable.name), text);
    }
    // For each policy: whether the policy governs a queue, and a policy that has precedence over it for some queue.
    let mut matching: BTreeMap<&PolicyName, (bool, Option<&PolicyName>)> = BTreeMap::new();
    let mut skipped: BTreeMap<(&PolicyName, &str, QueueType), Vec<&QueueName>> = BTreeMap::new();
    // A desired queue replaces the current queue with the same name.
    let queues: BTreeMap<&QueueName, &Queue> =
        context.current.queues.iter().chain(&context.desired.topology.queues).collect();
    for (name, queue) in queues {
        let candidates = after.matching(name.as_str(), Governed::from(queue));
        let governing = select_governing(&candidates);
        for candidate in candidates.iter().filter(|candidate| affected.contains(candidate.named.name)) {
            match (candidate.unsupported_key, queue.queue_type()) {
                (Some(key), Some(queue_type)) => {
                    skipped.entry((candidate.named.name, key, queue_type)).or_default().push(name);
                }
                (Some(_), None) => {}
                (None, _) => {
                    let (governs, winner) = matching.entry(candidate.named.name).or_default();
                    *governs |= governing.names().contains(&Some(candidate.named.name));
                    // Ignores a policy that includes all settings of this policy, such as a policy that wires the
                    // queue.
                    let sets = |other: &Named<'_>, (key, value)| other.policy.definition.get(key) == Some(value);
                    let includes =
                        |other: &Named<'_>| candidate.named.policy.definition.iter().all(|entry| sets(other, entry));
                    if let Some(preferred) = governing.likely().filter(|preferred| !includes(preferred)) {
                        *winner = winner.or(Some(preferred.name));
                    }
                }
            }
        }
    }
    // Reports policies that govern no queue, because other policies take precedence over them.
    for (name, (governs, winner)) in matching {
        if let Some(winner) = winner.filter(|_| !governs) {
            let text = format!("it governs no queue: {kind} {winner} takes precedence for the matching queues");
            builder.info(&address(name), text);
        }
    }
    for ((policy, key, queue_type), names) in skipped {
        let text =
            format!("it does not apply to {}: {queue_type} queues do not support {key} in a policy", list(&names));
        builder.info(&address(policy), text);
    }
}

/// Adds notes about unmanaged policies that govern new queues.
pub(super) fn report_unmanaged_policies(
    builder: &mut PlanBuilder,
    sides: &Sides<'_>,
    changes: &BTreeMap<ObjectId, PlannedChange>,
) {
    let context = sides.context;
    let declared = &context.desired.topology.policies;
    // For each policy (true for an operator policy): the governed queues and the settings.
    let mut found = BTreeMap::<(bool, PolicyName), (Vec<&QueueName>, BTreeSet<String>)>::new();
    for change in changes.values().filter(|change| change.kind == ChangeKind::Create) {
        let Some(Object::Queue(name, queue)) = &change.after else { continue };
        for (_, effective) in sides.governors().possible(name, queue) {
            for (key, setting) in effective.iter() {
                let by = match &setting.source {
                    Source::Policy(name) if !declared.contains_key(name) => (false, name.clone()),
                    Source::OperatorPolicy(name) => (true, name.clone()),
                    Source::Policy(_) | Source::Argument | Source::Default => continue,
                };
                let (names, settings) = found.entry(by).or_default();
                if names.last() != Some(&name) {
                    names.push(name);
                }
                settings.insert(format!("{key} {}", with_unit(key, &setting.value)));
            }
        }
    }
    for ((is_operator_policy, name), (names, settings)) in found {
        let settings: Vec<String> = settings.into_iter().collect();
        let (names, settings) = (list(&names), settings.join(", "));
        if is_operator_policy {
            let text = format!("operator policy {name} will govern {names}, which this plan creates: {settings}");
            builder.info(&context.address(&ObjectId::Vhost), text);
        } else {
            let text =
                format!("this policy is not in the spec, but will govern {names}, which this plan creates: {settings}");
            builder.info(&context.address(&ObjectId::Policy(name)), text);
        }
    }
}

/// Formats names: `queue a`, `queues a, b`, `queues a, b, c and 7 more`.
fn list(names: &[&QueueName]) -> String {
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(|name| name.as_str()).collect();
    let rest = if names.len() > MAX_NAMED { format!(" and {} more", names.len() - MAX_NAMED) } else { String::new() };
    let queues = if names.len() == 1 { "queue" } else { "queues" };
    format!("{queues} {}{rest}", named.join(", "))
}
