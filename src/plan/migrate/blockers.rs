//! Finds blockers of a migration: a missing transport, source exchanges that do not support the migration, and existing
//! migration objects that differ from the objects that topo declares. Any user who may declare a queue can forge a
//! holding queue, for example with a TTL that drops every message.
//!
//! Also finds source exchanges and dead-letter cycles that make a migration hazardous.

use super::next_actions::fanout;
use super::{BEFORE, MIGRATES, Migration, migrated_queue};
use crate::model::{ArgumentValue, Destination, Exchange, ExchangeName, ObjectId, Queue, QueueName, Topology};
use crate::plan::activity::Transports;
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

/// Returns the source exchanges of the bindings to a queue.
fn sources<'a>(
    context: &'a PlanContext<'_>,
    name: &'a QueueName,
) -> impl Iterator<Item = (&'a ExchangeName, &'a Exchange)> {
    let bindings = context.current.bindings.iter().filter(move |binding| binding.leads_to_queue(name));
    let names: BTreeSet<&ExchangeName> = bindings.map(|binding| &binding.source).collect();
    names.into_iter().filter_map(|source| Some((source, context.current.exchanges.get(source)?)))
}

/// Returns a blocker if a source exchange would refuse the binding to the tap, or would send old messages to each new
/// binding.
pub(super) fn source_blocker(context: &PlanContext<'_>, name: &QueueName) -> Option<MigrationBlocker> {
    sources(context, name).find_map(|(source, exchange)| {
        let why = match exchange.kind.as_str() {
            // Measured: 10 remembered messages became 30 messages in the queue.
            "x-recent-history" => {
                "it sends the messages that it remembers to each new binding, so they would be delivered three times"
            }
            // The broker refuses the binding.
            "x-local-random" => "only queues can be bound to it, and `migrate` puts an exchange in front of the queue",
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

/// Returns the source exchanges that distribute routing keys among their bindings, and that redistribute the routing
/// keys whenever a binding is added or removed.
pub(super) fn redistributing_sources<'a>(context: &'a PlanContext<'_>, name: &'a QueueName) -> Vec<&'a ExchangeName> {
    let redistributes = |kind: &str| kind == "x-consistent-hash" || kind == "x-modulus-hash";
    sources(context, name).filter(|(_, exchange)| redistributes(&exchange.kind)).map(|(source, _)| source).collect()
}

/// Returns true if rejected messages from a queue can return to the queue, usually as retries.
pub(super) fn has_dead_letter_cycle(context: &PlanContext<'_>, name: &QueueName) -> bool {
    let external = BTreeSet::new();
    let operator = context.operator_policies();
    let routing = Routing::new(context.current, &operator, &external, context.profile);
    let (mut seen, mut open) = (BTreeSet::new(), vec![name.clone()]);
    while let Some(queue) = open.pop() {
        let routes = routing.route_dead_letter(&Message::with(Keys::any()), &queue, Reason::Rejected);
        for next in routes.into_values().flat_map(|route| route.certain_queues.into_iter().chain(route.possible_queues))
        {
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

/// An existing object that has the name of a migration object, but differs from the object that topo declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The object.
    pub object: ObjectId,
    /// The difference.
    pub difference: String,
}

impl Migration {
    /// Returns the first existing migration object that differs from the object that topo declares. Does not check the
    /// arguments that mark the holding queues.
    pub fn unexpected_object(&self, live: &Topology) -> Option<Unexpected> {
        let names = self.names();
        let [hold, drained] = [&names.hold, &names.drained].map(QueueName::new);
        let is_started = live.queues.get(&hold).is_some_and(|queue| migrated_queue(&queue.arguments).is_some());
        let of_queue = |name: &QueueName| {
            let difference = self.queue_difference(live.queues.get(name)?, is_started)?;
            Some(Unexpected { object: ObjectId::Queue(name.clone()), difference })
        };
        let to_queue = |name: &QueueName| Destination::Queue(name.clone());
        let (hold_exchange, drained_exchange) = (ExchangeName::new(&names.hold), ExchangeName::new(&names.drained));
        // Each exchange, with its destination and its alternate exchange.
        let exchanges = [
            (&hold_exchange, to_queue(&hold), &hold_exchange),
            (&drained_exchange, to_queue(&drained), &drained_exchange),
            (&names.tap, to_queue(&self.queue), &hold_exchange),
            (&names.back, to_queue(&self.queue), &names.back),
        ];
        let of_exchange = |(name, destination, alternate): &(&ExchangeName, Destination, &ExchangeName)| {
            let exchange = live.exchanges.get(*name)?;
            let object = ObjectId::Exchange((*name).clone());
            if *exchange != fanout(&self.queue, alternate) {
                let difference =
                    "it is not the durable fanout exchange with the arguments that topo declares".to_owned();
                return Some(Unexpected { object, difference });
            }
            let other = live.bindings.iter().find(|it| it.source == **name && it.destination != *destination)?;
            Some(Unexpected { object, difference: format!("it also routes to {}", other.destination.id()) })
        };
        [&hold, &drained].into_iter().find_map(of_queue).or_else(|| exchanges.iter().find_map(of_exchange))
    }

    /// Returns the difference between a holding queue and the queue that topo declares. Before a migration starts, topo
    /// accepts only the queue that it would declare now. After the start, policies may have changed, so topo accepts
    /// any queue that it may have declared.
    fn queue_difference(&self, live: &Queue, is_started: bool) -> Option<String> {
        if !live.durable || live.auto_delete || live.exclusive {
            return Some("it is not durable, or it is auto-delete or exclusive".to_owned());
        }
        let is_mark = |key: &str| key == MIGRATES || key == BEFORE;
        let desired = &self.holding.arguments;
        let is_accepted = |key: &str, value: &ArgumentValue| match is_started {
            true => may_be_declared(key, value),
            false => desired.get(key) == Some(value),
        };
        let mut set = live.arguments.iter().filter(|(key, _)| !is_mark(key));
        if let Some((key, value)) = set.find(|(key, value)| !is_accepted(key, value)) {
            return Some(format!("it sets {key} to {value}, but topo does not"));
        }
        let mut missing = desired.keys().filter(|key| !is_mark(key) && !live.arguments.contains_key(*key));
        missing.next().filter(|_| !is_started).map(|key| format!("it does not set {key}, but topo does"))
    }
}

/// Returns true if topo may have declared a holding queue with this argument.
fn may_be_declared(key: &str, value: &ArgumentValue) -> bool {
    let text = value.as_text();
    match key {
        "x-queue-type" => matches!(text, Some("classic" | "quorum")),
        "x-dead-letter-exchange" | "x-dead-letter-routing-key" => text.is_some(),
        "x-dead-letter-strategy" => text == Some("at-least-once"),
        "x-overflow" => text == Some("reject-publish"),
        "x-delivery-limit" => value.as_integer() == Some(-1),
        _ => false,
    }
}
