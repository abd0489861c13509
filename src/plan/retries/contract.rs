//! Workers that must call something else: when a live queue is to retry in another way than it does.
//!
//! A worker that does what it always did is wrong then, and the broker does not say so: one that requeues burns all tries
//! of a ladder's queue in a second, one that rejects gets no redelivery (both measured).

use super::super::builder::PlanBuilder;
use super::super::context::PlanContext;
use super::super::document::ChangeKind;
use super::super::hazard::HazardKind;
use super::leftovers::certain;
use crate::model::{ArgumentValue, Family, Object, ObjectId, Queue, QueueName, Strategy, naming};
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

/// Adds the hazard for each queue of the spec that the plan makes retry in another way.
pub(in super::super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let desired = context.desired;
    let policies = Policies::new(&context.current.policies, context.profile.version);
    let families: BTreeMap<&QueueName, &Family> =
        desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
    for (name, queue) in &desired.topology.queues {
        let Some(live) = context.current.queues.get(name) else { continue };
        let Some(old) = live_strategy(context, &policies, name, (live, queue)) else { continue };
        let new = families.get(name).map(|family| family.strategy).or_else(|| by_arguments(queue));
        if Some(verb(old)) != new.map(verb) && is_touched(builder, name) {
            let text = sentence(name, old, new);
            builder.hazard(HazardKind::ContractChange, &context.address(&ObjectId::Queue(name.clone())), text, None);
        }
    }
}

/// How a live queue of the spec retries, if it can be seen.
pub(in super::super) fn strategy_of(context: &PlanContext<'_>, name: &QueueName) -> Option<Strategy> {
    let policies = Policies::new(&context.current.policies, context.profile.version);
    let (live, desired) = (context.current.queues.get(name)?, context.desired.topology.queues.get(name)?);
    // With a spec that retries at all, a limit is a count.
    live_strategy(context, &policies, name, (live, desired)).or_else(|| by_arguments(live))
}

/// How a live queue retries, as far as that can be seen: a republishing worker that needs no tiers leaves no trace.
fn live_strategy(
    context: &PlanContext<'_>,
    policies: &Policies<'_>,
    name: &QueueName,
    (live, desired): (&Queue, &Queue),
) -> Option<Strategy> {
    let exchanges = &context.current.exchanges;
    let is_ours = |exchange| exchanges.get_key_value(exchange).is_some_and(|(name, it)| certain(name, it).is_some());
    let governing = policies.governing(name.as_str(), Governed::from(live)).likely();
    let by_policy = governing.and_then(|it| it.policy.definition.get("dead-letter-exchange"));
    let dead_letters = live.arguments.get("x-dead-letter-exchange").or(by_policy).and_then(ArgumentValue::as_text);
    let guard = naming::guard_exchange(name);
    if dead_letters == Some(guard.as_str()) && is_ours(&guard) {
        return Some(Strategy::Ladder);
    }
    if is_ours(&naming::retry_exchange(name)) {
        return Some(Strategy::Republish);
    }
    // A limit that stays as it is may be no more than a bound.
    by_arguments(live).filter(|old| by_arguments(desired) != Some(*old))
}

/// How a queue retries by its own arguments alone.
fn by_arguments(queue: &Queue) -> Option<Strategy> {
    let waits = queue.arguments.get("x-delayed-retry-type").and_then(ArgumentValue::as_text);
    if waits.is_some_and(|kind| kind != "disabled") {
        return Some(Strategy::Delayed);
    }
    let limit = queue.arguments.get("x-delivery-limit").and_then(ArgumentValue::as_integer);
    limit.filter(|limit| *limit >= 0).map(|_| Strategy::Redeliver)
}

/// Whether the plan has to do with how this queue retries.
fn is_touched(builder: &PlanBuilder, queue: &QueueName) -> bool {
    let policy = ObjectId::Policy(naming::dead_letter_policy(queue));
    builder.changes.iter().any(|change| {
        let is_queue = matches!(&change.after, Some(Object::Queue(name, _)) if name == queue);
        let is_policy = change.kind != ChangeKind::Delete && change.id().as_ref() == Some(&policy);
        is_queue || is_policy || change.retires.as_ref() == Some(queue)
    })
}

/// What a worker calls when it fails.
fn verb(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Ladder => "basic.nack with requeue=false",
        Strategy::Republish => "basic.publish to the retry exchange, then basic.ack",
        Strategy::Redeliver | Strategy::Delayed => "basic.reject with requeue=true",
    }
}

fn sentence(queue: &QueueName, old: Strategy, new: Option<Strategy>) -> String {
    match new {
        Some(new) => format!(
            "queue {queue} retries by {new} instead of {old}: on failure, workers must call {} instead of {}",
            verb(new),
            verb(old)
        ),
        None if old == Strategy::Ladder => {
            format!("queue {queue} no longer retries by {old}: the first {} is final", verb(old))
        }
        None => format!(
            "queue {queue} no longer retries by {old}: on failure, workers must call basic.nack with requeue=false, \
             which is final, instead of {}",
            verb(old)
        ),
    }
}
