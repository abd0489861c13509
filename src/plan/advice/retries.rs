//! Keeps the current retries. Their arguments on a queue are generated, so the spec has to declare the retries instead
//! of the arguments.

use super::Subject;
use super::current_keys::{self, DEAD_LETTER};
use super::places::{self, Edits};
use crate::model::yaml::Tree;
use crate::model::{Destination, ExchangeName, Object, ObjectId, Queue, QueueName, Strategy, naming};
use crate::plan::document::FieldVerdict;
use crate::plan::retries;
use crate::plan::spec_keys::Tiered;
use crate::rabbitmq::dead_lettering;
use crate::rabbitmq::routing::DeadLettering;

/// Returns the queue whose retries need this exchange. Such an exchange cannot keep its current settings.
pub(super) fn needed_by<'a>(subject: &Subject<'a>) -> Option<&'a QueueName> {
    let Object::Exchange(name, _) = subject.before else { return None };
    let id = ObjectId::Exchange(name.clone());
    let mut families = subject.context.desired.scope.families.iter();
    families.find(|family| family.members.contains(&id)).map(|family| &family.queue)
}

/// Writes the keys with which the queue keeps its current retries and the destination of its dead-lettered messages.
pub(super) fn keep_retries(
    subject: &Subject<'_>,
    edits: &mut Edits,
    name: &QueueName,
    queue: &Queue,
    own: &[&FieldVerdict],
) {
    let context = subject.context;
    let old = retries::strategy_of(context, name);
    let end = live_end(subject, name, queue, old);
    let tiered = match old {
        Some(strategy @ (Strategy::Ladder | Strategy::Republish)) => {
            retries::live_delays(context, name).map(|delays| Tiered { strategy, delays, end: end.clone() })
        }
        Some(Strategy::Delayed | Strategy::Redeliver) | None => None,
    };
    let current = current_keys::current_keys(subject, name, queue, tiered.as_ref());
    match (old, &current.retry) {
        (None, _) => {
            edits.set("retry", Tree::plain("none"));
            edits.set("maxRetries", Tree::plain(0));
        }
        // Republishing without delays uses no delayed retry queues, so the number of retries is unknown.
        (Some(_), Some(retry)) => edits.keys.extend(retry.explicit_entries().map(|it| it.into_parts())),
        (Some(_), None) => edits.unrepresentable.extend(own.iter().map(|field| field.field.clone())),
    }
    keep_end(subject, edits, (name, queue), end);
}

/// Returns the destination of messages after the last retry, as the arguments of the queue or its last binding set it.
fn live_end(subject: &Subject<'_>, name: &QueueName, queue: &Queue, old: Option<Strategy>) -> Option<DeadLettering> {
    match old {
        Some(Strategy::Ladder) => {
            let binding = retries::live_end(subject.context, name)?;
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

/// Sets `deadLetter` if the spec has a different destination.
fn keep_end(
    subject: &Subject<'_>,
    edits: &mut Edits,
    (name, queue): (&QueueName, &Queue),
    live: Option<DeadLettering>,
) {
    let topology = &subject.context.desired.topology;
    let over = naming::exhausted_exchange(name);
    let desired_end = match (current_keys::desired_strategy(subject, name), topology.queues.get(name)) {
        (Some(Strategy::Ladder), _) => {
            let mut ends = topology.bindings.iter().filter(|binding| binding.source == over);
            ends.find_map(|binding| destination(&binding.destination))
                .map(|exchange| DeadLettering { exchange, routing_key: None })
        }
        (_, Some(queue)) => dead_lettering(&queue.arguments, "x-"),
        (_, None) => return,
    };
    if live == desired_end {
        return;
    }
    match live {
        Some(to) => {
            places::move_dead_letter(subject, edits);
            edits.set(DEAD_LETTER, current_keys::destination_keys(subject, &to, false));
            edits.exchanges.push(to.exchange);
        }
        None => current_keys::without_arguments(
            subject,
            edits,
            &current_keys::current_keys(subject, name, queue, None),
            (name, queue),
        ),
    }
}
