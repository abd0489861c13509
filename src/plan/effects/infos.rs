//! Adds notes about policies that govern nothing, that do not apply to a queue type, or that topo cannot evaluate. Also
//! reports unmanaged policies that govern new queues.

use super::Sides;
use crate::model::units::with_unit;
use crate::model::{Object, ObjectId, ObjectKind, PolicyName, Queue, QueueName, QueueType, RecordId};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::plan::context::PlanContext;
use crate::plan::document::{ChangeKind, PlannedChange};
use crate::rabbitmq::governing::chosen;
use crate::rabbitmq::{Governed, Named, Policies, Source};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of names in a text.
const NAMED: usize = 3;

/// Adds notes about policies, or operator policies, that the plan creates, changes or deletes. `after` contains all
/// policies of that kind after the plan.
pub(super) fn affected(
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
            "topo cannot evaluate pattern {:?}; the objects that it governs are unknown",
            unreadable.policy.pattern
        );
        builder.info(&address(unreadable.name), text);
    }
    // By policy: true if it governs a queue, and the policy that has precedence over it.
    let mut matching: BTreeMap<&PolicyName, (bool, Option<&PolicyName>)> = BTreeMap::new();
    let mut skipped: BTreeMap<(&PolicyName, &str, QueueType), Vec<&QueueName>> = BTreeMap::new();
    // A desired queue replaces the current queue of its name.
    let queues: BTreeMap<&QueueName, &Queue> =
        context.current.queues.iter().chain(&context.desired.topology.queues).collect();
    for (name, queue) in queues {
        let fitting = after.fitting(name.as_str(), Governed::from(queue));
        let governing = chosen(&fitting);
        for fit in fitting.iter().filter(|fit| affected.contains(fit.named.name)) {
            match (fit.obstacle, queue.queue_type()) {
                (Some(key), Some(queue_type)) => {
                    skipped.entry((fit.named.name, key, queue_type)).or_default().push(name);
                }
                (Some(_), None) => {}
                (None, _) => {
                    let (governs, winner) = matching.entry(fit.named.name).or_default();
                    *governs |= governing.names().contains(&Some(fit.named.name));
                    // A policy with the same settings and more does not count, such as a queue's own policy that
                    // includes this one.
                    let sets = |of: &Named<'_>, (key, value)| of.policy.definition.get(key) == Some(value);
                    let includes = |of: &Named<'_>| fit.named.policy.definition.iter().all(|entry| sets(of, entry));
                    if let Some(before) = governing.likely().filter(|before| !includes(before)) {
                        *winner = winner.or(Some(before.name));
                    }
                }
            }
        }
    }
    // The policy governs no queue: another one has precedence wherever it matches.
    for (name, (governs, winner)) in matching {
        if let Some(winner) = winner.filter(|_| !governs) {
            let text = format!("it governs no queue: {kind} {winner} has precedence wherever it matches");
            builder.info(&address(name), text);
        }
    }
    for ((policy, key, queue_type), names) in skipped {
        let text =
            format!("it does not apply to {}: {queue_type} queues do not support {key} in a policy", joined(&names));
        builder.info(&address(policy), text);
    }
}

/// Adds notes about policies that this spec does not declare and that govern new queues.
pub(super) fn unmanaged(builder: &mut PlanBuilder, sides: &Sides<'_>, changes: &BTreeMap<ObjectId, PlannedChange>) {
    let context = sides.context;
    let declared = &context.desired.topology.policies;
    // By policy, true for an operator policy: the governed queues, and the settings.
    let mut found = BTreeMap::<(bool, PolicyName), (Vec<&QueueName>, BTreeSet<String>)>::new();
    for change in changes.values().filter(|change| change.kind == ChangeKind::Create) {
        let Some(Object::Queue(name, queue)) = &change.after else { continue };
        for (_, effective) in sides.governors().possible(name, queue) {
            for (key, holds) in effective.iter() {
                let by = match &holds.source {
                    Source::Policy(name) if !declared.contains_key(name) => (false, name.clone()),
                    Source::OperatorPolicy(name) => (true, name.clone()),
                    Source::Policy(_) | Source::Argument | Source::Default => continue,
                };
                let (names, settings) = found.entry(by).or_default();
                if names.last() != Some(&name) {
                    names.push(name);
                }
                settings.insert(format!("{key} {}", with_unit(key, &holds.value)));
            }
        }
    }
    for ((is_operators, name), (names, settings)) in found {
        let settings: Vec<String> = settings.into_iter().collect();
        let (names, settings) = (joined(&names), settings.join(", "));
        if is_operators {
            let text = format!("operator policy {name} will govern {names}, created by this plan: {settings}");
            builder.info(&context.address(&ObjectId::Vhost), text);
        } else {
            let text = format!(
                "this policy is not in the spec, but will govern {names}, created by this plan: \
                                {settings}"
            );
            builder.info(&context.address(&ObjectId::Policy(name)), text);
        }
    }
}

/// Formats names: `queue a`, `queues a, b`, `queues a, b, c and 7 more`.
fn joined(names: &[&QueueName]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(|name| name.as_str()).collect();
    let rest = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    let queues = if names.len() == 1 { "queue" } else { "queues" };
    format!("{queues} {}{rest}", named.join(", "))
}
