//! Which queues a plan would have to ask themselves, because the broker's count of them is too old for what it says.
//!
//! The count of a quorum queue comes with a tick of 5 s, so 0 may stand for messages that came since, and a plan that lowers
//! a limit cannot believe it. The queue itself knows; only AMQP asks it.

use super::document::VhostPlan;
use super::{Activity, HazardKind};
use crate::model::{Address, ObjectId, QueueName, QueueType, Topology};
use std::collections::BTreeSet;

/// Those of whose messages a hazard speaks although none was counted.
pub fn counted_late(part: &VhostPlan, live: &Topology, activity: &Activity) -> Vec<QueueName> {
    let is_meant = |kind| match kind {
        HazardKind::MessageDrop | HazardKind::PublisherBlock => true,
        HazardKind::MessageLoss
        | HazardKind::RoutingGap
        | HazardKind::ShovelInterference
        | HazardKind::ConsumerDisruption
        | HazardKind::Duplicates
        | HazardKind::Reorder
        | HazardKind::PolicyShift
        | HazardKind::ContractChange
        | HazardKind::DurabilityDown
        | HazardKind::MassDelete => false,
    };
    let told: BTreeSet<&Address> =
        part.hazards.iter().filter(|hazard| is_meant(hazard.kind)).map(|hazard| &hazard.address).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let is_late = |name: &QueueName| {
        let counted = activity.queues.get(name);
        counted.is_some_and(|it| it.messages == Some(0) && !it.asked)
            && told.contains(&Address::of(&live.vhost, &ObjectId::Queue(name.clone())))
    };
    let quorum = live.queues.iter().filter(|(_, queue)| queue.queue_type() == Some(QueueType::Quorum));
    quorum.map(|(name, _)| name).filter(|name| is_late(name)).cloned().collect()
}
