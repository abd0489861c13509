//! Finds queues that topo has to query itself, because the counts and consumers that the broker lists may be too old.
//!
//! The broker updates the count of a quorum queue on each tick, so 0 may not include newer messages. A plan that lowers
//! a limit cannot rely on that count. Consumers come from statistics, so a plan that deletes a queue may miss a new
//! consumer. The queue itself knows both, and only AMQP queries it.

use super::activity::Unasked;
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, VhostPlan};
use super::{Activity, HazardKind};
use crate::model::count::count;
use crate::model::intervals::in_words;
use crate::model::{Address, Object, ObjectId, QueueName, QueueType, Topology};
use std::collections::BTreeSet;

/// Returns the queues whose counts or consumers may be too old for this plan.
pub fn queues_with_stale_counts(part: &VhostPlan, live: &Topology, activity: &Activity) -> Vec<QueueName> {
    let mut queues = without_listed_consumers(part, activity);
    queues.extend(of_hazards(part, live, activity));
    queues.into_iter().collect()
}

/// Adds a note about queues that topo did not query.
pub(super) fn report_unqueried_queues(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let Some(Unasked { queues, reason }) = &context.activity.unasked else { return };
    let intervals = context.activity.intervals;
    let age = in_words(intervals.listing().max(intervals.one_tick()));
    let text = format!(
        "{} could not be queried over AMQP for current consumers and messages, so the numbers of the plan may be {age} old: \
         {reason}",
        count(*queues, "queue")
    );
    builder.info(&context.address(&ObjectId::Vhost), text);
}

/// Returns the queues that the plan deletes or recreates, and that have no consumer in the statistics.
fn without_listed_consumers(part: &VhostPlan, activity: &Activity) -> BTreeSet<QueueName> {
    let deleted = part.changes.iter().filter(|it| matches!(it.kind, ChangeKind::Delete | ChangeKind::Recreate));
    let queues = deleted.filter_map(|change| match &change.before {
        Some(Object::Queue(name, queue)) if queue.queue_type() != Some(QueueType::Stream) => Some(name),
        Some(
            Object::Vhost(_)
            | Object::Exchange(..)
            | Object::Policy(..)
            | Object::Queue(..)
            | Object::Binding(_)
            | Object::Record(_),
        )
        | None => None,
    });
    let is_unlisted = |name: &&QueueName| {
        activity.queues.get(*name).is_some_and(|it| it.consumers.as_ref().is_some_and(Vec::is_empty))
    };
    queues.filter(is_unlisted).cloned().collect()
}

/// Returns the queues with a hazard about their messages although their count is 0.
fn of_hazards(part: &VhostPlan, live: &Topology, activity: &Activity) -> Vec<QueueName> {
    let concerns_messages = |kind| match kind {
        HazardKind::MessageDrop | HazardKind::PublisherBlock => true,
        HazardKind::MessageLoss
        | HazardKind::AccessGain
        | HazardKind::AccessLoss
        | HazardKind::RoutingGap
        | HazardKind::ShovelInterference
        | HazardKind::ConsumerDisruption
        | HazardKind::Duplicates
        | HazardKind::Reorder
        | HazardKind::PolicyShift
        | HazardKind::ContractChange
        | HazardKind::DurabilityDown
        | HazardKind::LimitReached
        | HazardKind::MassDelete => false,
    };
    let reported: BTreeSet<&Address> =
        part.hazards.iter().filter(|hazard| concerns_messages(hazard.kind)).map(|hazard| &hazard.address).collect();
    if reported.is_empty() {
        return Vec::new();
    }
    let is_late = |name: &QueueName| {
        let counted = activity.queues.get(name);
        counted.is_some_and(|it| it.messages == Some(0) && !it.asked)
            && reported.contains(&Address::of(&live.vhost, &ObjectId::Queue(name.clone())))
    };
    let quorum = live.queues.iter().filter(|(_, queue)| queue.queue_type() == Some(QueueType::Quorum));
    quorum.map(|(name, _)| name).filter(|name| is_late(name)).cloned().collect()
}
