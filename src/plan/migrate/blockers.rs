//! Finds blockers of a migration: a missing transport, and source exchanges that cannot be bound to the tap. Also finds
//! source exchanges and dead-letter cycles that make a migration hazardous.

use crate::model::{Destination, Exchange, ExchangeName, QueueName};
use crate::plan::Transports;
use crate::plan::context::PlanContext;
use crate::rabbitmq::routing::{Keys, Message, Reason, Routing};
use std::collections::BTreeSet;

/// The reason why a queue cannot be migrated, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) struct MigrationBlocker {
    pub(in crate::plan) text: String,
    pub(in crate::plan) remedy: Option<String>,
}

/// Returns a blocker if no transport can move messages.
pub(super) fn transport_blocker(transports: &Transports) -> Option<MigrationBlocker> {
    let Transports::None { reasons } = transports else { return None };
    let remedy = "give topo access to the AMQP port (--amqp-url), or enable rabbitmq_shovel and \
                rabbitmq_shovel_management";
    let text = format!("topo cannot move its messages: {}", reasons.join("; "));
    Some(MigrationBlocker { text, remedy: Some(remedy.to_owned()) })
}

/// Returns the exchanges that are bound to a queue.
fn sources<'a>(
    context: &'a PlanContext<'_>,
    name: &'a QueueName,
) -> impl Iterator<Item = (&'a ExchangeName, &'a Exchange)> {
    let is_there = |destination: &Destination| matches!(destination, Destination::Queue(queue) if queue == name);
    let bindings = context.current.bindings.iter().filter(move |binding| is_there(&binding.destination));
    let names: BTreeSet<&ExchangeName> = bindings.map(|binding| &binding.source).collect();
    names.into_iter().filter_map(|source| Some((source, context.current.exchanges.get(source)?)))
}

/// Returns a blocker if a source cannot be bound to the tap, and later to the queue again.
pub(super) fn source_blocker(context: &PlanContext<'_>, name: &QueueName) -> Option<MigrationBlocker> {
    sources(context, name).find_map(|(source, exchange)| {
        let why = match exchange.kind.as_str() {
            // Measured: 10 remembered messages became 30 messages in the queue.
            "x-recent-history" => {
                "it sends the messages that it remembers to each new binding, so they would be delivered three times"
            }
            // The broker refuses the binding.
            "x-local-random" => "it can be bound only to queues, and `migrate` puts an exchange in front of the queue",
            _ => return None,
        };
        Some(MigrationBlocker {
            text: format!("exchange {source} is of type {}: {why}", exchange.kind),
            remedy: Some(format!(
                "remove the binding from {source} during the migration, or wait until the queue is empty (ifEmpty)"
            )),
        })
    })
}

/// Returns the sources that distribute their routing keys among their bindings, and redistribute them with each change
/// of a binding.
pub(super) fn redistributing<'a>(context: &'a PlanContext<'_>, name: &'a QueueName) -> Vec<&'a ExchangeName> {
    let redistributes = |kind: &str| kind == "x-consistent-hash" || kind == "x-modulus-hash";
    sources(context, name).filter(|(_, exchange)| redistributes(&exchange.kind)).map(|(source, _)| source).collect()
}

/// Returns true if dead-lettered messages of a queue can return to it, usually as retries.
pub(super) fn has_dead_letter_cycle(context: &PlanContext<'_>, name: &QueueName) -> bool {
    let external = BTreeSet::new();
    let operator = context.operator_policies();
    let routing = Routing::new(context.current, &operator, &external, context.profile);
    let (mut seen, mut open) = (BTreeSet::new(), vec![name.clone()]);
    while let Some(queue) = open.pop() {
        let ways = routing.route_dead_letter(&Message::with(Keys::any()), &queue, Reason::Rejected);
        for next in ways.into_values().flat_map(|route| route.certain_queues.into_iter().chain(route.possible_queues)) {
            if next == *name {
                return true;
            }
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}
