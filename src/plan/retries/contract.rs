//! Finds queues whose retries change so that their workers must change their calls.
//!
//! The broker does not report a worker that keeps its old calls. A worker that requeues uses up all attempts of a
//! ladder's queue within a second, and a worker that rejects gets no redelivery (both measured).

use super::super::context::PlanContext;
use super::super::document::ChangeKind;
use super::super::hazard::HazardKind;
use super::leftovers::queue_of_exchange;
use crate::model::{ArgumentValue, Family, Object, ObjectId, Queue, QueueName, Strategy, naming};
use crate::plan::changes_by_kind::PlanBuilder;
use crate::rabbitmq::{Governed, Policies};
use std::collections::BTreeMap;

/// Adds a hazard for each queue of the spec whose retry strategy the plan changes.
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

/// Returns the retry strategy of a current queue of the spec, if it can be determined.
pub(in super::super) fn strategy_of(context: &PlanContext<'_>, name: &QueueName) -> Option<Strategy> {
    let policies = Policies::new(&context.current.policies, context.profile.version);
    let (live, desired) = (context.current.queues.get(name)?, context.desired.topology.queues.get(name)?);
    // In a spec that retries at all, a limit counts retries.
    live_strategy(context, &policies, name, (live, desired)).or_else(|| by_arguments(live))
}

/// Returns the retry strategy of a current queue, if it can be determined: a worker that republishes without tiers
/// leaves no trace.
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
    by_arguments(live).filter(|old| by_arguments(desired) != Some(*old))
}

/// Returns the retry strategy that the arguments of a queue set.
fn by_arguments(queue: &Queue) -> Option<Strategy> {
    let waits = queue.arguments.get("x-delayed-retry-type").and_then(ArgumentValue::as_text);
    if waits.is_some_and(|kind| kind != "disabled") {
        return Some(Strategy::Delayed);
    }
    let limit = queue.arguments.get("x-delivery-limit").and_then(ArgumentValue::as_integer);
    limit.filter(|limit| *limit >= 0).map(|_| Strategy::Redeliver)
}

/// Returns true if the plan affects the retries of this queue.
fn is_touched(builder: &PlanBuilder, queue: &QueueName) -> bool {
    let policy = ObjectId::Policy(naming::dead_letter_policy(queue));
    builder.changes.iter().any(|change| {
        let is_queue = matches!(&change.after, Some(Object::Queue(name, _)) if name == queue);
        let is_policy = change.kind != ChangeKind::Delete && change.id().as_ref() == Some(&policy);
        is_queue || is_policy || change.retires.as_ref() == Some(queue)
    })
}

/// Returns the call of a worker on failure.
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
            "queue {queue} will retry with {new} instead of {old}: on failure, workers must call {} instead of {}",
            verb(new),
            verb(old)
        ),
        None if old == Strategy::Ladder => {
            format!("queue {queue} will no longer retry with {old}: the first {} will be final", verb(old))
        }
        None => format!(
            "queue {queue} will no longer retry with {old}: on failure, workers must call basic.nack with \
             requeue=false, which is final, instead of {}",
            verb(old)
        ),
    }
}
