//! Live retries that the spec does not want so (any more): they are retired.
//!
//! A tier that is not desired is taken off the exchange that leads to it, hands back what waits in it, and is deleted when
//! it has run empty, never before: a retirement that an apply does not finish is shown by the next plan and finished by
//! the next apply. The exchanges go after the last tier. What is retired is no "unmanaged" object, whoever owns it.

mod contract;
mod ends;
mod generations;
mod leftovers;
mod switches;

use super::QueueActivity;
use super::builder::PlanBuilder;
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
pub(super) use ends::{ends, hazards as hazards_of_ends, live_end};
pub(super) use generations::adapted;
pub(super) use switches::{Switch, switches};

#[cfg(test)]
mod tests;

/// Whether anything is to be retired, as far as that can be told without the broker's own word on what is whose.
pub(super) fn is_any_left(current: &Topology, desired: &Desired) -> bool {
    !leftovers(&Sides { current, desired, untouchable: &BTreeSet::new() }).is_empty()
}

/// Plans to retire what is left over of the retries of queues; takes it out of what is `removed` or unmanaged.
pub(super) fn retire(
    builder: &mut PlanBuilder,
    context: &PlanContext<'_>,
    options: &Options,
    removals: &mut Vec<(Object, DeleteReason)>,
) {
    let PlanContext { current, desired, untouchable, .. } = *context;
    let foreign = leftovers::of_others(current, desired);
    removals.retain(|(object, reason)| *reason != DeleteReason::Unmanaged || !foreign.contains(&object.id()));
    for (queue, left) in leftovers(&Sides { current, desired, untouchable }) {
        let is_declared = desired.topology.queues.contains_key(&queue);
        let is_removed = desired.scope.removed.contains(&ObjectId::Queue(queue.clone()));
        let is_retired = is_declared || is_removed || options.prune.contains(&ObjectKind::Queue);
        // With a live queue that is unmanaged and stays, its retries stay, and the queue stands for them.
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
            let is_foreign = |binding: &&crate::model::Binding| !left.contains(&ObjectId::Binding((*binding).clone()));
            let foreign = recreate::bindings_of(context, id).filter(is_foreign).count();
            if foreign > 0 {
                let bindings = if foreign == 1 { "a binding".to_owned() } else { format!("{foreign} bindings") };
                let text = format!(
                    "{id} is no longer needed for the retries of {queue}; deleting it also deletes {bindings} \
                             of other owners"
                );
                builder.hazard(HazardKind::RoutingGap, &address, text, None);
            }
        }
        let live = context.live(id);
        if let ObjectId::Queue(name) = id
            && let Some(text) = what_waits(name, live)
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

/// What is in a tier that is to go; `None` where nothing is.
fn what_waits(name: &QueueName, live: Option<&QueueActivity>) -> Option<String> {
    let within = TierName::parse(name).and_then(|tier| duration(tier.delay));
    let within = within.map_or_else(String::new, |delay| format!(" within {delay}"));
    let messages = live.and_then(|live| live.messages);
    let held = match messages {
        Some(0) => return None,
        Some(1) => "1 message waits in it, and comes back".to_owned(),
        Some(messages) => format!("{} messages wait in it, and come back", number(messages)),
        None => "the messages in it come back".to_owned(),
    };
    Some(format!("{held}{within}; it is deleted when it is empty, by this apply or the next"))
}

/// How many messages wait in the tiers of a live queue; `None` where the broker does not say.
pub(super) fn waiting(context: &PlanContext<'_>, queue: &QueueName) -> Option<u64> {
    let tiers = context.current.queues.iter().filter(|(name, live)| queue_of_tier(name, live).as_ref() == Some(queue));
    tiers.map(|(name, _)| context.live(&ObjectId::Queue(name.clone()))?.messages).sum()
}

/// What a message waits in the live tiers of a queue, in milliseconds, one a retry; `None` where one is missing.
pub(super) fn live_delays(context: &PlanContext<'_>, queue: &QueueName) -> Option<Vec<i64>> {
    let is_bound = |name: &&QueueName| {
        let into =
            |binding: &crate::model::Binding| matches!(&binding.destination, Destination::Queue(it) if it == *name);
        context.current.bindings.iter().any(into)
    };
    let tiers = context.current.queues.iter().filter(|(name, live)| queue_of_tier(name, live).as_ref() == Some(queue));
    let tiers = tiers.map(|(name, _)| name).filter(is_bound).filter_map(TierName::parse);
    let delays: BTreeMap<u32, i64> = tiers.map(|tier| (tier.number, tier.delay)).collect();
    let is_whole = !delays.is_empty() && delays.keys().zip(1..).all(|(number, expected)| *number == expected);
    is_whole.then(|| delays.into_values().collect())
}

/// All that belongs together, for `--target`: what is made and what is retired of one queue's retries, with the queue
/// and its policy. Half of it would lose messages, or send them two ways.
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
