//! Finds queues whose retry strategy changes in a way that requires workers to make different calls on failure.
//!
//! The broker does not report workers that still make the old calls. For a queue with a ladder, a worker that requeues
//! messages uses up all attempts within a second. For a queue with the `redeliver` strategy, messages that a worker
//! rejects without requeueing are not redelivered (both measured).

use super::super::context::PlanContext;
use super::super::document::ChangeKind;
use super::super::hazard::HazardKind;
use super::leftovers::queue_of_exchange;
use crate::model::{ArgumentValue, Family, Object, ObjectId, Queue, QueueName, Strategy, naming};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

/// Adds a hazard for each queue in the spec whose workers must make a different call on failure after the plan.
pub(in super::super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let desired = context.desired;
    let policies = Policies::new(&context.current.policies, context.profile.version);
    let families: BTreeMap<&QueueName, &Family> =
        desired.scope.families.iter().map(|family| (&family.queue, family)).collect();
    for (name, queue) in &desired.topology.queues {
        let Some(live) = context.current.queues.get(name) else { continue };
        let Some(old) = live_strategy(context, &policies, name, (live, queue)) else { continue };
        let new = families.get(name).map(|family| family.strategy).or_else(|| strategy_in_arguments(queue));
        if Some(call(old)) != new.map(call) && has_retry_changes(builder, name) {
            let text = hazard_text(name, old, new);
            builder.hazard(HazardKind::ContractChange, &context.address(&ObjectId::Queue(name.clone())), text, None);
        }
    }
}

/// Returns the retry strategy of a current queue in the spec; `None` if the strategy cannot be determined.
pub(in super::super) fn strategy_of(context: &PlanContext<'_>, name: &QueueName) -> Option<Strategy> {
    let policies = Policies::new(&context.current.policies, context.profile.version);
    let (live, desired) = (context.current.queues.get(name)?, context.desired.topology.queues.get(name)?);
    // Unlike `live_strategy` alone, this function also treats an unchanged delivery limit as the number of retries.
    live_strategy(context, &policies, name, (live, desired)).or_else(|| strategy_in_arguments(live))
}

/// Returns the retry strategy of a current queue. Returns `None` if the strategy cannot be determined, or if the
/// strategy is set by arguments that do not change. Republishing without tiers leaves no trace on the broker.
fn live_strategy(
    context: &PlanContext<'_>,
    policies: &Policies<'_>,
    name: &QueueName,
    (live, desired): (&Queue, &Queue),
) -> Option<Strategy> {
    let exchanges = &context.current.exchanges;
    let is_ours =
        |exchange| exchanges.get_key_value(exchange).is_some_and(|(name, it)| queue_of_exchange(name, it).is_some());
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
    // An unchanged limit may be a bound that is unrelated to retries.
    strategy_in_arguments(live).filter(|old| strategy_in_arguments(desired) != Some(*old))
}

/// Returns the retry strategy that the arguments of a queue set; `None` if the arguments set no strategy.
fn strategy_in_arguments(queue: &Queue) -> Option<Strategy> {
    let waits = queue.arguments.get("x-delayed-retry-type").and_then(ArgumentValue::as_text);
    if waits.is_some_and(|kind| kind != "disabled") {
        return Some(Strategy::Delayed);
    }
    let limit = queue.arguments.get("x-delivery-limit").and_then(ArgumentValue::as_integer);
    limit.filter(|limit| *limit >= 0).map(|_| Strategy::Redeliver)
}

/// Returns true if the plan changes the retries of this queue.
fn has_retry_changes(builder: &PlanBuilder, queue: &QueueName) -> bool {
    let policy = ObjectId::Policy(naming::dead_letter_policy(queue));
    builder.changes.iter().any(|change| {
        let is_queue = matches!(&change.after, Some(Object::Queue(name, _)) if name == queue);
        let is_policy = change.kind != ChangeKind::Delete && change.id().as_ref() == Some(&policy);
        is_queue || is_policy || change.retires.as_ref() == Some(queue)
    })
}

/// Returns the call that a worker must make on failure.
fn call(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Ladder => "basic.nack with requeue=false",
        Strategy::Republish => "basic.publish to the retry exchange, then basic.ack",
        Strategy::Redeliver | Strategy::Delayed => "basic.reject with requeue=true",
    }
}

fn hazard_text(queue: &QueueName, old: Strategy, new: Option<Strategy>) -> String {
    match new {
        Some(new) => format!(
            "queue {queue} will retry with {new} instead of {old}: on failure, workers must call {} instead of {}",
            call(new),
            call(old)
        ),
        None if old == Strategy::Ladder => {
            format!("queue {queue} will no longer retry with {old}: the first {} will be final", call(old))
        }
        None => format!(
            "queue {queue} will no longer retry with {old}: on failure, workers must call basic.nack with \
             requeue=false, which is final, instead of {}",
            call(old)
        ),
    }
}
