//! Retires current retries that the spec no longer declares.
//!
//! topo unbinds an undesired tier, and the tier returns its messages to the queue. topo deletes the tier only when it
//! is empty. If an apply does not complete a retirement, the next plan shows the remaining steps, and the next apply
//! executes them. The exchanges are deleted after the last tier. Retired objects are not listed as unmanaged, even if
//! `owns` matches their names.

mod contract;
mod final_bindings;
mod generations;
mod leftovers;

use super::activity::QueueActivity;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, Desired, Options};
use super::hazard::HazardKind;
use super::recreate;
use crate::diff::DeleteReason;
use crate::model::count::number;
use crate::model::naming::{self, TierName};
use crate::model::units::duration;
use crate::model::{Destination, Object, ObjectId, ObjectKind, QueueName, Topology};
use leftovers::{Sides, leftovers, queue_of_tier};
use std::collections::{BTreeMap, BTreeSet};

pub(super) use contract::{hazards, strategy_of};
pub(super) use final_bindings::{current_final_binding, final_bindings, hazards as final_target_hazards};
pub(super) use generations::{Switch, adapt, switches};

#[cfg(test)]
mod tests;

/// Returns true if the plan may retire retries. Does not consider which objects are untouchable.
pub(super) fn has_leftover_retries(current: &Topology, desired: &Desired) -> bool {
    !leftovers(&Sides { current, desired, untouchable: &BTreeSet::new() }).is_empty()
}

/// Plans the retirement of leftover retries, and drops the objects of these retries from the removals.
pub(super) fn retire(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    options: &Options,
    removals: &mut Vec<(Object, DeleteReason)>,
) {
    let PlanContext { current, desired, untouchable, .. } = *context;
    let unmanaged = leftovers::of_unmanaged_queues(current, desired);
    removals.retain(|(object, reason)| *reason != DeleteReason::Unmanaged || !unmanaged.contains(&object.id()));
    for (queue, left) in leftovers(&Sides { current, desired, untouchable }) {
        let is_declared = desired.topology.queues.contains_key(&queue);
        let is_removed = desired.scope.removed.contains(&ObjectId::Queue(queue.clone()));
        let is_retired = is_declared || is_removed || options.prune.contains(&ObjectKind::Queue);
        // If an unmanaged queue stays, its retries also stay. The plan lists only the queue as unmanaged.
        if is_retired || current.queues.contains_key(&queue) {
            removals.retain(|(object, _)| !left.contains(&object.id()));
        }
        if is_retired {
            retire_family(builder, context, &queue, &left);
        }
    }
}

fn retire_family(builder: &mut PlanBuilder, context: &PlanContext<'_>, queue: &QueueName, left: &BTreeSet<ObjectId>) {
    for id in left {
        let Some(object) = context.current.object(id) else { continue };
        let address = context.address(id);
        if id.name().is_some_and(|name| context.desired.scope.protects(name)) {
            builder.info(
                &address,
                format!("{id} is no longer needed for the retries of {queue}, but it is protected: topo keeps it"),
            );
            continue;
        }
        if let ObjectId::Exchange(_) = id {
            let is_unrelated =
                |binding: &&crate::model::Binding| !left.contains(&ObjectId::Binding((*binding).clone()));
            let other_bindings = recreate::bindings_of(context, id).filter(is_unrelated).count();
            if other_bindings > 0 {
                let bindings =
                    if other_bindings == 1 { "a binding".to_owned() } else { format!("{other_bindings} bindings") };
                let text = format!(
                    "{id} is no longer needed for the retries of {queue}; deleting it also deletes {bindings} of other \
                     owners"
                );
                builder.hazard(HazardKind::RoutingGap, &address, text, None);
            }
        }
        let live = context.live(id);
        if let ObjectId::Queue(name) = id
            && let Some(text) = waiting_messages(name, live)
        {
            builder.info(&address, text);
        }
        let mut planned = context.change(ChangeKind::Delete, Some(object), None);
        planned.live = live.cloned();
        planned.reason = Some(DeleteReason::Retired);
        planned.retires = Some(queue.clone());
        builder.changes.push(planned);
    }
}

/// Describes the messages in a retired tier; `None` if the tier is empty.
fn waiting_messages(name: &QueueName, live: Option<&QueueActivity>) -> Option<String> {
    let within = TierName::parse(name).and_then(|tier| duration(tier.delay));
    let within = within.map_or_else(String::new, |delay| format!(" within {delay}"));
    let messages = live.and_then(|live| live.messages);
    let held = match messages {
        Some(0) => return None,
        Some(1) => "1 message is waiting in it and will return".to_owned(),
        Some(messages) => format!("{} messages are waiting in it and will return", number(messages)),
        None => "the messages in it will return".to_owned(),
    };
    Some(format!("{held}{within}; the tier will be deleted when it is empty, by this apply or the next"))
}

/// Returns the number of messages in the tiers of a current queue; `None` if the broker does not report the number.
pub(super) fn messages_in_tiers(context: &PlanContext<'_>, queue: &QueueName) -> Option<u64> {
    let tiers = context.current.queues.iter().filter(|(name, live)| queue_of_tier(name, live).as_ref() == Some(queue));
    tiers.map(|(name, _)| context.live(&ObjectId::Queue(name.clone()))?.messages).sum()
}

/// Returns the delays of a queue's current tiers in milliseconds, in the order of the retries; `None` if there are no
/// tiers, or if a tier is missing.
pub(super) fn live_delays(context: &PlanContext<'_>, queue: &QueueName) -> Option<Vec<i64>> {
    let is_bound = |name: &&QueueName| {
        let into =
            |binding: &crate::model::Binding| matches!(&binding.destination, Destination::Queue(it) if it == *name);
        context.current.bindings.iter().any(into)
    };
    let tiers = context.current.queues.iter().filter(|(name, live)| queue_of_tier(name, live).as_ref() == Some(queue));
    let tiers = tiers.map(|(name, _)| name).filter(is_bound).filter_map(TierName::parse);
    let delays: BTreeMap<u32, i64> = tiers.map(|tier| (tier.number, tier.delay)).collect();
    let is_complete = !delays.is_empty() && delays.keys().zip(1..).all(|(number, expected)| *number == expected);
    is_complete.then(|| delays.into_values().collect())
}

/// Returns the groups of objects that `--target` keeps together: a queue, the policy that wires it, and the created and
/// retired objects of its retries. Applying only part of a group would lose messages, or route messages twice.
pub(super) fn families(builder: &PlanBuilder, desired: &Desired) -> Vec<BTreeSet<ObjectId>> {
    let mut families: BTreeMap<&QueueName, BTreeSet<ObjectId>> = BTreeMap::new();
    for family in desired.scope.families.iter().filter(|family| !family.members.is_empty()) {
        families.entry(&family.queue).or_default().extend(family.members.iter().cloned());
    }
    for change in &builder.changes {
        if let Some(queue) = &change.retires {
            families.entry(queue).or_default().extend(change.id());
        }
    }
    let with_queue = |(queue, mut family): (&QueueName, BTreeSet<ObjectId>)| {
        family.insert(ObjectId::Queue(queue.clone()));
        family.insert(ObjectId::Policy(naming::dead_letter_policy(queue)));
        family
    };
    families.into_iter().map(with_queue).collect()
}
