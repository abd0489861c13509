//! Compares existing holding objects of a migration with what topo declares. Anyone who may declare a queue can copy
//! the mark and the name, with a TTL that drops every message.

use super::next_actions::fanout;
use super::{BEFORE, MIGRATES, Migration, migrated};
use crate::model::{ArgumentValue, Destination, ExchangeName, ObjectId, Queue, QueueName, Topology};

/// An existing object that a migration needs, and that differs from what topo declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The object.
    pub object: ObjectId,
    /// The difference.
    pub difference: String,
}

impl Migration {
    /// Returns the first holding object that differs from what topo declares. Objects without the mark are not checked.
    pub fn unexpected(&self, live: &Topology) -> Option<Unexpected> {
        let names = self.names();
        let [hold, drained] = [&names.hold, &names.drained].map(QueueName::new);
        let is_started = live.queues.get(&hold).is_some_and(|queue| migrated(&queue.arguments).is_some());
        let of_queue = |name: &QueueName| {
            let difference = self.queue_difference(live.queues.get(name)?, is_started)?;
            Some(Unexpected { object: ObjectId::Queue(name.clone()), difference })
        };
        let to_queue = |name: &QueueName| Destination::Queue(name.clone());
        let (hold_exchange, drained_exchange) = (ExchangeName::new(&names.hold), ExchangeName::new(&names.drained));
        // The destination and the alternate exchange of each.
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
            Some(Unexpected { object, difference: format!("it also leads to {}", other.destination.id()) })
        };
        [&hold, &drained].into_iter().find_map(of_queue).or_else(|| exchanges.iter().find_map(of_exchange))
    }

    /// Returns the difference of a holding queue. After the start of a migration, policies may have changed: then any
    /// queue is accepted that topo can declare. Before, only the queue that topo would declare now is accepted.
    fn queue_difference(&self, live: &Queue, is_started: bool) -> Option<String> {
        if !live.durable || live.auto_delete || live.exclusive {
            return Some("it is not durable, or it is auto-delete".to_owned());
        }
        let is_mark = |key: &str| key == MIGRATES || key == BEFORE;
        let desired = &self.holding.arguments;
        let is_accepted = |key: &str, value: &ArgumentValue| match is_started {
            true => may_be_declared(key, value),
            false => desired.get(key) == Some(value),
        };
        let mut set = live.arguments.iter().filter(|(key, _)| !is_mark(key));
        if let Some((key, value)) = set.find(|(key, value)| !is_accepted(key, value)) {
            return Some(format!("it sets {key} to {value}, and topo does not"));
        }
        let mut missing = desired.keys().filter(|key| !is_mark(key) && !live.arguments.contains_key(*key));
        missing.next().filter(|_| !is_started).map(|key| format!("it does not set {key}, and topo does"))
    }
}

/// Returns true if a holding queue of topo can have this argument.
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
