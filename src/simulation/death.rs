//! Dead-letters messages.

use super::copy::Copy;
use super::outcome::{End, EventKind};
use super::run::Run;
use crate::model::QueueName;
use crate::rabbitmq::routing::{Keys, Reason};
use std::collections::BTreeSet;

impl Run<'_, '_, '_> {
    /// Dead-letters a copy. Without a queue that receives it, the copy is dropped, or stays if the queue dead-letters at
    /// least once.
    pub(super) fn die(&mut self, queue: &QueueName, mut copy: Copy, reason: Reason) {
        let simulation = self.simulation;
        let Some(settings) = simulation.settings.get(queue) else { return };
        let event = |exchange, queues| EventKind::DeadLettered { queue: queue.clone(), reason, exchange, queues };
        let Some(to) = settings.dead_lettering() else {
            self.event(copy.message, event(None, BTreeSet::new()));
            self.end(queue, copy, End::Dropped);
            return;
        };
        if simulation.routing.dead_lettering(queue).len() > 1 {
            self.outcome.unknown.insert(format!("it is not known which policy applies to queue {queue}"));
        }
        let message = simulation.routing.to_dead_lettered(&copy.as_message(), queue, reason, &to);
        let mut queues = self.route(&to.exchange, &message);
        let before = copy.clone();
        copy.add_death(queue, reason);
        copy.history.record(queue, reason, simulation.profile.version);
        queues.retain(|target| !copy.history.is_cycle(target));
        self.event(copy.message, event(Some(to.exchange.clone()), queues.clone()));
        let keeps = settings.is_at_least_once();
        if queues.is_empty() {
            // The queue does not deliver it again.
            self.end(queue, before, if keeps { End::Waiting } else { End::Dropped });
            return;
        }
        copy.headers = message.headers;
        copy.exchange = to.exchange;
        if let Keys::One(key) = message.keys {
            copy.routing_key = key;
        }
        copy.expiration = None;
        if self.loops(copy.message) {
            self.end(queue, copy, End::Loops);
            return;
        }
        for target in &queues {
            if !self.arrive(target, copy.clone()) {
                self.end(queue, before.clone(), if keeps { End::Waiting } else { End::Dropped });
            }
        }
    }
}
