//! Converts a queue's current settings to the keys that an export would write. The settings include the current
//! retries: topo generates the arguments for retries, so the spec must declare the retries, not the arguments.

use super::Subject;
use super::origins::{self, Edits};
use crate::model::yaml::{Tree, scalar};
use crate::model::{
    Arguments, Binding, Destination, ExchangeName, Object, ObjectId, Queue, QueueName, Strategy, naming,
};
use crate::plan::document::FieldVerdict;
use crate::plan::retries;
use crate::plan::spec_keys::{self, Parts, QueueKeys, Tiered, queue_keys};
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{Governed, Policies, dead_lettering, queue_wiring};

/// The queue key that sets both dead-letter arguments.
pub(super) const DEAD_LETTER: &str = "deadLetter";

/// Returns the keys that an export would write for an existing queue with the retries in `tiered`. Recognizes the
/// dead-letter queues in the spec.
pub(super) fn current_keys(
    subject: &Subject<'_>,
    name: &QueueName,
    queue: &Queue,
    tiered: Option<&Tiered>,
) -> QueueKeys {
    let parts = Parts {
        tiered,
        is_counted: belongs_to_retries(subject, "x-delivery-limit"),
        dead_letter_queue_at: &|to| dead_letter_queue_at(subject, to),
        is_dead_letter_queue: subject.dead_letter_queue().is_some(),
        has_default_limit: false,
    };
    let wiring = queue_wiring(subject.context.current, name).map(|(to, policy)| (to, policy.is_some()));
    queue_keys(queue, wiring, &parts)
}

/// Returns the value of `deadLetter` for a destination.
pub(super) fn destination_keys(subject: &Subject<'_>, to: &DeadLettering, by_policy: bool) -> Tree {
    spec_keys::dead_letter(&|to| dead_letter_queue_at(subject, to), to, by_policy)
}

/// Returns the dead-letter queue in the spec that receives messages through an exchange and a routing key. Returns
/// `None` if there is no such queue.
fn dead_letter_queue_at(subject: &Subject<'_>, to: &DeadLettering) -> Option<QueueName> {
    let context = subject.context;
    let is_part = |id: ObjectId| context.source(&id).is_some_and(|source| source.part_of.is_some());
    if !is_part(ObjectId::Exchange(to.exchange.clone())) {
        return None;
    }
    let topology = &context.desired.topology;
    let kind = &topology.exchanges.get(&to.exchange)?.kind;
    let first = Binding {
        source: to.exchange.clone(),
        destination: Destination::Queue(QueueName::new("")),
        routing_key: String::new(),
        arguments: Arguments::new(),
    };
    topology.bindings.range(first..).take_while(|binding| binding.source == to.exchange).find_map(|binding| {
        let Destination::Queue(name) = &binding.destination else { return None };
        let key = match kind.as_str() {
            "topic" => (binding.routing_key != "#").then_some(&binding.routing_key),
            "direct" => Some(&binding.routing_key),
            _ => (!binding.routing_key.is_empty()).then_some(&binding.routing_key),
        };
        (key == to.routing_key.as_ref() && is_part(ObjectId::Queue(name.clone()))).then(|| name.clone())
    })
}

/// Returns true if a field of the queue belongs to the current or the desired retries of the queue.
pub(super) fn belongs_to_retries(subject: &Subject<'_>, field: &str) -> bool {
    let Object::Queue(name, _) = subject.before else { return false };
    let uses_any = |strategies: &[Strategy]| {
        let (old, new) = (retries::strategy_of(subject.context, name), desired_strategy(subject, name));
        // A queue can have a delivery limit without retries.
        (new.is_some() || old == Some(Strategy::Ladder)) && strategies.iter().any(|it| [old, new].contains(&Some(*it)))
    };
    match field {
        "x-dead-letter-exchange" | "x-dead-letter-routing-key" => uses_any(&[Strategy::Ladder]),
        "x-delivery-limit" => uses_any(&[Strategy::Redeliver, Strategy::Delayed]),
        "x-delayed-retry-type" | "x-delayed-retry-min" | "x-delayed-retry-max" => uses_any(&[Strategy::Delayed]),
        _ => false,
    }
}

pub(super) fn desired_strategy(subject: &Subject<'_>, queue: &QueueName) -> Option<Strategy> {
    let families = &subject.context.desired.scope.families;
    families.iter().find(|family| family.queue == *queue).map(|family| family.strategy)
}

/// Sets or removes `deadLetter` on a queue without dead-letter arguments. A policy may set the dead-letter destination
/// for the queue.
pub(super) fn set_without_arguments(
    subject: &Subject<'_>,
    edits: &mut Edits,
    current: &QueueKeys,
    (name, queue): (&QueueName, &Queue),
) {
    let is_moved = origins::move_dead_letter(subject, edits);
    if let Some(by_own_policy) = &current.dead_letter {
        edits.set(DEAD_LETTER, by_own_policy.clone());
        edits.exchanges.extend(queue_wiring(subject.context.current, name).map(|(to, _)| to.exchange));
        return;
    }
    let remark = policy_dead_lettering(subject, name, queue);
    let has_default = origins::has_default(subject, "x-dead-letter-exchange");
    if remark.is_some() && !has_default {
        // An export also omits the key, because the policy remains effective.
        if !is_moved {
            edits.remove_keys.push(DEAD_LETTER.to_owned());
        }
    } else {
        // If the key were missing, a default could apply.
        edits.set(DEAD_LETTER, Tree::plain("none"));
    }
    edits.remarks.extend(remark);
}

/// Describes the policy that sets dead-lettering for a queue without dead-letter arguments; `None` if there is no such
/// policy.
fn policy_dead_lettering(subject: &Subject<'_>, name: &QueueName, queue: &Queue) -> Option<String> {
    let context = subject.context;
    let operator_policies = context.operator_policies();
    let all = [("policy", &context.current.policies), ("operator policy", &operator_policies)];
    all.into_iter().find_map(|(kind, policies)| {
        let policies = Policies::new(policies, context.profile.version);
        let governing = policies.governing(name.as_str(), Governed::from(queue)).likely()?;
        let to = dead_lettering(&governing.policy.definition, "")?;
        let key = to.routing_key.map_or_else(String::new, |key| format!(" with routing key {}", scalar::text(&key)));
        Some(format!(
            "{kind} {} dead-letters messages from {} to exchange {}{key}",
            scalar::text(governing.name.as_str()),
            scalar::text(name.as_str()),
            scalar::text(to.exchange.as_str())
        ))
    })
}

/// Returns the queue whose retries require the exchange in conflict; `None` if there is no such queue. A required
/// exchange cannot keep its current settings.
pub(super) fn needed_by<'a>(subject: &Subject<'a>) -> Option<&'a QueueName> {
    let Object::Exchange(name, _) = subject.before else { return None };
    let id = ObjectId::Exchange(name.clone());
    let mut families = subject.context.desired.scope.families.iter();
    families.find(|family| family.members.contains(&id)).map(|family| &family.queue)
}

/// Adds the edits that make a queue keep its current retries and the destination of its dead-lettered messages.
pub(super) fn keep_retries(
    subject: &Subject<'_>,
    edits: &mut Edits,
    name: &QueueName,
    queue: &Queue,
    retry_fields: &[&FieldVerdict],
) {
    let context = subject.context;
    let old = retries::strategy_of(context, name);
    let target = current_final_target(subject, name, queue, old);
    let tiered = match old {
        Some(strategy @ (Strategy::Ladder | Strategy::Republish)) => {
            retries::live_delays(context, name).map(|delays| Tiered { strategy, delays, end: target.clone() })
        }
        Some(Strategy::Delayed | Strategy::Redeliver) | None => None,
    };
    let current = current_keys(subject, name, queue, tiered.as_ref());
    match (old, &current.retry) {
        (None, _) => {
            edits.set("retry", Tree::plain("none"));
            edits.set("maxRetries", Tree::plain(0));
        }
        (Some(_), Some(retry)) => edits.keys.extend(retry.explicit_entries().map(|it| it.into_parts())),
        // Republishing without delays uses no delayed retry queues, so the number of retries is unknown.
        (Some(_), None) => edits.unrepresentable.extend(retry_fields.iter().map(|field| field.field.clone())),
    }
    keep_final_target(subject, edits, (name, queue), target);
}

/// Returns the current destination of messages after the last retry. The last binding of the queue's ladder or the
/// queue's arguments set this destination.
fn current_final_target(
    subject: &Subject<'_>,
    name: &QueueName,
    queue: &Queue,
    old: Option<Strategy>,
) -> Option<DeadLettering> {
    match old {
        Some(Strategy::Ladder) => {
            let binding = retries::current_final_binding(subject.context, name)?;
            Some(DeadLettering { exchange: destination(&binding.destination)?, routing_key: None })
        }
        Some(Strategy::Republish | Strategy::Redeliver | Strategy::Delayed) | None => {
            dead_lettering(&queue.arguments, "x-")
        }
    }
}

fn destination(destination: &Destination) -> Option<ExchangeName> {
    match destination {
        Destination::Exchange(name) => Some(name.clone()),
        Destination::Queue(_) => None,
    }
}

/// Sets `deadLetter` to the current destination if the spec specifies a different destination.
fn keep_final_target(
    subject: &Subject<'_>,
    edits: &mut Edits,
    (name, queue): (&QueueName, &Queue),
    live: Option<DeadLettering>,
) {
    let topology = &subject.context.desired.topology;
    let exhausted = naming::exhausted_exchange(name);
    let desired_target = match (desired_strategy(subject, name), topology.queues.get(name)) {
        (Some(Strategy::Ladder), _) => {
            let mut bindings = topology.bindings.iter().filter(|binding| binding.source == exhausted);
            bindings
                .find_map(|binding| destination(&binding.destination))
                .map(|exchange| DeadLettering { exchange, routing_key: None })
        }
        (_, Some(queue)) => dead_lettering(&queue.arguments, "x-"),
        (_, None) => return,
    };
    if live == desired_target {
        return;
    }
    match live {
        Some(to) => {
            origins::move_dead_letter(subject, edits);
            edits.set(DEAD_LETTER, destination_keys(subject, &to, false));
            edits.exchanges.push(to.exchange);
        }
        None => set_without_arguments(subject, edits, &current_keys(subject, name, queue, None), (name, queue)),
    }
}
