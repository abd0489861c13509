//! Tier queues: one a retry, each holds a message for its delay and hands it back. What leads into them is the strategy's.

use super::objects::Objects;
use super::text;
use crate::model::known_arguments::KnownArgument;
use crate::model::naming::{self, TierName};
use crate::model::{ArgumentValue, Arguments, Binding, Destination, ExchangeName, Queue, QueueName, QueueType};
use crate::rabbitmq::BrokerProfile;
use std::collections::BTreeSet;

/// The tiers of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The queue whose messages wait in them.
    pub queue: QueueName,
    /// Its type.
    pub queue_type: QueueType,
    /// Whether it survives a restart; its tiers do as it does.
    pub durable: bool,
    /// Milliseconds, one a retry.
    pub delays: Vec<i64>,
}

impl Tiers {
    /// More queues than this for one are a mistake.
    pub(super) const MOST: u32 = 100;

    /// The names with the numbers of their retries.
    pub fn names(&self) -> impl Iterator<Item = (u32, QueueName)> + '_ {
        let named = |(number, delay): (u32, &i64)| (number, TierName::new(&self.queue, number, *delay).name());
        (1..).zip(&self.delays).map(named)
    }

    /// The number of the last retry.
    pub fn last(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX)
    }

    /// What takes messages to be tried again, and what takes those that no tier does. The same under every strategy, so
    /// that another strategy is other bindings.
    pub(super) fn add_entrance(&self, objects: &mut Objects) -> (ExchangeName, ExchangeName) {
        let (retry, over) = (naming::retry_exchange(&self.queue), naming::over_exchange(&self.queue));
        objects.exchange(retry.clone(), "direct", Some(&naming::switch_of(&retry)));
        objects.exchange(naming::switch_of(&retry), "direct", Some(&over));
        objects.exchange(over.clone(), "topic", Some(&naming::first_exchange(&self.queue)));
        (retry, over)
    }

    /// The tiers, and the way back.
    pub(super) fn add_to(&self, objects: &mut Objects, profile: &BrokerProfile) {
        let hand_back = naming::return_exchange(&self.queue);
        objects.exchange(hand_back.clone(), "fanout", None);
        objects.bindings.insert(Binding {
            source: hand_back,
            destination: Destination::Queue(self.queue.clone()),
            routing_key: String::new(),
            arguments: Arguments::new(),
        });
        for ((number, name), delay) in self.names().zip(&self.delays) {
            let (arguments, optional) = self.arguments(number, *delay, profile);
            let queue = Queue { durable: self.durable, auto_delete: false, exclusive: false, arguments };
            objects.queues.insert(name.clone(), queue);
            if !optional.is_empty() {
                objects.optional.insert(name, optional);
            }
        }
    }

    /// The arguments of a tier, and which of them a live one may lack.
    fn arguments(&self, number: u32, delay: i64, profile: &BrokerProfile) -> (Arguments, BTreeSet<String>) {
        let takes = |queue_type: QueueType, argument: &str| {
            KnownArgument::named(argument).is_some_and(|known| known.is_taken(queue_type, profile.version))
        };
        // Quorum queues have no TTL before 3.10: there a classic tier is the only one that hands back.
        let queue_type = if takes(self.queue_type, "x-message-ttl") { self.queue_type } else { QueueType::Classic };
        let mut arguments: Arguments = [
            ("x-queue-type".to_owned(), text(queue_type.as_str())),
            ("x-message-ttl".to_owned(), ArgumentValue::Integer(delay)),
            ("x-dead-letter-exchange".to_owned(), text(naming::return_exchange(&self.queue).as_str())),
            ("x-dead-letter-routing-key".to_owned(), text(&naming::retry_key(&self.queue, number))),
        ]
        .into();
        let mut optional = BTreeSet::new();
        if takes(queue_type, "x-dead-letter-strategy") {
            // No hop can lose a message then; the one needs the other (`rabbit_quorum_queue:dlh`).
            for (name, value) in [("x-dead-letter-strategy", "at-least-once"), ("x-overflow", "reject-publish")] {
                arguments.insert(name.to_owned(), text(value));
                optional.insert(name.to_owned());
            }
        }
        (arguments, optional)
    }
}
