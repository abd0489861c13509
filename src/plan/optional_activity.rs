//! Determines whether a plan requires activity data that topo does not always read: shovels, the number of connections,
//! and current message and consumer counts. Adds the hazards and notes that result from this data.
//!
//! A shovel declares its queues whenever it connects (all versions). A deleted source queue is therefore redeclared
//! within seconds, with the default type and no arguments. If the plan recreates the queue, the broker then refuses
//! to declare the desired queue. Messages that a shovel publishes to a missing queue are lost.
//!
//! A new limit may be at or below the current number of connections or queues. In that case, the broker refuses new
//! connections or queues immediately.
//!
//! The broker updates the message count of a quorum queue on each tick, so a count of 0 might not include newer
//! messages. A plan that lowers a length limit cannot rely on this count. The list of consumers comes from the
//! statistics, so a plan that deletes a queue may miss a new consumer. Only a query over AMQP returns the current
//! numbers of messages and consumers.

use super::activity::Activity;
use super::activity::{ShovelEnd, Shovels, UnqueriedQueues};
use super::changes_by_kind::PlanBuilder;
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange, VhostPlan};
use super::hazard::{Hazard, HazardKind};
use super::migrate::{Goal, Migration};
use super::users::connections;
use crate::model::count::count;
use crate::model::intervals::in_words;
use crate::model::{
    Address, ArgumentValue, Object, ObjectId, QueueName, QueueType, Record, RecordId, RecordKind, Topology,
};
use std::collections::{BTreeMap, BTreeSet};

/// Returns true if a plan deletes or recreates a queue. topo reads the shovels only in that case.
pub fn deletes_queues(part: &VhostPlan) -> bool {
    !deleted_or_recreated(&part.changes, &part.migrations).is_empty()
}

/// Returns the queues that the plan deletes or recreates. topo looks up their clients.
pub fn deleted_queues(part: &VhostPlan) -> Vec<QueueName> {
    deleted_or_recreated(&part.changes, &part.migrations).into_keys().collect()
}

/// Returns the queues that the plan deletes; the value is true if the plan declares the queue again.
fn deleted_or_recreated<'p>(changes: &'p [PlannedChange], migrations: &'p [Migration]) -> BTreeMap<QueueName, bool> {
    let from_changes = changes.iter().filter_map(|change| match (change.kind, change.id()?) {
        (ChangeKind::Delete, ObjectId::Queue(name)) => Some((name, false)),
        (ChangeKind::Recreate, ObjectId::Queue(name)) => Some((name, true)),
        (_, _) => None,
    });
    let from_migrations = migrations
        .iter()
        .filter(|migration| migration.goal == Goal::Recreate)
        .map(|migration| (migration.queue.clone(), true));
    from_changes.chain(from_migrations).collect()
}

/// Adds a hazard for each shovel that uses a deleted or recreated queue, or one hazard if the connected user is not
/// allowed to read the shovels. Adds no hazard for a shovel that the plan deletes or redirects before it deletes the
/// queue.
pub(super) fn shovel_hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let deleted = deleted_or_recreated(&builder.changes, &builder.migrations);
    let ends = match &context.activity.shovels {
        Shovels::NotRead => return,
        Shovels::Hidden if deleted.is_empty() => return,
        Shovels::Hidden => {
            let queues = match deleted.len() {
                1 => "queue".to_owned(),
                many => count(many as u64, "queue"),
            };
            let text = format!(
                "topo cannot check whether a shovel uses the {queues} that the plan deletes or recreates: this user \
                 cannot read parameters (this requires the policymaker tag)"
            );
            builder.hazards.push(Hazard {
                kind: HazardKind::ShovelInterference,
                address: context.address(&ObjectId::Vhost),
                text,
                messages: None,
                must_be_allowed: false,
            });
            return;
        }
        Shovels::Known(ends) => ends,
    };
    let vhost = &context.current.vhost;
    let is_deleted = |change: &PlannedChange, name: &str| {
        change.kind == ChangeKind::Delete
            && change.id() == Some(ObjectId::Record(RecordId::named(RecordKind::Shovel, name)))
    };
    for end in ends {
        let Some(is_recreated) = deleted.get(&end.queue) else { continue };
        let is_shovel_deleted =
            end.vhost == *vhost && builder.changes.iter().any(|change| is_deleted(change, &end.shovel));
        let is_shovel_redirected = end.vhost == *vhost && builder.changes.iter().any(|change| redirects(change, end));
        // topo deletes or changes a shovel before it deletes queues, but not before it recreates queues.
        if (is_shovel_deleted || is_shovel_redirected) && !*is_recreated {
            continue;
        }
        let address = context.address(&ObjectId::Queue(end.queue.clone()));
        builder.hazard(HazardKind::ShovelInterference, &address, shovel_text(end, *is_recreated), None);
    }
}

/// Returns true if a change makes a shovel use a different queue.
fn redirects(change: &PlannedChange, end: &ShovelEnd) -> bool {
    let is_for_shovel = change.id() == Some(ObjectId::Record(RecordId::named(RecordKind::Shovel, end.shovel.as_str())));
    let Some(Object::Record(after)) = change.after.as_ref().filter(|_| is_for_shovel) else { return false };
    let queue =
        after.fields.get(if end.is_source { "src-queue" } else { "dest-queue" }).and_then(ArgumentValue::as_text);
    queue != Some(end.queue.as_str())
}

fn shovel_text(end: &ShovelEnd, is_recreated: bool) -> String {
    let ShovelEnd { shovel, vhost, is_source, .. } = end;
    let redeclares = "with the default type and no arguments";
    let effect = match (is_source, is_recreated) {
        (true, false) => format!(
            "reads from this queue: within seconds of the deletion, the shovel declares the queue again, {redeclares}"
        ),
        (true, true) => format!(
            "reads from this queue: while the queue does not exist, the shovel may declare it {redeclares}, and the \
             broker would then refuse to declare the new queue"
        ),
        (false, false) => format!(
            "writes to this queue: its messages are lost, and when the shovel reconnects, it declares the queue {redeclares}"
        ),
        (false, true) => "writes to this queue: its messages are lost while the queue does not exist".to_owned(),
    };
    format!("shovel {shovel} in vhost {vhost} {effect}; delete the shovel first, and create it again afterward")
}

const CONNECTIONS: &str = "max-connections";
const QUEUES: &str = "max-queues";
const CHANNELS: &str = "max-channels";

/// Returns true if the plan sets or lowers a connection or channel limit. In that case, topo reads the number of
/// connections.
pub fn limits_connections(part: &VhostPlan) -> bool {
    lowered_limits(&part.changes).any(|(_, record)| matches!(record.id.setting(), Some(CONNECTIONS | CHANNELS)))
}

/// Adds a hazard for each limit that the plan sets or lowers if the current usage reaches the limit or is unknown.
pub(super) fn limit_hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let found: Vec<_> = lowered_limits(&builder.changes)
        .filter_map(|(change, record)| {
            let (limit, setting) = (record.limit()?, record.id.setting()?);
            let user = record.id.name().filter(|_| record.id.kind == RecordKind::UserLimit);
            let (existing, thing) = match setting {
                CONNECTIONS if user.is_some() => (user.and_then(|user| connections(context, user)), "connection"),
                // topo does not count channels. A user without connections has no channels.
                CHANNELS => (user.and_then(|user| connections(context, user)).filter(|it| *it == 0), "channel"),
                CONNECTIONS => {
                    // A vhost that does not exist yet has no connections.
                    let if_new_vhost = context.current.settings.is_none().then_some(0);
                    let by_user = context.activity.connections.as_ref();
                    (by_user.map(|by_user| by_user.values().sum()).or(if_new_vhost), "connection")
                }
                QUEUES => (Some(queue_count(&builder.changes, context)), "queue"),
                _ => return None,
            };
            // If the number is unknown, it may have reached the limit.
            if existing.is_some_and(|existing| existing < limit) {
                return None;
            }
            if existing == Some(0) {
                let text = format!("{setting} will become {limit}: the broker will refuse every {thing}");
                return Some((change.address.clone(), text));
            }
            let existing = existing.map_or_else(|| format!("an unknown number of {thing}s"), |many| count(many, thing));
            let owner = user.map_or_else(|| "the vhost".to_owned(), |user| format!("user {user}"));
            let effect = match setting {
                QUEUES => "will keep existing queues and refuse new ones, including topo's lock queue".to_owned(),
                CHANNELS => "will close a connection that opens another channel".to_owned(),
                _ => format!("will keep existing {thing}s and refuse new ones"),
            };
            let text = format!("{setting} will become {limit}, and {owner} has {existing}: the broker {effect}");
            Some((change.address.clone(), text))
        })
        .collect();
    for (address, text) in found {
        builder.hazard(HazardKind::LimitReached, &address, text, None);
    }
}

/// Returns the limits of vhosts and users that the plan sets or lowers.
fn lowered_limits(changes: &[PlannedChange]) -> impl Iterator<Item = (&PlannedChange, &Record)> {
    changes.iter().filter_map(|change| {
        let after = limit_of(change.after.as_ref())?;
        let before = limit_of(change.before.as_ref()).and_then(Record::limit).unwrap_or(u64::MAX);
        (after.limit()? < before).then_some((change, after))
    })
}

fn limit_of(object: Option<&Object>) -> Option<&Record> {
    match object? {
        Object::Record(record) => {
            matches!(record.id.kind, RecordKind::VhostLimit | RecordKind::UserLimit).then_some(record)
        }
        Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) => None,
    }
}

/// Returns the number of queues after the plan is applied, excluding topo's own queues.
fn queue_count(changes: &[PlannedChange], context: &PlanContext<'_>) -> u64 {
    let is_queue = |object: &Option<Object>| matches!(object, Some(Object::Queue(..)));
    let created = changes.iter().filter(|it| it.kind == ChangeKind::Create && is_queue(&it.after)).count();
    let deleted = changes.iter().filter(|it| it.kind == ChangeKind::Delete && is_queue(&it.before)).count();
    let current = context.current.queues.values().filter(|queue| !queue.is_created_by_topo()).count();
    (current + created).saturating_sub(deleted) as u64
}

/// Returns the queues whose message or consumer counts may be too old for this plan. topo queries these queues over
/// AMQP.
pub fn queues_with_stale_counts(part: &VhostPlan, live: &Topology, activity: &Activity) -> Vec<QueueName> {
    let mut queues = without_listed_consumers(part, activity);
    queues.extend(with_message_hazards(part, live, activity));
    queues.into_iter().collect()
}

/// Adds a note about queues that topo could not query.
pub(super) fn report_unqueried_queues(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let Some(UnqueriedQueues { queues, reason }) = &context.activity.unqueried else { return };
    let intervals = context.activity.intervals;
    let age = in_words(intervals.listing().max(intervals.one_tick()));
    let text = format!(
        "{} could not be queried over AMQP for current consumers and messages, so the numbers in the plan may be up to \
         {age} old: {reason}",
        count(*queues, "queue")
    );
    builder.info(&context.address(&ObjectId::Vhost), text);
}

/// Returns the queues, except streams, that the plan deletes or recreates and that have no consumers in the statistics.
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

/// Returns the quorum queues that have a message hazard even though their reported message count is 0.
fn with_message_hazards(part: &VhostPlan, live: &Topology, activity: &Activity) -> Vec<QueueName> {
    let concerns_messages = |kind| match kind {
        HazardKind::MessageDrop | HazardKind::PublisherBlock => true,
        HazardKind::MessageLoss
        | HazardKind::AccessGain
        | HazardKind::AccessLoss
        | HazardKind::CredentialChange
        | HazardKind::RoutingGap
        | HazardKind::RoutingLoss
        | HazardKind::ShovelInterference
        | HazardKind::PublishLoss
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
    let is_stale = |name: &QueueName| {
        let counted = activity.queues.get(name);
        counted.is_some_and(|it| it.messages == Some(0) && !it.asked)
            && reported.contains(&Address::of(&live.vhost, &ObjectId::Queue(name.clone())))
    };
    let quorum = live.queues.iter().filter(|(_, queue)| queue.queue_type() == Some(QueueType::Quorum));
    quorum.map(|(name, _)| name).filter(|name| is_stale(name)).cloned().collect()
}
